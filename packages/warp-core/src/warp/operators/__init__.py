"""Kernels, and functions of launches, as differentiable operators of other frameworks.

A bridge makes its one-call operator (`warp.torch_op`, `warp.paddle_op`) of an `Operator`, which checks arguments,
allocates outputs, runs the function and computes adjoints, all on the framework's tensors. What is left to the bridge
is to tell the framework's differentiation about it.
"""

from __future__ import annotations

from warp.operators.computation import Computation as Computation
from warp.operators.computation import Dims as Dims
from warp.operators.operator import Operator as Operator
from warp.operators.parameters import Parameter as Parameter
from warp.operators.parameters import is_differentiable as is_differentiable
from warp.operators.parameters import parameters_of as parameters_of
from warp.operators.parameters import split_element as split_element
from warp.operators.tensors import Tensors as Tensors

__all__ = [
    "Computation",
    "Dims",
    "Operator",
    "Parameter",
    "Tensors",
    "is_differentiable",
    "parameters_of",
    "split_element",
]
