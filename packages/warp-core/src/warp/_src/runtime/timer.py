"""Time measurement that also groups what a tape records."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Any

from warp._src.recording.recorder import Recorder, current_recorder
from warp._src.runtime.stream import synchronize as synchronize_devices


class ScopedTimer:
    """Measure the wall time of a `with` block in milliseconds and print it.

    The block is a scope of the current tape. Nested timers are indented.

    Args:
        name: Printed before the time.
        active: Whether to measure at all.
        print: Whether to print the result.
        detailed: Accepted for compatibility; use a profiler instead.
        dict: If given, `dict[name]` collects the times of all runs in a list.
        use_nvtx: Accepted for compatibility.
        color: Accepted for compatibility.
        synchronize: Whether to wait for all CUDA devices before the time is taken, at both ends.
        cuda_filter: Accepted for compatibility.
        report_func: Called with the list of timings and the indent instead of printing.
        skip_tape: Whether to leave the current tape alone.

    >>> import warp as wp
    >>> with wp.ScopedTimer("nothing", print=False) as timer:
    ...     pass
    >>> timer.elapsed >= 0.0
    True
    """

    _depth = 0

    def __init__(
        self,
        name: str,
        active: bool = True,
        print: bool = True,
        detailed: bool = False,
        dict: dict[str, list[float]] | None = None,
        use_nvtx: bool = False,
        color: Any = "rapids",
        synchronize: bool = False,
        cuda_filter: int = 0,
        report_func: Any = None,
        skip_tape: bool = False,
    ) -> None:
        self.name = name
        self.active = active
        self.print = print
        self.dict = dict
        self.report_func = report_func
        self.skip_tape = skip_tape
        self.synchronize = synchronize
        self.elapsed = 0.0
        self.timing_results: list[Any] = []
        self._recorder: Recorder | None = None
        self._start = 0.0
        if dict is not None and name not in dict:
            dict[name] = []

    def __enter__(self) -> ScopedTimer:
        if not self.skip_tape and (recorder := current_recorder()) is not None:
            self._recorder = recorder
            recorder.begin_scope(self.name)
        if self.active:
            ScopedTimer._depth += 1
            if self.synchronize:
                synchronize_devices()
            self._start = time.perf_counter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.active:
            if self.synchronize and error is None:
                synchronize_devices()
            self.elapsed = (time.perf_counter() - self._start) * 1000.0
            if self.dict is not None:
                self.dict[self.name].append(self.elapsed)
            indent = "  " * (ScopedTimer._depth - 1)
            ScopedTimer._depth -= 1
            if self.report_func is not None:
                self.report_func(self.timing_results, indent)
            elif self.print:
                _print(f"{indent}{self.name} took {self.elapsed:.2f} ms")
        if self._recorder is not None:
            self._recorder.end_scope()
            self._recorder = None


_print = print
