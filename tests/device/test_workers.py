"""The worker pool and the launcher, driven by kernels written by hand against the binary interface."""

from __future__ import annotations

import os
import threading
import time
import warnings
from collections.abc import Iterator

import numpy as np
import pytest

from warp._src import build
from warp._src.build import LIBM
from warp._src.runtime.cpu import Executor, launch_flags, make_plain_launch, pack_launch
from warp.errors import ArgumentError, LaunchError, ToolchainError

pytestmark = pytest.mark.cpu

COMPILERS = build.available_compilers()
KERNELS = """
WP_EXPORT const int wp_abi = WP_ABI_VERSION;
#define KERNEL(name) \\
    WP_EXPORT void name( \\
        wp_int64 begin, wp_int64 end, const wp_launch* launch, const void* args, const wp_worker* worker)
struct Args { void* memory; wp_int64 other; };
#define ARGS (*(const Args*)args)

KERNEL(wp_forward) { (void)begin; (void)end; (void)launch; (void)args; (void)worker; }

// Adds one to each element. Marks its arena first, and faults if anyone else wrote there meanwhile.
KERNEL(touch) {
    volatile wp_int64* mark = (volatile wp_int64*)worker->arena;
    const wp_int64 own = begin * 1000 + ARGS.other;
    mark[0] = own;
    mark[worker->arena_size / 8 - 1] = own;
    for (wp_int64 i = begin; i < end; ++i) ((int*)ARGS.memory)[i] += 1;
    if (mark[0] != own || mark[worker->arena_size / 8 - 1] != own) wp_raise_fault(launch, WP_FAULT_ASSERT, 1, begin);
}

// Rounding depends on where a chunk begins, so equal bits mean equal chunks.
KERNEL(running_sum) {
    (void)launch; (void)worker;
    float sum = 0.0f;
    for (wp_int64 i = begin; i < end; ++i) {
        sum += wp_m.sinf((float)i) * 1e-3f;
        ((float*)ARGS.memory)[i] = sum;
    }
}

// Waits, within reason, for somebody to set memory[0]; says in memory[1] whether it happened.
KERNEL(wait_for_flag) {
    (void)begin; (void)end; (void)launch; (void)worker;
    volatile wp_int64* memory = (volatile wp_int64*)ARGS.memory;
    for (wp_int64 patience = 0; patience < ARGS.other && !memory[0]; ++patience) {}
    memory[1] = memory[0];
}

// Waits, within reason, until all of memory[0 .. other - 1] have been set by that many different workers.
KERNEL(meet) {
    (void)begin; (void)end; (void)launch;
    volatile int* seen = (volatile int*)ARGS.memory;
    seen[worker->index] = 1;
    for (wp_int64 patience = 0; patience < 2000000000; ++patience) {
        wp_int64 present = 0;
        for (wp_int64 i = 0; i < ARGS.other; ++i) present += seen[i];
        if (present == ARGS.other) return;
    }
}

KERNEL(fail_on_multiples) {
    (void)worker;
    for (wp_int64 i = begin; i < end; ++i)
        if (i && i % ARGS.other == 0) wp_raise_fault(launch, WP_FAULT_BOUNDS, 7, i);
}

KERNEL(write_ranges) {
    (void)worker;
    wp_int64* memory = (wp_int64*)ARGS.memory;
    const wp_int64 slot = __atomic_fetch_add(&memory[0], 1, __ATOMIC_RELAXED);
    memory[1 + 2 * slot] = begin;
    memory[2 + 2 * slot] = end;
    if (launch->dim[0] * launch->dim[1] * launch->dim[2] * launch->dim[3] != launch->size)
        wp_raise_fault(launch, WP_FAULT_ASSERT, 2, begin);
}
"""


class Kernels:
    """An executor, and entry points and arguments for the kernels above."""

    def __init__(self, compiler: build.Compiler) -> None:
        source = build.native_text("abi.h") + build.native_text("freestanding.h") + build.libm_header() + KERNELS
        self.executor = Executor(build.build_runtime_library(compiler), LIBM)
        self.loaded = self.executor.load(build.build_object(source, compiler=compiler))

    def run(self, name: str, size: int, memory: np.ndarray | None = None, other: int = 0, flags: int = 0) -> None:
        address = 0 if memory is None else memory.ctypes.data
        args = address.to_bytes(8, "little") + other.to_bytes(8, "little")
        self.executor.run(self.loaded.address(name), pack_launch((size,)), args, flags, name)


@pytest.fixture(scope="module", params=COMPILERS, ids=lambda compiler: compiler.name)
def kernels(request: pytest.FixtureRequest) -> Kernels:
    return Kernels(request.param)


@pytest.fixture(autouse=True)
def restore_workers(kernels: Kernels) -> Iterator[None]:
    yield
    kernels.executor.set_workers(2)


SHARED = launch_flags(parallel=True, release_gil=True, smallest_chunk=16)


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_every_item_runs_exactly_once(kernels: Kernels, workers: int) -> None:
    kernels.executor.set_workers(workers)
    assert kernels.executor.workers == workers
    for size in (0, 1, 15, 16, 17, 1000, 4097, 100_003):
        memory = np.zeros(size + 1, np.int32)
        for _ in range(5):
            kernels.run("touch", size, memory, flags=SHARED)
        assert (memory[:size] == 5).all()
        assert memory[size] == 0


def test_the_number_of_workers_does_not_change_a_bit(kernels: Kernels) -> None:
    results = set()
    for workers in (1, 2, 4, 2, 3):
        kernels.executor.set_workers(workers)
        for _ in range(20):
            memory = np.zeros(50_021, np.float32)
            kernels.run("running_sum", memory.size, memory, flags=SHARED)
            results.add(memory.tobytes())
    assert len(results) == 1
    kernels.run("running_sum", memory.size, memory, flags=launch_flags(smallest_chunk=16))
    assert memory.tobytes() in results


@pytest.mark.parametrize("workers", [2, 4])
def test_all_workers_take_part(kernels: Kernels, workers: int) -> None:
    kernels.executor.set_workers(workers)
    for pause in (0.0, 0.01, 0.0):
        time.sleep(pause)
        seen = np.zeros(256, np.int32)
        flags = launch_flags(parallel=True, release_gil=True, smallest_chunk=1)
        kernels.run("meet", workers, seen, other=workers, flags=flags)
        assert seen[:workers].all()
        assert seen.sum() == workers


@pytest.mark.parametrize("size", [1, 16, 17, 2048, 2049, 70_000])
@pytest.mark.parametrize("smallest", [0, 1, 16, 500])
def test_chunks_cover_the_launch_in_blocks_of_lanes(kernels: Kernels, size: int, smallest: int) -> None:
    memory = np.zeros(1 + 2 * 200, np.int64)
    kernels.run("write_ranges", size, memory, flags=launch_flags(parallel=True, smallest_chunk=smallest))
    count = int(memory[0])
    ranges = sorted(map(tuple, memory[1 : 1 + 2 * count].reshape(count, 2).tolist()))
    assert count <= 128
    assert [begin for begin, _ in ranges] == [0, *(end for _, end in ranges[:-1])]
    assert ranges[-1][1] == size
    lengths = {end - begin for begin, end in ranges[:-1]}
    assert len(lengths) <= 1
    assert all(length >= (smallest or 4096) and (length < 16 or length % 16 == 0) for length in lengths)


def test_an_ordered_launch_is_one_call_on_the_caller(kernels: Kernels) -> None:
    kernels.executor.set_workers(4)
    memory = np.zeros(3, np.int64)
    kernels.run("write_ranges", 10**6, memory, flags=launch_flags(ordered=True, parallel=True, smallest_chunk=1))
    assert memory.tolist() == [1, 0, 10**6]


def test_threads_may_launch_at_once(kernels: Kernels) -> None:
    launches, size = 1500, 3000
    kernels.executor.set_workers(3)
    memories = [np.zeros(size, np.int32) for _ in range(3)]
    failures: list[BaseException] = []

    def launch_many(number: int) -> None:
        try:
            for _ in range(launches):
                kernels.run("touch", size, memories[number], other=number, flags=SHARED)
        except LaunchError as error:
            failures.append(error)

    threads = [threading.Thread(target=launch_many, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
        assert not thread.is_alive(), "a launch hangs"
    assert failures == []
    for memory in memories:
        assert (memory == launches).all()


def test_the_pool_may_be_resized_while_it_works(kernels: Kernels) -> None:
    memory = np.zeros(2000, np.int32)
    done = threading.Event()

    def resize() -> None:
        while not done.is_set():
            for workers in (1, 4, 2, 3):
                kernels.executor.set_workers(workers)
                time.sleep(0.0005)

    resizer = threading.Thread(target=resize)
    resizer.start()
    for _ in range(2000):
        kernels.run("touch", memory.size, memory, flags=SHARED)
    done.set()
    resizer.join(timeout=60)
    assert (memory == 2000).all()


def wait_for(child: int, seconds: float) -> int:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        finished, status = os.waitpid(child, os.WNOHANG)
        if finished:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(child, 9)
    os.waitpid(child, 0)
    raise AssertionError("the forked child hangs")


def launches_work_in_child(kernels: Kernels, memory: np.ndarray) -> bool:
    for _ in range(50):
        kernels.run("touch", memory.size, memory, flags=SHARED)
    seen = np.zeros(256, np.int32)
    kernels.run("meet", 3, seen, other=3, flags=launch_flags(parallel=True, smallest_chunk=1))
    return bool((memory == 51).all() and seen[:3].all())


def test_a_forked_child_launches_with_workers_of_its_own(kernels: Kernels) -> None:
    kernels.executor.set_workers(3)
    memory = np.zeros(50_000, np.int32)
    busy = np.zeros(3000, np.int32)
    kernels.run("touch", memory.size, memory, flags=SHARED)
    stop = threading.Event()

    def keep_the_slot_busy() -> None:
        while not stop.is_set():
            kernels.run("touch", busy.size, busy, flags=SHARED)

    other = threading.Thread(target=keep_the_slot_busy)
    other.start()
    try:
        for _ in range(10):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons advise against it
                child = os.fork()
            if child == 0:
                os._exit(0 if launches_work_in_child(kernels, memory) else 1)
            assert wait_for(child, 60) == 0
    finally:
        stop.set()
        other.join(timeout=60)
    assert (memory == 1).all()


def test_a_long_launch_leaves_the_interpreter_to_others(kernels: Kernels) -> None:
    memory = np.zeros(2, np.int64)

    def set_flag() -> None:
        memory[0] = 1

    timer = threading.Timer(0.05, set_flag)
    timer.start()
    kernels.run("wait_for_flag", 1, memory, other=20 * 10**9, flags=launch_flags(release_gil=True))
    timer.join()
    assert memory[1] == 1


def test_idle_workers_use_no_processor_time(kernels: Kernels) -> None:
    kernels.executor.set_workers(4)
    memory = np.zeros(100_000, np.int32)
    for _ in range(10):
        kernels.run("touch", memory.size, memory, flags=SHARED)
    time.sleep(0.05)
    before = time.process_time()
    time.sleep(0.3)
    assert time.process_time() - before < 0.05


@pytest.mark.parametrize("workers", [1, 4])
def test_a_fault_names_the_first_item_and_its_coordinates(kernels: Kernels, workers: int) -> None:
    kernels.executor.set_workers(workers)
    args = (0).to_bytes(8, "little") + (2345).to_bytes(8, "little")
    entry = kernels.loaded.address("fail_on_multiples")
    for _ in range(50):
        with pytest.raises(LaunchError, match=r"^step: index 0 is out of bounds .* line 7, .* index \(2, 3, 45\)$"):
            kernels.executor.run(entry, pack_launch((10, 10, 100)), args, SHARED, "step")
    kernels.run("fail_on_multiples", 2345, other=2345, flags=SHARED)


def test_the_plain_launcher_does_the_same(kernels: Kernels) -> None:
    launch = make_plain_launch(kernels.executor._library)
    memory = np.zeros(50_000, np.int32)
    args = memory.ctypes.data.to_bytes(8, "little") + bytes(8)
    assert launch(kernels.loaded.address("touch"), pack_launch((memory.size,)), args, SHARED) is None
    assert (memory == 1).all()
    entry = kernels.loaded.address("fail_on_multiples")
    args = bytes(8) + (30_000).to_bytes(8, "little")
    block = pack_launch((50_000,))
    fault = launch(entry, block, args, SHARED)
    assert fault is not None
    assert fault == kernels.executor.launch(entry, block, args, SHARED)
    with pytest.raises(TypeError, match="launch block"):
        launch(entry, b"short", b"", 0)


@pytest.mark.parametrize(
    "arguments",
    [(), (1, b"", b""), (0, bytes(80), b"", 0), (1, bytes(79), b"", 0), (1, "text", b"", 0), ("no", bytes(80), b"", 0),
     (1, bytes(80), None, 0), (1, bytes(80), b"", "flags")],
)  # fmt: skip
def test_wrong_arguments_are_type_errors(kernels: Kernels, arguments: tuple[object, ...]) -> None:
    with pytest.raises(TypeError):
        kernels.executor.launch(*arguments)  # type: ignore[arg-type]  # what is refused


def test_launch_blocks_are_checked() -> None:
    assert len(pack_launch((2, 3), 4, 5, 6)) == 80
    for dim in ((), (1, 1, 1, 1, 1), (-1,), (2**32, 2**32)):
        with pytest.raises(ArgumentError, match="dim"):
            pack_launch(dim)


def test_objects_are_checked_when_loaded(kernels: Kernels, tmp_path: os.PathLike[str]) -> None:
    with pytest.raises(ToolchainError, match="cannot load"):
        kernels.executor.load(os.path.join(tmp_path, "missing.so"))
    source = 'extern "C" { extern const int wp_abi = 99; void wp_bind(const void* const*) {} }'
    with pytest.raises(ToolchainError, match="ABI 99"):
        kernels.executor.load(build.build_object(source, compiler=COMPILERS[0]))
    assert kernels.loaded.forward
    assert kernels.loaded.backward is None
    with pytest.raises(ToolchainError, match="no symbol 'nothing'"):
        kernels.loaded.address("nothing")


def test_at_least_one_worker(kernels: Kernels) -> None:
    with pytest.raises(ArgumentError, match="at least 1"):
        kernels.executor.set_workers(0)
