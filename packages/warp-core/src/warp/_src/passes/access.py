"""Memory accesses of a kernel: who touches what, whether threads may meet, and which loads cannot be repeated.

See GRADIENTS.md, sections 2 and 4.3, as described in docs/internals/gradients.md.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeGuard

from warp._src.ir.core import Function, Region, Value
from warp._src.ir.ops import (
    Atomic,
    Call,
    Extract,
    Invoke,
    Load,
    Loop,
    Native,
    Op,
    ReverseLoop,
    Space,
    Store,
    ThreadIndex,
    View,
)
from warp._src.passes.affine import Affine, AffineForms
from warp._src.passes.inline import has_custom_adjoint
from warp._src.passes.native_text import only_reads, uses
from warp._src.passes.views import Axes, root_indices, viewed_axes, whole_axes
from warp._src.types.arrays import ArrayType, IndexedArrayType
from warp._src.types.scalars import is_int
from warp._src.types.signature import is_array

# Position in the index list, and constant and terms of the affine form that stands there.
ThreadPosition = tuple[int, tuple[int, frozenset[tuple[Value, int]]]]

# An array that a kernel can name: parameter index and the fields that lead to it. None: could be any array.
Root = tuple["int | str", ...]


@dataclass(frozen=True, eq=False)
class Access:
    """One operation on an array: where, on what, and under which loops."""

    op: Op
    root: Root | None
    space: Space
    indices: tuple[Affine, ...] | None  # None: any index
    path: tuple[int | str | None, ...]
    position: int  # in program order
    loops: tuple[Op, ...]  # the loops around it, outermost first
    is_read: bool
    is_write: bool
    may_wrap: bool  # an index may be negative: it counts from the end then, which its affine form does not show


@dataclass(frozen=True)
class AccessSummary:
    """What a launch needs to know of a kernel's memory behaviour."""

    reads: frozenset[tuple[Root | None, Space]]
    writes: frozenset[tuple[Root | None, Space]]
    covered: frozenset[int]  # launch dimensions in which every written array keeps threads apart
    own: frozenset[tuple[Root, int]]  # arrays, with their rank, of which a thread uses the element at its index alone

    def is_independent(self, dimensions: frozenset[int]) -> bool:
        """Tell whether no two threads of a launch meet whose size exceeds 1 in `dimensions`."""
        return dimensions <= self.covered


class AccessAnalysis:
    """Collects the accesses of one inlined kernel.

    `may_alias` says that arrays given to different parameters may overlap; `dimensions` names the launch
    dimensions that have more than one thread.
    """

    def __init__(
        self, function: Function, may_alias: bool = False, dimensions: frozenset[int] = frozenset(range(4))
    ) -> None:
        self.function = function
        self._may_alias = may_alias
        self._dimensions = dimensions
        self._definitions: dict[Value, Op] = {}
        self._loops_of: dict[Value, tuple[Op, ...]] = {}
        self._iterations: dict[Value, Op] = {}
        self._threads: dict[Value, int] = {}  # the first ThreadIndex result of each dimension
        self._roots: dict[Value, tuple[Root | None, Axes | None]] = {
            param: ((number,), whole_axes(param.type)) for number, param in enumerate(function.params)
        }
        self._thread_values: dict[int, Value] = {}
        self._wrapping: set[Value] = set()  # views whose place may be counted from the end
        self.accesses: list[Access] = []
        self._positions = itertools.count()
        self._affine = AffineForms(self._definitions)
        self._visit(function.body, ())

    # -- results ---------------------------------------------------------------------------------------

    def summary(self) -> AccessSummary:
        reads = frozenset((a.root, a.space) for a in self.accesses if a.is_read)
        writes = frozenset((a.root, a.space) for a in self.accesses if a.is_write)
        covered: frozenset[int] = frozenset(range(4))
        for root, space in writes:
            covered &= self._covered(root, space)
        return AccessSummary(reads, writes, covered, self._own())

    def needs_order(self, atomic: Atomic) -> bool:
        """Tell whether the final extremum does not say who won: others write to the array, or read it in between."""
        root = next(access.root for access in self.accesses if access.op is atomic)
        for access in self.accesses:
            if access.space is not atomic.space or not self._same_array(access.root, root):
                continue
            if isinstance(access.op, Load) and access.op.hazard:
                return True
            if isinstance(access.op, Atomic) and access.op is not atomic and self._used.intersection(access.op.results):
                return True
            if access.is_write and not (isinstance(access.op, Atomic) and access.op.kind == atomic.kind):
                return True
        return False

    @cached_property
    def _used(self) -> frozenset[Value]:
        return frozenset(operand for op in self.function.walk() for operand in op.operands)

    def hazard(self, load: Access) -> str:
        """Tell why a load could give another value after the kernel has run, or "" if it gives the same."""
        for write in self.accesses:
            if write.is_write and write.space is load.space and self._may_overwrite(load, write):
                what = "an atomic" if isinstance(write.op, Atomic) else "a store"
                if isinstance(write.op, Native):
                    what = "native code"
                return f"{what} in line {write.op.loc.line} may overwrite what line {load.op.loc.line} reads"
        return ""

    def native_hazards(self, op: Native) -> list[str]:
        """Tell which arrays that the adjoint of native code reads may be changed by other operations of the kernel."""
        used = {operand for operand, name in zip(op.operands, op.names, strict=True) if uses(op.adjoint_snippet, name)}
        roots = [self._root_of(operand)[0] for operand in op.operands if operand in used and is_array(operand.type)]
        return [
            f"the write in line {write.op.loc.line} may change what the adjoint of native code in line {op.loc.line} "
            "reads"
            for write in self.accesses
            if write.is_write and write.space is Space.PRIMAL and write.op is not op
            if any(self._same_array(root, write.root) for root in roots)
        ]

    def _own(self) -> frozenset[tuple[Root, int]]:
        """The arrays, with their rank, of which a thread uses no element but the one at its own index."""
        ranks: dict[Root | None, int | None] = {}
        for access in self.accesses:
            rank = self._own_rank(access)
            ranks[access.root] = rank if ranks.setdefault(access.root, rank) == rank else None
        if None in ranks:
            return frozenset()
        return frozenset((root, rank) for root, rank in ranks.items() if root is not None and rank is not None)

    def _own_rank(self, access: Access) -> int | None:
        """The number of indices of an access if they are the thread's own."""
        for axis, form in enumerate(access.indices or ()):
            if form.constant or form.terms != {self._thread_values.get(axis): 1}:
                return None
        return None if access.indices is None else len(access.indices)

    # -- which threads can meet ------------------------------------------------------------------------

    def _covered(self, root: Root | None, space: Space) -> frozenset[int]:
        """Launch dimensions whose index occurs in the same way in every access to an array.

        Two threads that differ in such a dimension touch different elements.
        """
        if root is None:
            return frozenset()
        shared: dict[int, ThreadPosition] | None = None
        for access in self.accesses:
            if access.space is not space or not self._same_array(access.root, root):
                continue
            if access.indices is None or access.root is None:
                return frozenset()
            found = self._thread_positions(access.indices, access.may_wrap)
            if shared is None:
                shared = found
            else:
                shared = {d: form for d, form in found.items() if shared.get(d) == form}
        return frozenset(shared or {})

    def _thread_positions(self, indices: tuple[Affine, ...], may_wrap: bool) -> dict[int, ThreadPosition]:
        """For each thread dimension: the index position where it alone varies between threads, and its form."""
        found: dict[int, ThreadPosition] = {}
        for position, form in enumerate(indices):
            if may_wrap and form.constant < 0:
                continue  # the first and the last threads may meet
            threads = [value for value in form.terms if value in self._threads]
            others = [value for value in form.terms if value not in self._threads]
            if len(threads) == 1 and all(self._is_uniform(value) for value in others):
                key = (form.constant, frozenset(form.terms.items()))
                found.setdefault(self._threads[threads[0]], (position, key))
        return found

    def _is_uniform(self, value: Value) -> bool:
        """Tell whether a value is the same for all threads: a parameter."""
        return value in self.function.params

    def _same_array(self, left: Root | None, right: Root | None) -> bool:
        return left is None or right is None or left == right or self._may_alias

    def keeps_threads_apart(self, access: Access) -> bool:
        """Tell whether an access is to another element in every thread, as far as indices show."""
        return access.indices is not None and self._dimensions <= frozenset(
            self._thread_positions(access.indices, access.may_wrap)
        )

    def may_meet_others(self, load: Access, write: Access, is_same: bool) -> bool:
        """Tell whether another thread may write an element that a load reads.

        Where both are at the same index, which is not known, it is taken to be that of one thread only. `is_same`:
        arrays of different parameters that overlap are one and the same.
        """
        if load.root != write.root and None not in (load.root, write.root):
            if not self._may_alias:
                return False
            if not is_same:
                return True
        if _paths_differ(load.path, write.path):
            return False
        indices = getattr(load.op, "indices", None)
        is_own = indices is not None and indices == getattr(write.op, "indices", None)
        if load.indices is None or write.indices is None or len(load.indices) != len(write.indices):
            return not is_own
        pairs = [(w - r, r) for w, r in zip(write.indices, load.indices, strict=True)]
        if any(difference.constant and not difference.terms and not self._varies(read) for difference, read in pairs):
            return False
        equal = [read for difference, read in pairs if not difference.constant and not difference.terms]
        if len(equal) == len(pairs) and any(self._is_unknown(value) for read in equal for value in read.terms):
            return False
        apart = self._thread_positions(tuple(equal), load.may_wrap or write.may_wrap)
        return not self._dimensions <= frozenset(apart)

    def _is_unknown(self, value: Value) -> bool:
        return not (value in self._threads or self._is_uniform(value) or value in self._iterations)

    def _varies(self, form: Affine) -> bool:
        return not all(self._is_uniform(value) for value in form.terms)

    # -- which loads can be repeated -------------------------------------------------------------------

    def _may_overwrite(self, load: Access, write: Access) -> bool:
        if not self._same_array(load.root, write.root):
            return False
        if load.root != write.root or load.root is None or load.indices is None or write.indices is None:
            return True
        if _paths_differ(load.path, write.path):
            return False
        if len(load.indices) != len(write.indices):
            return True
        # Forms that differ by a constant may be one element where one of them is negative and counts from the end.
        wraps = [
            (load.may_wrap or write.may_wrap) and (w.constant < 0 or r.constant < 0)
            for w, r in zip(write.indices, load.indices, strict=True)
        ]
        if any(wraps):
            return True
        pairs = [(w - r, r) for w, r in zip(write.indices, load.indices, strict=True)]
        return self._other_thread_may_meet(load, pairs) or self._same_thread_may_meet(load, write, pairs)

    def _other_thread_may_meet(self, load: Access, pairs: list[tuple[Affine, Affine]]) -> bool:
        if self._dimensions <= self._covered(load.root, load.space):
            return False
        # Without a common injective index only forms that are the same for every thread can be compared.
        return not any(
            difference.constant and not difference.terms and all(self._is_uniform(v) for v in read.terms)
            for difference, read in pairs
        )

    def _same_thread_may_meet(self, load: Access, write: Access, pairs: list[tuple[Affine, Affine]]) -> bool:
        common = [a for a, b in zip(load.loops, write.loops) if a is b]  # noqa: B905 - a common prefix
        is_later = write.position > load.position
        if is_later and not any(difference.constant and not difference.terms for difference, _ in pairs):
            return True
        for level in range(len(common)):
            if load.may_wrap or write.may_wrap:
                return True
            if not any(self._never_equal(pair, common, level) for pair in pairs):
                return True
        return False

    def _never_equal(self, pair: tuple[Affine, Affine], common: list[Op], level: int) -> bool:
        """Prove that a write in a later iteration of loop `level` does not touch what was read.

        Outer loops are at the same iteration, inner ones anywhere. `pair` holds the difference of the index
        forms, which compares values of one iteration, and the form of the load.
        """
        difference, read = pair
        inner = set(common[level + 1 :])
        for value in read.terms:
            owner = self._iterations.get(value)
            if owner is common[level]:
                continue
            # A value that inner iterations or this loop's body compute anew cannot be compared across them.
            if owner in inner or any(loop in common[level:] for loop in self._loops_of.get(value, ())):
                return False
        if difference.terms:
            return False
        step = sum(c for value, c in read.terms.items() if self._iterations.get(value) is common[level])
        if step == 0:
            return difference.constant != 0
        # Equal iff step * delta + constant == 0 for some delta >= 1.
        delta, remainder = divmod(-difference.constant, step)
        return remainder != 0 or delta < 1

    # -- collecting ------------------------------------------------------------------------------------

    def _visit(self, region: Region, loops: tuple[Op, ...]) -> None:
        for op in region.ops:
            for result in op.results:
                self._definitions[result] = op
                self._loops_of[result] = loops
            self._visit_op(op, loops)

    def _visit_op(self, op: Op, loops: tuple[Op, ...]) -> None:
        if isinstance(op, ThreadIndex):
            self._bind_threads(op)
        elif isinstance(op, View):
            self._visit_view(op)
        elif isinstance(op, Extract) and isinstance(op.result.type, (ArrayType, IndexedArrayType)):
            self._roots[op.result] = (self._member_root(op), whole_axes(op.result.type))
        elif isinstance(op, (Load, Store)):
            self._add(op, loops)
        elif isinstance(op, Invoke):
            self._visit_call(op, loops)
        elif isinstance(op, Native):
            for name, operand in zip(op.names, op.operands, strict=True):
                if is_array(operand.type):
                    for space in Space:
                        self._add_any(op, operand, space, loops, not only_reads(op.snippet, name))
        self._visit_regions(op, loops)

    def _visit_view(self, op: View) -> None:
        root, axes = self._root_of(op.operands[0])
        forms = [self._affine.of(operand) for operand in op.operands[1:]]
        self._roots[op.result] = (root, viewed_axes(op, axes, forms))
        if self._has_wrapping(op.operands):
            self._wrapping.add(op.result)

    def _bind_threads(self, op: ThreadIndex) -> None:
        """Make all values of one thread dimension stand for the first."""
        for dimension, result in enumerate(op.results):
            first = self._thread_values.setdefault(dimension, result)
            self._threads[first] = dimension
            if result is not first:
                self._affine.set(result, Affine(0, {first: 1}))

    def _member_root(self, op: Extract) -> Root | None:
        """The root of an array that is a member of a struct parameter."""
        root, _ = self._root_of(op.operands[0])
        fields = tuple(step for step in op.path if step is not None)
        return None if root is None or len(fields) < len(op.path) else (*root, *fields)

    def _visit_regions(self, op: Op, loops: tuple[Op, ...]) -> None:
        inner = (*loops, op) if isinstance(op, (Loop, ReverseLoop)) else loops
        for region in op.regions:
            for arg in region.args:
                self._loops_of[arg] = inner
            if isinstance(op, (Loop, ReverseLoop)) and region is not getattr(op, "condition", None) and region.args:
                self._iterations[region.args[0]] = op
            self._visit(region, inner)

    def _visit_call(self, op: Invoke, loops: tuple[Op, ...]) -> None:
        """Visit the body of a call, and what its own gradient reads when the call is reversed."""
        function = op.function
        if not has_custom_adjoint(function):
            return  # a shared function, which takes no arrays
        self._bind(function, op.operands, loops)
        self._visit(function.body, loops)
        self._bind_results(op, function)
        if function.custom_gradient is not None:
            before = len(self.accesses)
            self._bind(function.custom_gradient, op.operands, loops)
            self._visit(function.custom_gradient.body, loops)
            self.accesses[before:] = [a for a in self.accesses[before:] if not a.is_write and a.space is Space.PRIMAL]

    def _bind(self, function: Function, operands: tuple[Value, ...], loops: tuple[Op, ...]) -> None:
        for arg, operand in zip(function.body.args, operands):  # noqa: B905 - adjoints follow the parameters
            self._loops_of[arg] = self._loops_of.get(operand, ())
            if isinstance(operand.type, (ArrayType, IndexedArrayType)):
                self._roots[arg] = self._root_of(operand)
            elif is_int(operand.type):
                self._affine.set(arg, self._affine.of(operand))
        for arg in function.body.args[len(operands) :]:
            self._loops_of[arg] = loops

    def _bind_results(self, op: Invoke, function: Function) -> None:
        for result, value in zip(op.results, function.body.terminator.operands, strict=True):
            if is_int(result.type):
                self._affine.set(result, self._affine.of(value))

    def _root_of(self, array: Value) -> tuple[Root | None, Axes | None]:
        return self._roots.get(array, (None, None))

    def _add(self, op: Load | Store, loops: tuple[Op, ...]) -> None:
        root, axes = self._root_of(op.array)
        indices = None if axes is None else root_indices(axes, [self._affine.of(index) for index in op.indices])
        is_write = isinstance(op, Store)
        is_read = isinstance(op, (Load, Atomic))
        if isinstance(op.array.type, IndexedArrayType):
            indices_known = None  # two indices may name one element
        else:
            indices_known = indices
        self.accesses.append(
            Access(
                op,
                root,
                op.space,
                indices_known,
                op.path,
                next(self._positions),
                loops,
                is_read,
                is_write,
                self._has_wrapping(op.operands),
            )
        )

    def _has_wrapping(self, operands: Iterable[Value]) -> bool:
        """Tell whether an index among operands, or of what a view among them is a view of, may be negative."""
        for operand in operands:
            op = self._definitions.get(operand)
            if operand in self._wrapping or (isinstance(op, Call) and op.builtin.name == "index_from_start"):
                return True
        return False

    def _add_any(self, op: Op, array: Value, space: Space, loops: tuple[Op, ...], is_write: bool) -> None:
        root, _ = self._root_of(array)
        self.accesses.append(Access(op, root, space, None, (), next(self._positions), loops, True, is_write, True))


def mark_hazards(function: Function, *, may_alias: bool, dimensions: frozenset[int]) -> None:
    """Note on each load of an inlined kernel, in place, why it cannot be repeated after the kernel ran.

    Those loads, all atomics, and native code that reads memory get a number, by which their values can be recorded.
    """
    analysis = AccessAnalysis(function, may_alias, dimensions)
    hazards: dict[Op, str] = {
        access.op: text
        for access in analysis.accesses
        if isinstance(access.op, Load) and (text := analysis.hazard(access))
    }
    _mark(function.body, hazards, itertools.count())


def _mark(region: Region, hazards: dict[Op, str], ids: Iterator[int] | None) -> None:
    for number, op in enumerate(region.ops):
        if op in hazards and isinstance(op, Load):
            region.ops[number] = replace(op, hazard=hazards[op], record_id=None if ids is None else next(ids))
        elif ids is not None and _gives_what_memory_held(op):
            region.ops[number] = replace(op, record_id=next(ids))
        for inner in op.regions:
            _mark(inner, hazards, ids)
        if isinstance(op, Invoke):
            _mark(op.function.body, hazards, ids)
            if op.function.custom_gradient is not None:
                # What a custom gradient reads itself is read during the backward pass only.
                _mark(op.function.custom_gradient.body, hazards, None)


def _gives_what_memory_held(op: Op) -> TypeGuard[Native | Atomic]:
    """Tell whether an operation that must not run again may give a value of memory."""
    if isinstance(op, Native) and op.replay_snippet is None:
        return bool(op.results) and any(is_array(operand.type) for operand in op.operands)
    return isinstance(op, Atomic) and op.space is Space.PRIMAL


def _paths_differ(left: Iterable[int | str | None], right: Iterable[int | str | None]) -> bool:
    """Tell whether two paths lead to disjoint components."""
    for a, b in zip(left, right):  # noqa: B905 - the shorter path covers the longer
        # A dynamic component may be any; a name against a number is a part of a transform against a component.
        if a is None or b is None or isinstance(a, str) != isinstance(b, str):
            return False
        if a != b:
            return True
    return False
