"""Tensors of the frameworks that the machine has, in their streams; run by `tests/gpu/run.sh`."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

import numpy as np
import pytest

import warp as wp

Floats = wp.array(dtype=float)
FOUND = [name for name in ("torch", "cupy", "jax", "numba") if importlib.util.find_spec(name)]


@wp.kernel
def double(x: Floats, y: Floats):
    i = wp.tid()
    y[i] = 2.0 * x[i]


def on_gpu(name: str, values: Any) -> Any:
    """Return a tensor of a framework on the GPU; None if it sees none."""
    module = importlib.import_module(name)
    if name == "torch":
        return module.tensor(values, device="cuda") if module.cuda.is_available() else None
    if name == "cupy":
        return module.asarray(values)
    if name == "numba":
        cuda = importlib.import_module("numba.cuda")
        return cuda.to_device(values) if cuda.is_available() else None
    devices = [device for device in module.devices() if device.platform == "gpu"]
    return module.device_put(values, devices[0]) if devices else None


@pytest.mark.parametrize("name", FOUND)
def test_tensors_are_read_where_they_are(name: str) -> None:
    values = np.arange(10_000, dtype=np.float32)
    tensor = on_gpu(name, values)
    if tensor is not None:
        out = wp.zeros(len(values), dtype=float)
        wp.launch(double, len(values), inputs=[tensor, out])
        np.testing.assert_array_equal(out.numpy(), 2.0 * values)


@pytest.mark.parametrize("name", [name for name in FOUND if name == "torch"])
def test_torch_streams_and_gradients(name: str) -> None:
    torch = importlib.import_module(name)
    if not torch.cuda.is_available():
        return
    x = torch.arange(1000.0, device="cuda", requires_grad=True)
    with torch.cuda.stream(torch.cuda.Stream()), wp.ScopedStream(wp.stream_from_torch(), sync_enter=False):
        scaled = (x.detach() * 3.0).requires_grad_()
        a = wp.from_torch(scaled)
        b = wp.zeros_like(a)
        with wp.Tape() as tape:
            wp.launch(double, 1000, inputs=[a, b])
        tape.backward(grads={b: wp.ones_like(b)})
        result = wp.to_torch(b) + 1.0
        torch.cuda.current_stream().synchronize()
    np.testing.assert_array_equal(result.detach().cpu().numpy(), 6.0 * np.arange(1000) + 1.0)
    np.testing.assert_array_equal(scaled.grad.cpu().numpy(), 2.0)
    seen = torch.from_dlpack(b)
    assert seen.data_ptr() == b.ptr


@pytest.mark.parametrize("name", [name for name in FOUND if name == "jax"])
def test_jax_arrays(name: str) -> None:
    tensor = on_gpu(name, np.arange(100, dtype=np.float32))
    if tensor is not None:
        seen = wp.from_dlpack(tensor)
        assert seen.device.is_cuda
        np.testing.assert_array_equal(seen.numpy(), np.arange(100))
