"""Memory pools of CUDA devices, and which device may use the memory of which."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType

from warp._src.runtime.cuda import CudaDevice
from warp._src.runtime.device import Device, DeviceLike, get_device
from warp.errors import ArgumentError, DeviceError


def is_mempool_supported(device: DeviceLike) -> bool:
    """Say whether a device has a memory pool."""
    return get_device(device).is_mempool_supported


def is_mempool_enabled(device: DeviceLike) -> bool:
    """Say whether arrays on a device come from its memory pool."""
    return get_device(device).is_mempool_enabled


def set_mempool_enabled(device: DeviceLike, enable: bool) -> None:
    """Let arrays that are made from now on come from the device's pool, which allocates in the order of streams.

    Without it every allocation and every release waits for the device. DeviceError if there is no pool.
    """
    found = _cuda(device, "set_mempool_enabled")
    if enable and not found.is_mempool_supported:
        raise DeviceError(f"device '{found}' has no memory pool")
    found.is_mempool_enabled = bool(enable)


def set_mempool_release_threshold(device: DeviceLike, threshold: int | float) -> None:
    """Set how much memory that is not in use a pool keeps at synchronisation points, for later arrays.

    `threshold` is a number of bytes, or a fraction of the device's memory if it is at most 1.0. The pool is the
    device's default one, which other frameworks may use too.
    """
    found = _pooled(device, "set_mempool_release_threshold")
    if threshold < 0:
        raise ArgumentError(f"threshold must not be negative, got {threshold}")
    if isinstance(threshold, float) and threshold <= 1.0:
        threshold = threshold * found.total_memory
    with found.active():
        found.driver.set_pool_attribute(found.pool, "RELEASE_THRESHOLD", int(threshold))


def get_mempool_release_threshold(device: DeviceLike = None) -> int:
    """Return how many bytes that are not in use a pool keeps at synchronisation points."""
    return _attribute(device, "RELEASE_THRESHOLD", "get_mempool_release_threshold")


def get_mempool_used_mem_current(device: DeviceLike = None) -> int:
    """Return the bytes of a pool that are in use."""
    return _attribute(device, "USED_MEM_CURRENT", "get_mempool_used_mem_current")


def get_mempool_used_mem_high(device: DeviceLike = None) -> int:
    """Return the most bytes of a pool that were in use at a time."""
    return _attribute(device, "USED_MEM_HIGH", "get_mempool_used_mem_high")


def is_mempool_access_supported(target_device: DeviceLike, peer_device: DeviceLike) -> bool:
    """Say whether kernels on `peer_device` can use the memory of the pool of `target_device`."""
    return is_peer_access_supported(target_device, peer_device) and get_device(target_device).is_mempool_supported


def is_mempool_access_enabled(target_device: DeviceLike, peer_device: DeviceLike) -> bool:
    """Say whether kernels on `peer_device` may use the memory of the pool of `target_device`."""
    target, peer = get_device(target_device), get_device(peer_device)
    return target is peer or (isinstance(peer, CudaDevice) and target.ordinal in peer.pool_peers)


def set_mempool_access_enabled(target_device: DeviceLike, peer_device: DeviceLike, enable: bool) -> None:
    """Let kernels on `peer_device` use the memory of the pool of `target_device`, or no longer."""
    name = "set_mempool_access_enabled"
    target, peer = _pooled(target_device, name), _cuda(peer_device, name)
    if target is peer:
        return
    if not is_mempool_access_supported(target, peer):
        raise DeviceError(f"device '{peer}' cannot access the memory pool of device '{target}'")
    with target.active():
        target.driver.set_pool_access(target.pool, peer.ordinal, bool(enable))
    (peer.pool_peers.add if enable else peer.pool_peers.discard)(target.ordinal)


def is_peer_access_supported(target_device: DeviceLike, peer_device: DeviceLike) -> bool:
    """Say whether kernels on `peer_device` can use the memory of `target_device`."""
    target, peer = get_device(target_device), get_device(peer_device)
    if not (isinstance(target, CudaDevice) and isinstance(peer, CudaDevice)):
        return False
    return target is peer or peer.driver.can_access_peer(peer.ordinal, target.ordinal)


def is_peer_access_enabled(target_device: DeviceLike, peer_device: DeviceLike) -> bool:
    """Say whether kernels on `peer_device` may use memory of `target_device` that is not of a pool."""
    target, peer = get_device(target_device), get_device(peer_device)
    return target is peer or (isinstance(peer, CudaDevice) and target.ordinal in peer.peers)


def set_peer_access_enabled(target_device: DeviceLike, peer_device: DeviceLike, enable: bool) -> None:
    """Let kernels on `peer_device` use memory of `target_device` that is not of a pool, or no longer."""
    name = "set_peer_access_enabled"
    target, peer = _cuda(target_device, name), _cuda(peer_device, name)
    if target is peer or is_peer_access_enabled(target, peer) == bool(enable):
        return
    if not is_peer_access_supported(target, peer):
        raise DeviceError(f"device '{peer}' cannot access the memory of device '{target}'")
    with peer.active():
        (peer.driver.enable_peer if enable else peer.driver.disable_peer)(target.context)
    (peer.peers.add if enable else peer.peers.discard)(target.ordinal)


class ScopedMempool:
    """Switch the memory pool of a device on or off inside a `with` block."""

    def __init__(self, device: DeviceLike, enable: bool) -> None:
        self.device = _cuda(device, "ScopedMempool")
        self.enable = enable
        self._before = self.device.is_mempool_enabled

    def __enter__(self) -> Device:
        self._before = self.device.is_mempool_enabled
        set_mempool_enabled(self.device, self.enable)
        return self.device

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        set_mempool_enabled(self.device, self._before)


class _ScopedAccess:
    """Change what a device may use of another inside a `with` block."""

    _is_enabled: Callable[[DeviceLike, DeviceLike], bool]
    _set_enabled: Callable[[DeviceLike, DeviceLike, bool], None]

    def __init__(self, target_device: DeviceLike, peer_device: DeviceLike, enable: bool) -> None:
        self.target_device = get_device(target_device)
        self.peer_device = get_device(peer_device)
        self.enable = enable
        self._before = False

    def __enter__(self) -> None:
        self._before = self._is_enabled(self.target_device, self.peer_device)
        self._set_enabled(self.target_device, self.peer_device, self.enable)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._set_enabled(self.target_device, self.peer_device, self._before)


class ScopedMempoolAccess(_ScopedAccess):
    """Allow or forbid a device the use of another's pool inside a `with` block."""

    _is_enabled = staticmethod(is_mempool_access_enabled)
    _set_enabled = staticmethod(set_mempool_access_enabled)


class ScopedPeerAccess(_ScopedAccess):
    """Allow or forbid a device the use of another's memory inside a `with` block."""

    _is_enabled = staticmethod(is_peer_access_enabled)
    _set_enabled = staticmethod(set_peer_access_enabled)


def _cuda(device: DeviceLike, function: str) -> CudaDevice:
    found = get_device(device)
    if not isinstance(found, CudaDevice):
        raise DeviceError(f"{function}: '{found}' is no CUDA device")
    return found


def _pooled(device: DeviceLike, function: str) -> CudaDevice:
    found = _cuda(device, function)
    if not found.is_mempool_supported:
        raise DeviceError(f"{function}: device '{found}' has no memory pool")
    return found


def _attribute(device: DeviceLike, name: str, function: str) -> int:
    found = _pooled(device, function)
    with found.active():
        return found.driver.pool_attribute(found.pool, name)
