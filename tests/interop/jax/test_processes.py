"""What needs a process of its own: several devices, the first call, threads, the end of the interpreter, export."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

KERNELS = """
import jax, jax.numpy as jnp, numpy as np, threading, time
import warp as wp

@wp.kernel
def product(a: wp.array(dtype=float), b: wp.array(dtype=float), c: wp.array(dtype=float)):
    i = wp.tid()
    c[i] = wp.sin(a[i]) * b[i]

@wp.kernel
def slow(a: wp.array(dtype=float), c: wp.array(dtype=float)):
    i = wp.tid()
    v = a[i]
    for _ in range(2000):
        v = wp.sin(v) + a[i]
    c[i] = v

jax_product = wp.jax_kernel(product)
"""


def run(directory: Path, text: str, **environment: str) -> str:
    """Run a program in a file, with warnings as errors, and return what it prints."""
    path = directory / "program.py"
    path.write_text(KERNELS + textwrap.dedent(text))
    command = [sys.executable, "-W", "error", str(path)]
    found = subprocess.run(command, capture_output=True, text=True, timeout=180, env={**os.environ, **environment})
    assert found.returncode == 0, found.stderr
    return found.stdout


FOUR_DEVICES = "--xla_force_host_platform_device_count=4"


def test_shard_map_over_four_devices(tmp_path: Path) -> None:
    output = run(
        tmp_path,
        """
        from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
        if hasattr(jax, "shard_map"):
            shard_map, options = jax.shard_map, ({}, {"check_vma": False})
        else:
            from jax.experimental.shard_map import shard_map
            options = ({"check_rep": False},)
        mesh = Mesh(np.array(jax.devices()), "x")
        assert mesh.size == 4
        x, y = jnp.arange(8.0), jnp.asarray([1.0, 2.0])
        x = jax.device_put(x, NamedSharding(mesh, P("x")))

        def close(found, wanted):
            for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)

        def reference(x, y):
            return jnp.sin(x) * jnp.tile(y, 4)

        for option in options:
            f = shard_map(
                lambda x, y: jax_product(x, y)[0], mesh=mesh, in_specs=(P("x"), P()), out_specs=P("x"), **option
            )
            for g in (f, jax.jit(f)):
                close(g(x, y), reference(x, y))
                close(jax.jvp(g, (x, y), (x, y)), jax.jvp(reference, (x, y), (x, y)))
                # The gradient of what every device has is summed over them.
                close(jax.grad(lambda x, y: g(x, y).sum(), (0, 1))(x, y),
                      jax.grad(lambda x, y: reference(x, y).sum(), (0, 1))(x, y))
                close(jax.jacrev(g, (0, 1))(x, y), jax.jacrev(reference, (0, 1))(x, y))
        # Without shard_map every device gets the whole array.
        close(jax.jit(lambda x: jax_product(x, x)[0])(x), jnp.sin(x) * x)
        try:
            wp.from_jax(x)
        except wp.errors.ArgumentError as error:
            assert "4 devices" in str(error)
        print(wp.from_jax(x.addressable_shards[1].data).numpy().tolist())
        """,
        XLA_FLAGS=FOUR_DEVICES,
    )
    assert output == "[2.0, 3.0]\n"


@pytest.mark.parametrize(
    "call",
    [
        "jax_product(jnp.ones(2), jnp.ones(2))",
        "jax.jit(jax_product)(jnp.ones(2), jnp.ones(2))",
        "wp.from_jax(jnp.ones(2))",
        "wp.to_jax(wp.ones(2, dtype=float))",
        "wp.device_to_jax('cpu')",
        "jax.jit(jax_product).lower(jnp.ones(2), jnp.ones(2)).compile()(jnp.ones(2), jnp.ones(2))",
    ],
)
def test_anything_may_be_the_first_call(tmp_path: Path, call: str) -> None:
    run(tmp_path, call)


def test_many_threads(tmp_path: Path) -> None:
    run(
        tmp_path,
        """
        x = jnp.arange(1000.0)
        wanted, slope = np.sin(x) * x, np.cos(x) * x
        errors = []

        def work(number):
            try:
                gradient = jax.jit(jax.grad(lambda a: jax_product(a, x)[0].sum()))
                for _ in range(20):
                    np.testing.assert_allclose(jax_product(x, x)[0], wanted, rtol=1e-4, atol=1e-3)
                    np.testing.assert_allclose(gradient(x), slope, rtol=1e-4, atol=1e-3)
                    np.testing.assert_allclose(function(x)[0], 2 * x)
            except BaseException as error:
                errors.append(error)

        def run(x: wp.array(dtype=float), y: wp.array(dtype=float)):
            wp.copy(y, wp.array(2 * x.numpy(), dtype=float))

        function = jax.jit(wp.jax_callable(run))
        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(100)
        assert not errors, errors
        assert not any(thread.is_alive() for thread in threads)
        """,
    )


@pytest.mark.parametrize("kind", ["kernel", "function"])
def test_the_interpreter_ends_while_a_call_is_pending(tmp_path: Path, kind: str) -> None:
    output = run(
        tmp_path,
        f"""
        def wait(a: wp.array(dtype=float), c: wp.array(dtype=float)):
            time.sleep(0.3)

        operation = jax.jit({"wp.jax_kernel(slow)" if kind == "kernel" else "wp.jax_callable(wait)"})
        x = jnp.ones(1 << 14)
        operation(x)[0].block_until_ready()
        pending = operation(x)
        print("ending")
        """,
        WARP_CPU_WORKERS="1",
    )
    assert output == "ending\n"


def test_export(tmp_path: Path) -> None:
    data = tmp_path / "exported"
    run(
        tmp_path,
        f"""
        import pathlib
        from jax import export
        from warp_interop_jax.handler_cpu import TARGET
        x = jnp.arange(3.0)
        f = jax.jit(lambda a, b: jax_product(a, b)[0])
        try:
            export.export(f)(x, x)
        except ValueError as error:
            assert TARGET in str(error)
        allowed = [export.DisabledSafetyCheck.custom_call(TARGET)]
        made = export.export(f, disabled_checks=allowed)(x, x)
        np.testing.assert_allclose(made.call(x, x), np.sin(x) * x, rtol=1e-6)
        pathlib.Path({str(data)!r}).write_bytes(made.serialize())
        """,
    )
    run(
        tmp_path,
        f"""
        import pathlib
        from jax import export
        made = export.deserialize(bytearray(pathlib.Path({str(data)!r}).read_bytes()))
        x = jnp.arange(3.0)
        jax_product(jnp.ones(2), jnp.ones(2))  # of other shapes
        try:
            jax.block_until_ready(made.call(x, x))
        except Exception as error:
            assert "has not prepared the kernel" in str(error), error
        else:
            raise AssertionError("it must know the kernel first")
        jax.jit(jax_product).lower(x, x)
        np.testing.assert_allclose(made.call(x, x), np.sin(x) * x, rtol=1e-6)
        """,
    )


def test_the_compilation_cache_of_jax(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    program = """
        x = jnp.arange(100.0)
        gradient = jax.jit(jax.grad(lambda a: jax_product(a, x)[0].sum()))
        np.testing.assert_allclose(gradient(x), np.cos(x) * x, rtol=1e-4, atol=1e-4)
        """
    options = {
        "JAX_COMPILATION_CACHE_DIR": str(cache),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }
    run(tmp_path, program, **options)
    first = {path.name for path in cache.rglob("*-cache")}
    run(tmp_path, program, **options)
    assert {path.name for path in cache.rglob("*-cache")} == first
