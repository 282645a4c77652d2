"""The distributed program of the interoperability page on two processes, which JAX connects, with its gradient."""

from __future__ import annotations

import socket
import subprocess
import sys
from typing import Any

PROCESSES = 2
DEVICES = 2


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        return int(probe.getsockname()[1])


def run(process: int, address: str) -> None:
    """Be one of the processes."""
    import jax

    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.config.update("jax_num_cpu_devices", DEVICES)
    # Initialize JAX distributed environment; on a cluster without arguments.
    jax.distributed.initialize(address, PROCESSES, process)

    import jax.numpy as jnp
    import numpy as np
    from jax.experimental.multihost_utils import process_allgather as allgather
    from jax.sharding import PartitionSpec as P
    from tests.interop.jax.distributed_kernels import jax_warp_multiply, jax_warp_square

    num_devices = jax.device_count()
    assert (num_devices, jax.process_count()) == (PROCESSES * DEVICES, PROCESSES)

    def print_on_process_0(*args: Any) -> None:
        if jax.process_index() == 0:
            print(*args, flush=True)

    def sharded(function: Any, in_specs: Any) -> Any:
        mesh = jax.sharding.Mesh(np.array(jax.devices()), "x")
        if hasattr(jax, "shard_map"):
            return jax.shard_map(function, mesh=mesh, in_specs=in_specs, out_specs=P("x"))
        from jax.experimental.shard_map import shard_map

        return shard_map(function, mesh=mesh, in_specs=in_specs, out_specs=P("x"), check_rep=False)

    def warp_distributed_operator(a_in: Any) -> Any:
        # Inside the sharded operator, a_in is a local shard on each device.
        return sharded(lambda a_in: jax_warp_multiply(a_in)[0], (P("x"),))(a_in)

    print_on_process_0("Test distributed multiplication using JAX + Warp")
    mesh = jax.sharding.Mesh(np.array(jax.devices()), "x")
    sharding_spec = jax.sharding.NamedSharding(mesh, P("x"))

    input_size = num_devices * 5  # 5 elements per device
    single_device_arrays = jnp.arange(input_size, dtype=jnp.float32)
    shape = (input_size,)
    arrays = [
        jax.device_put(single_device_arrays[index], d)  # Place each element on the corresponding device
        for d, index in sharding_spec.addressable_devices_indices_map(shape).items()
    ]
    sharded_array = jax.make_array_from_single_device_arrays(shape, sharding_spec, arrays)
    print_on_process_0(f"Input array: {allgather(sharded_array, tiled=True).astype(int).tolist()}")
    warp_result = warp_distributed_operator(sharded_array)
    print_on_process_0("Warp Output:", allgather(warp_result, tiled=True).astype(int).tolist())

    # A weight that all devices have: its gradient is the sum over all of them, in both processes.
    def loss(x: Any, weight: Any) -> Any:
        return sharded(lambda x, weight: jax_warp_square(x, weight)[0], (P("x"), P()))(x, weight).sum()

    x_gradient, weight_gradient = jax.jit(jax.grad(loss, argnums=(0, 1)))(sharded_array, jnp.full(1, 3.0))
    numbers = np.arange(input_size, dtype=np.float32)
    np.testing.assert_allclose(allgather(x_gradient, tiled=True), 18.0 * numbers)
    np.testing.assert_allclose(weight_gradient.addressable_data(0), [6.0 * (numbers**2).sum()])
    print_on_process_0("Gradients agree")
    jax.distributed.shutdown()


def test_two_processes() -> None:
    address = f"localhost:{free_port()}"
    workers = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.interop.jax.test_distributed", str(process), address],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for process in range(PROCESSES)
    ]
    outputs = [worker.communicate(timeout=300) for worker in workers]
    assert [worker.returncode for worker in workers] == [0] * PROCESSES, outputs
    numbers = list(range(20))
    lines = [[line for line in output.splitlines() if "[Gloo]" not in line] for output, _ in outputs]
    assert lines[0] == [
        "Test distributed multiplication using JAX + Warp",
        f"Input array: {numbers}",
        f"Warp Output: {[2 * number for number in numbers]}",
        "Gradients agree",
    ]
    assert lines[1] == []


if __name__ == "__main__":
    run(int(sys.argv[1]), sys.argv[2])
