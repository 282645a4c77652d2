"""One call that makes a differentiable operator of the toy framework from a kernel or a function of launches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import toy

from warp.operators import Operator, Tensors
from warp_interop_toy.bridge import BRIDGE

TENSORS = Tensors(BRIDGE)


def toy_op(function: Any, **options: Any) -> Callable[..., Any]:
    """Return a function of tensors that the framework can differentiate. The options are those of `Operator`."""
    operator = Operator(TENSORS, function, **options)

    def operate(*args: Any, **keywords: Any) -> Any:
        values = operator.bind(args, keywords)
        results = operator.run(values)
        needed = [operator.is_differentiable(place, value) for place, value in enumerate(values)]

        def adjoint(adjoints: list[toy.Tensor]) -> list[toy.Tensor | None]:
            found = operator.run_adjoint(values, results, adjoints, needed)
            return [found[place] for place in operator.array_places]

        toy.record([values[place] for place in operator.array_places], results, adjoint)
        return results[0] if len(results) == 1 else tuple(results)

    return operate
