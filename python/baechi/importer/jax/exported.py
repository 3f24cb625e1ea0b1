# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of `jax.export`: their modules have StableHLO in other forms than JAX's lowering.

What has its default is left out, operations of CHLO are custom calls or composites, and a sort is
no primitive any more, for which there is a rule (rules.py).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.interpreters import mlir
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

from baechi.importer.common.module import attribute_names, replace_operations, visit_all
from baechi.importer.jax import rules
from baechi.importer.jax.inline import inline_calls

_DTYPES = (
    *(jnp.bool_, jnp.int8, jnp.int16, jnp.int32, jnp.int64, jnp.uint8, jnp.uint16),
    *(jnp.uint32, jnp.uint64, jnp.float16, jnp.bfloat16, jnp.float32, jnp.float64),
)


def rewrite(module: ir.Module) -> None:
    """In place, inside the module's own context, before calls are inlined: it makes some."""
    lowering = _Lowering(module)
    rewrites = {
        stablehlo.CompositeOp.OPERATION_NAME: lowering.composite,
        stablehlo.ConvolutionOp.OPERATION_NAME: _convolution,
        stablehlo.CustomCallOp.OPERATION_NAME: lowering.custom_call,
        stablehlo.SortOp.OPERATION_NAME: lowering.sort,
        "chlo.top_k": lowering.top_k,  # where sizes were symbolic
    }
    replace_operations(ir, module, rewrites)


def target(operation: ir.Operation) -> str:
    """The name that a custom call calls."""
    return ir.StringAttr(operation.attributes["call_target_name"]).value


def _convolution(operation: ir.Operation) -> None:
    """With the strides and dilations that it has: `stablehlo-legalize-to-linalg` copies them."""
    ones = ir.DenseI64ArrayAttr.get([1] * (ir.RankedTensorType(operation.results[0].type).rank - 2))
    given = attribute_names(operation)
    for name in ("window_strides", "lhs_dilation", "rhs_dilation"):
        if name not in given:
            operation.attributes[name] = ones


class _Lowering:
    """Operations in place of which a function of JAX is lowered, by our rules."""

    def __init__(self, module: ir.Module):
        self._body, self._symbols = module.body, ir.SymbolTable(module.operation)
        self._types = {mlir.dtype_to_ir_type(jnp.dtype(each)): each for each in _DTYPES}

    def custom_call(self, operation: ir.Operation) -> Sequence[ir.Value] | None:
        """How operations of CHLO are written up to JAX 0.9."""
        name = target(operation)
        if not name.startswith("mhlo.") or "mhlo.attributes" not in attribute_names(operation):
            return None
        given = ir.DictAttr(operation.attributes["mhlo.attributes"])
        known = {"mhlo.topk": "chlo.top_k"}.get(name, name.replace("mhlo.", "chlo.", 1))
        return self._of_chlo(known, {each.name: each.attr for each in given}, operation)

    def composite(self, operation: ir.Operation) -> Sequence[ir.Value]:
        """How they are written since JAX 0.10; of others it is what they are made of."""
        name = ir.StringAttr(operation.attributes["name"]).value
        parameters = {}
        if "composite_attributes" in attribute_names(operation):
            given = ir.DictAttr(operation.attributes["composite_attributes"])
            parameters = {each.name: each.attr for each in given}
        known = self._of_chlo(name, parameters, operation) if name.startswith("chlo.") else None
        return known or _call_of(operation.attributes["decomposition"], operation)

    def top_k(self, operation: ir.Operation) -> Sequence[ir.Value] | None:
        given = {name: operation.attributes[name] for name in attribute_names(operation)}
        return self._of_chlo(operation.name, given, operation)

    def _of_chlo(
        self, name: str, parameters: Mapping[str, ir.Attribute], operation: ir.Operation
    ) -> Sequence[ir.Value] | None:
        if name == "chlo.top_k" and {"k"} <= set(parameters) <= {"k", "is_stable"}:
            k = ir.IntegerAttr(parameters["k"]).value
            return self._call(lambda x: lax.top_k(x, k), operation)
        if parameters or not operation.context.is_registered_operation(name):
            return None
        types = [result.type for result in operation.results]
        return ir.Operation.create(name, results=types, operands=list(operation.operands)).results

    def sort(self, operation: ir.Operation) -> Sequence[ir.Value] | None:
        """By the first operands, as many as make JAX's own comparison; another one is left."""
        avals = self._avals(operation)
        if avals is None:
            return None
        dimension = ir.IntegerAttr(operation.attributes["dimension"]).value
        order = _order(operation)
        for keys in range(1, len(avals) + 1):
            if order == _order_of(avals, keys):
                return self._call(
                    lambda *xs: lax.sort(xs, dimension=dimension, num_keys=keys), operation
                )
        return None

    def _avals(self, operation: ir.Operation) -> list[jax.ShapeDtypeStruct] | None:
        types = [ir.RankedTensorType(value.type) for value in operation.operands]
        if any(each.element_type not in self._types for each in types):
            return None
        return [jax.ShapeDtypeStruct(t.shape, self._types[t.element_type]) for t in types]

    def _call(
        self, function: Callable[..., Any], operation: ir.Operation
    ) -> Sequence[ir.Value] | None:
        """A call of what JAX lowers; None where it has other types, as 64 bits without them."""
        avals = self._avals(operation)
        if avals is None:
            return None
        made = jax.jit(function).trace(*avals)
        lowered = made.lower(
            lowering_platforms=("cpu",), _private_parameters=rules.lowering_parameters()
        )
        module = ir.Module.parse(str(lowered.compiler_ir("stablehlo")))
        inline_calls(module)
        (body,) = (each.operation for each in module.body.operations)
        types = [result.type for result in operation.results]
        whole = ir.FunctionType.get([value.type for value in operation.operands], types)
        if ir.TypeAttr(body.attributes["function_type"]).value != whole:
            return None
        where = operation.location
        visit_all(ir, body, lambda each: _locate(each, where), ir.WalkOrder.PRE_ORDER)
        body.attributes["sym_visibility"] = ir.StringAttr.get("private")
        self._body.append(body)
        name = self._symbols.insert(body)
        return _call_of(ir.FlatSymbolRefAttr.get(ir.StringAttr(name).value), operation)


def _call_of(callee: ir.Attribute, operation: ir.Operation) -> Sequence[ir.Value]:
    return ir.Operation.create(
        "func.call",
        results=[result.type for result in operation.results],
        operands=list(operation.operands),
        attributes={"callee": callee},
    ).results


def _locate(operation: ir.Operation, where: ir.Location) -> None:
    operation.location = where


def _order_of(avals: Sequence[jax.ShapeDtypeStruct], keys: int) -> Any:
    """The comparison that JAX makes for a sort by the first of some operands."""
    lines = [jax.ShapeDtypeStruct((2,), aval.dtype) for aval in avals]
    sort = jax.jit(lambda *xs: lax.sort(xs, dimension=0, num_keys=keys))
    module = sort.trace(*lines).lower(lowering_platforms=("cpu",)).compiler_ir("stablehlo")
    found: list[Any] = []

    def visit(operation: ir.Operation) -> None:
        if operation.name == stablehlo.SortOp.OPERATION_NAME:
            found.append(_order(operation))

    with module.context:
        visit_all(ir, module.operation, visit, ir.WalkOrder.PRE_ORDER)
    return found[0]


def _order(sort: ir.Operation) -> Any:
    """What a sort's comparison computes of its arguments, in a form that is compared."""
    block = sort.regions[0].blocks[0]
    known: dict[ir.Value, Any] = {each: each.arg_number for each in block.arguments}

    def of(value: ir.Value) -> Any:
        made = value.owner
        if value not in known and not isinstance(made, ir.Block) and not made.operands:
            known[value] = _digest(made, []), 0  # a constant, outside
        return known.get(value, object())  # another block's is equal to none

    given: list[Any] = []
    for operation in block.operations:
        given = [of(value) for value in operation.operands]
        known |= {each: (_digest(operation, given), n) for n, each in enumerate(operation.results)}
    return given  # of the operation that ends the block


def _digest(operation: ir.Operation, given: Sequence[Any]) -> str:
    """What is computed once may be used many times: no tree of all that it is made of."""
    attributes = [(name, str(operation.attributes[name])) for name in attribute_names(operation)]
    text = repr((operation.name, sorted(attributes), given))
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
