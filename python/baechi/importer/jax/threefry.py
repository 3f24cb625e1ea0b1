# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""JAX's random numbers as one elementwise operation.

Threefry-2x32 of 20 rounds (Salmon et al., SC 2011): in JAX's lowering for CPUs
a loop over whole arrays, unrolled a hundred operations whose values are used
twice. Here the primitive stays a custom call until the conversion to linalg and
becomes one `linalg.generic`, so that a random mask is one kernel.
"""

from __future__ import annotations

from jax._src.interpreters import mlir  # what JAX's own rules use
from jaxlib.mlir import ir

TARGET = "baechi.threefry2x32"
_ROTATIONS = (13, 15, 26, 6), (17, 29, 16, 24)
_PARITY = 0x1BD11BDA


def lowering(context, key1, key2, x1, x2):
    """The rule of the primitive: two keys and two counts of uint32 to two words."""
    (aval, _), rank = context.avals_out, len(context.avals_out[0].shape)
    operands = []
    for value, of in zip((key1, key2, x1, x2), context.avals_in):
        if of.shape and of.shape != aval.shape:
            dims = range(rank - len(of.shape), rank)
            value = mlir.broadcast_in_dim(context, value, aval, broadcast_dimensions=dims)
        operands.append(value)
    u32 = ir.IntegerType.get_unsigned(32)
    types = [ir.RankedTensorType.get(aval.shape, u32)] * 2
    name = {"call_target_name": ir.StringAttr.get(TARGET)}
    call = ir.Operation.create(
        "stablehlo.custom_call", results=types, operands=operands, attributes=name
    )
    return list(call.results)


def generic(operation: ir.Operation) -> list[ir.Value] | None:
    """The custom call as `linalg.generic`; None for another call."""
    if ir.StringAttr(operation.attributes["call_target_name"]).value != TARGET:
        return None
    i32 = ir.IntegerType.get_signless(32)
    given = ir.RankedTensorType(operation.results[0].type)
    type_ = ir.RankedTensorType.get(given.shape, i32)
    rank = len(given.shape)
    ins = [_cast(v, ir.RankedTensorType.get(_shape(v), i32)) for v in operation.operands]
    outs = [_create("tensor.empty", type_) for _ in range(2)]
    whole = ir.AffineMap.get_identity(rank)
    scalar = ir.AffineMap.get(rank, 0, [])
    maps = [whole if _shape(value) or rank == 0 else scalar for value in (*ins, *outs)]
    parallel = ir.Attribute.parse("#linalg.iterator_type<parallel>")
    made = ir.Operation.create(
        "linalg.generic",
        results=[type_] * 2,
        operands=[*ins, *outs],
        attributes={
            "indexing_maps": ir.ArrayAttr.get([ir.AffineMapAttr.get(each) for each in maps]),
            "iterator_types": ir.ArrayAttr.get([parallel] * rank),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([4, 2]),
        },
        regions=1,
    )
    body = ir.Block.create_at_start(made.regions[0], [i32] * 6)
    with ir.InsertionPoint(body):
        ir.Operation.create("linalg.yield", operands=_rounds(*list(body.arguments)[:4]))
    return [_cast(result, given) for result in made.results]


def _rounds(key1, key2, x1, x2):
    def op(name, left, right):
        return _create(f"arith.{name}", left.type, [left, right])

    def number(value):
        signed = value - (1 << 32) if value >> 31 else value
        return _create("arith.constant", key1.type, value=ir.IntegerAttr.get(key1.type, signed))

    keys = key1, key2, op("xori", op("xori", key1, key2), number(_PARITY))
    x1, x2 = op("addi", x1, key1), op("addi", x2, key2)
    for i in range(5):
        for left in _ROTATIONS[i % 2]:
            x1 = op("addi", x1, x2)
            rotated = op("ori", op("shli", x2, number(left)), op("shrui", x2, number(32 - left)))
            x2 = op("xori", x1, rotated)
        x1 = op("addi", x1, keys[(i + 1) % 3])
        x2 = op("addi", x2, op("addi", keys[(i + 2) % 3], number(i + 1)))
    return [x1, x2]


def _shape(value: ir.Value) -> list[int]:
    return list(ir.RankedTensorType(value.type).shape)


def _cast(value: ir.Value, type_: ir.Type) -> ir.Value:
    """Between unsigned and signless; what is left of it is dropped later."""
    return _create("builtin.unrealized_conversion_cast", type_, [value])


def _create(name: str, result: ir.Type, operands=(), **attributes: ir.Attribute) -> ir.Value:
    return ir.Operation.create(
        name, results=[result], operands=list(operands), attributes=attributes
    ).results[0]
