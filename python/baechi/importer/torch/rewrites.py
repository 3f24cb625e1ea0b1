# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rewrites of what torch-mlir's pipeline leaves in a module of linalg on tensors.

A scatter becomes a loop over the rows that it touches; a concatenation inserts
its parts; the bounds checks of look-ups, which are effects, become results that
are no numbers; numbers that are truncated in every element are truncated here;
large powers are no products.
"""

from __future__ import annotations

from torch_mlir import ir
from torch_mlir.dialects import arith, linalg, math, tensor

from baechi.importer.common.module import concatenate, replace_operations

_MOST_BY_PRODUCTS = 16  # those of singles are within 1e-6


def rewrite(module: ir.Module) -> None:
    """All rewrites, in place, inside the module's own context."""
    replace_operations(ir, module, _REWRITES)
    # Those that no bounds check stood beside.
    replace_operations(ir, module, {"tensor.extract": _lookup})


def _index(value: int) -> ir.Value:
    return arith.constant(ir.IndexType.get(), value)


def _concatenate(operation):
    result_type = ir.RankedTensorType(operation.results[0].type)
    axis = ir.IntegerAttr(operation.attributes["dim"]).value
    return [concatenate(ir, list(operation.operands), result_type, axis)]


def _assertion(operation):
    """The look-ups beside it stay within their tensors, and what they give is no
    number where the checked condition does not hold."""
    beside = [other.operation for other in operation.block.operations]
    lookups = [other for other in beside if other.name == "tensor.extract"]
    if not lookups:
        return None  # a check of something else: left, and reported
    (condition,) = operation.operands
    for lookup in lookups:
        shape = ir.RankedTensorType(lookup.operands[0].type).shape
        for position, size in enumerate(shape):
            index = lookup.operands[position + 1]
            if not _is_bounded(index):
                with ir.InsertionPoint(lookup), lookup.location:
                    lookup.operands[position + 1] = _limited(index, size)
        (found,) = lookup.results
        if isinstance(found.type, ir.FloatType):
            following = beside[beside.index(lookup) + 1]
            with ir.InsertionPoint(following), lookup.location:
                nothing = arith.constant(found.type, float("nan"))
                checked = arith.select(condition, found, nothing)
            found.replace_all_uses_except(checked, checked.owner.operation)
    return []


def _lookup(operation):
    """Stays within its tensor, and is no number where an index that was computed from
    data does not."""
    source, *indices = operation.operands
    inside = None
    for position, size in enumerate(ir.RankedTensorType(source.type).shape):
        index = indices[position]
        if _is_bounded(index) or not _is_of_data(index):
            continue
        within = arith.cmpi(arith.CmpIPredicate.ult, index, _index(size))
        inside = within if inside is None else arith.andi(inside, within)
        indices[position] = _limited(index, size)
    if inside is None:
        return None
    found = tensor.extract(source, indices)
    if not isinstance(found.type, ir.FloatType):
        return [found]
    return [arith.select(inside, found, arith.constant(found.type, float("nan")))]


def _is_of_data(value: ir.Value) -> bool:
    """Not of positions and constants alone."""
    owner = value.owner
    if not isinstance(owner, (ir.Operation, ir.OpView)):
        return True  # an element of an operand
    if owner.operation.name == "tensor.extract":
        return True
    return any(_is_of_data(operand) for operand in owner.operation.operands)


def _is_bounded(index: ir.Value) -> bool:
    owner = index.owner
    known = ("linalg.index", "arith.constant", "arith.maxsi")
    return isinstance(owner, (ir.Operation, ir.OpView)) and owner.operation.name in known


def _limited(index: ir.Value, size: int) -> ir.Value:
    return arith.maxsi(arith.minsi(index, _index(size - 1)), _index(0))


def _scatter(operation):
    """-> a loop that combines one row of the result after the other with the
    updates, in their order."""
    updates, indices, original = operation.operands
    result_type = ir.RankedTensorType(operation.results[0].type)
    update_shape = ir.RankedTensorType(updates.type).shape
    count, depth = ir.RankedTensorType(indices.type).shape
    dimensions = list(ir.DenseI64ArrayAttr(operation.attributes["dimension_map"]))
    rank = result_type.rank
    if len(update_shape) == rank + 1:
        if any(update_shape[1 + d] != 1 for d in dimensions):
            return None  # windows: left, and reported
        window = [s for d, s in enumerate(update_shape[1:]) if d not in dimensions]
        update_sizes = [1, *update_shape[1:]]
    else:
        window = list(update_shape[1:])
        update_sizes = [1, *window]
    row_type = ir.RankedTensorType.get(window, result_type.element_type)
    free = iter(window)
    row_sizes = [1 if d in dimensions else next(free) for d in range(rank)]

    loop = ir.Operation.create(
        "scf.for",
        results=[result_type],
        operands=[_index(0), _index(count), _index(1), _start(original)],
        regions=1,
    )
    body = loop.regions[0].blocks.append(
        ir.IndexType.get(), result_type, arg_locs=[operation.location] * 2
    )
    row, carried = body.arguments
    with ir.InsertionPoint(body):
        offsets = [None] * rank
        for j, dimension in enumerate(dimensions):
            at = tensor.extract(indices, [row, _index(j)])
            at = arith.index_cast(ir.IndexType.get(), at)
            size = result_type.shape[dimension]
            # Negative ones count from the end.
            negative = arith.cmpi(arith.CmpIPredicate.slt, at, _index(0))
            at = arith.select(negative, arith.addi(at, _index(size)), at)
            offsets[dimension] = _limited(at, size)
        update = _slice(updates, row_type, [row] + [None] * (len(update_sizes) - 1), update_sizes)
        old = _slice(carried, row_type, offsets, row_sizes)
        new = _combine(operation, update, old, row_type)
        inserted = ir.Operation.create(
            "tensor.insert_slice",
            results=[result_type],
            operands=[new, carried, *filter(None, offsets)],
            attributes=_position(offsets, row_sizes, [1, 1]),
        )
        ir.Operation.create("scf.yield", operands=list(inserted.results))
    return loop.results


def _start(original: ir.Value) -> ir.Value:
    """A constant that is one number throughout as a fill, which is not stored."""
    owner = original.owner
    if isinstance(owner, ir.Block) or owner.operation.name != "arith.constant":
        return original
    value = ir.DenseElementsAttr(owner.attributes["value"])
    if not value.is_splat:
        return original
    element = ir.Operation.create(
        "arith.constant",
        results=[ir.RankedTensorType(original.type).element_type],
        attributes={"value": value.get_splat_value()},
    )
    empty = ir.Operation.create("tensor.empty", results=[original.type])
    return linalg.fill(element.results[0], outs=[empty.results[0]])


def _slice(source, result_type, offsets, sizes) -> ir.Value:
    return ir.Operation.create(
        "tensor.extract_slice",
        results=[result_type],
        operands=[source, *filter(None, offsets)],
        attributes=_position(offsets, sizes, [1]),
    ).results[0]


def _position(offsets, sizes, operands) -> dict[str, ir.Attribute]:
    """An offset is a value, or None for 0."""
    dynamic = ir.ShapedType.get_dynamic_stride_or_offset()
    known = [0 if offset is None else dynamic for offset in offsets]
    segments = [*operands, sum(offset is not None for offset in offsets), 0, 0]
    return {
        "static_offsets": ir.DenseI64ArrayAttr.get(known),
        "static_sizes": ir.DenseI64ArrayAttr.get(sizes),
        "static_strides": ir.DenseI64ArrayAttr.get([1] * len(sizes)),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get(segments),
    }


def _combine(scatter, update, old, row_type) -> ir.Value:
    """The scatter's own body, on whole rows: it takes an update and an old
    element, as linalg.generic does."""
    identity = ir.AffineMapAttr.get(ir.AffineMap.get_identity(row_type.rank))
    parallel = ir.Attribute.parse("#linalg.iterator_type<parallel>")
    generic = ir.Operation.create(
        "linalg.generic",
        results=[row_type],
        operands=[update, old],
        attributes={
            "indexing_maps": ir.ArrayAttr.get([identity, identity]),
            "iterator_types": ir.ArrayAttr.get([parallel] * row_type.rank),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 1]),
        },
        regions=1,
    )
    scatter.regions[0].blocks[0].append_to(generic.regions[0])
    block = generic.regions[0].blocks[0]
    end = block.operations[len(block.operations) - 1].operation
    with ir.InsertionPoint(end), end.location:
        ir.Operation.create("linalg.yield", operands=list(end.operands))
    end.erase()
    return generic.results[0]


def _truncation(operation):
    """Of a constant: the constant in the narrow type, rounded to nearest."""
    owner = operation.operands[0].owner
    if isinstance(owner, ir.Block) or owner.operation.name != "arith.constant":
        return None
    if not isinstance(operation.results[0].type, ir.FloatType):
        return None
    value = ir.FloatAttr(owner.attributes["value"]).value
    rounded = ir.FloatAttr.get(operation.results[0].type, value)
    function = operation.parent
    while function.operation.name != "func.func":
        function = function.operation.parent
    with ir.InsertionPoint.at_block_begin(function.regions[0].blocks[0]):
        constant = ir.Operation.create(
            "arith.constant",
            results=[operation.results[0].type],
            attributes={"value": rounded},
        )
    return constant.results


def _power(operation):
    """Of a large whole exponent: by logarithms. Products round once for each, and the exponent
    of host code has 32 bits."""
    base, exponent = operation.operands
    owner = exponent.owner
    if isinstance(owner, ir.Block) or owner.operation.name != "arith.constant":
        return [math.powf(base, arith.sitofp(base.type, exponent))]
    number = ir.IntegerAttr(owner.attributes["value"]).value
    if abs(number) <= _MOST_BY_PRODUCTS:
        return None
    double = ir.F64Type.get()  # where odd exponents stay odd
    if base.type == double or ir.FloatAttr.get(base.type, number).value == number:
        return [math.powf(base, arith.constant(base.type, float(number)))]
    found = math.powf(arith.extf(double, base), arith.constant(double, float(number)))
    return [arith.truncf(base.type, found)]


_REWRITES = {
    "tensor.concat": _concatenate,
    "cf.assert": _assertion,
    "tm_tensor.scatter": _scatter,
    "arith.truncf": _truncation,
    "math.fpowi": _power,
}
