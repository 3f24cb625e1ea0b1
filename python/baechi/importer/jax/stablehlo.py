# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rewrites of StableHLO that run before `stablehlo-legalize-to-linalg`.

They replace what that pass leaves alone (control flow, scatters) or lowers
badly (concatenation becomes a loop with a branch for every element).
"""

from __future__ import annotations

import itertools

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

from baechi.importer.common.module import attribute_names, concatenate, replace_operations
from baechi.importer.jax import threefry
from baechi.importer.jax.scatter import scatter


def rewrite(module: ir.Module) -> None:
    """All rewrites, in place, inside the module's own context."""
    # First: it looks at how indices are computed.
    replace_operations(ir, module, {stablehlo.ScatterOp.OPERATION_NAME: scatter})
    replace_operations(ir, module, _REWRITES)


def _concatenate(operation):
    """-> tensor.insert_slice of every part at its constant offset."""
    result_type = ir.RankedTensorType(operation.results[0].type)
    axis = ir.IntegerAttr(operation.attributes["dimension"]).value
    return [concatenate(ir, list(operation.operands), result_type, axis)]


def _while(operation):
    """-> scf.while; the condition's operands are the carried values."""
    loop = ir.Operation.create(
        "scf.while", results=_types(operation), operands=list(operation.operands), regions=2
    )
    _move_regions(operation, loop)
    before, after = (region.blocks[0] for region in loop.regions)
    end = _terminator(before)
    with ir.InsertionPoint(end), end.location:
        operands = [_scalar(end.operands[0]), *before.arguments]
        ir.Operation.create("scf.condition", operands=operands)
    end.erase()
    _yield(after)
    return loop.results


def _case(operation):
    """-> scf.index_switch. The last branch is the default: StableHLO takes it
    for every index out of range."""
    count = len(operation.regions)
    index = ir.Operation.create(
        "arith.index_cast", results=[ir.IndexType.get()], operands=[_scalar(operation.operands[0])]
    ).results[0]
    switch = ir.Operation.create(
        "scf.index_switch",
        results=_types(operation),
        operands=[index],
        attributes={"cases": ir.DenseI64ArrayAttr.get(range(count - 1))},
        regions=count,
    )
    # The default region comes first.
    _move_regions(operation, switch, order=[*range(1, count), 0])
    for region in switch.regions:
        _yield(region.blocks[0])
    return switch.results


def _product(operation):
    """Products of 16-bit floats are summed up in f32, as XLA does, and rounded once.
    Products without factors are zeros. Unsigned factors and booleans get the result's type
    first: linalg takes the narrower of two integers as signed."""
    narrow = ir.RankedTensorType(operation.results[0].type)
    if any(_is_empty(operand) for operand in operation.operands):
        element = narrow.element_type
        integer = isinstance(element, ir.IntegerType)
        zero = ir.IntegerAttr.get(element, 0) if integer else ir.FloatAttr.get(element, 0.0)
        return [stablehlo.ConstantOp(ir.DenseElementsAttr.get_splat(narrow, zero)).result]
    half = narrow.element_type in (ir.BF16Type.get(), ir.F16Type.get())
    wide = ir.RankedTensorType.get(narrow.shape, ir.F32Type.get()) if half else narrow
    factors = [_extended(factor, wide.element_type) for factor in operation.operands]
    names = [
        name
        for name in attribute_names(operation)
        if name != "algorithm" or not _is_as_precise(operation)
    ]
    if not half and factors == list(operation.operands) and names == attribute_names(operation):
        return None
    exact = ir.Operation.create(
        operation.name,
        results=[wide],
        operands=factors,
        attributes={name: operation.attributes[name] for name in names},
    )
    return [stablehlo.ConvertOp(narrow, exact.results[0]).result if half else exact.results[0]]


def _is_as_precise(product) -> bool:
    """Whether a product without its `algorithm` is at least as precise as with it: factors are
    not rounded, and the sums are asked for in the type that they have. XLA computes so on
    processors, too."""
    algorithm = stablehlo.DotAlgorithm(product.attributes["algorithm"])
    narrow = [ir.BF16Type.get(), ir.F16Type.get(), ir.F32Type.get()]
    sums, result = algorithm.accumulation_type, ir.RankedTensorType(product.results[0].type)
    if sums == ir.F32Type.get():
        kinds = [ir.RankedTensorType(operand.type).element_type for operand in product.operands]
        return all(kind in narrow for kind in [*kinds, result.element_type])
    return sums == ir.F64Type.get() == result.element_type


def _extended(factor: ir.Value, element: ir.Type) -> ir.Value:
    """A factor whose type has no sign, as one of another type; any other as it is."""
    own = ir.RankedTensorType(factor.type)
    kind = own.element_type
    integer = isinstance(kind, ir.IntegerType)
    if kind == element or not integer or not (kind.is_unsigned or kind.width == 1):
        return factor
    return stablehlo.ConvertOp(ir.RankedTensorType.get(own.shape, element), factor).result


def _convert(operation):
    """Floats that an integer cannot hold become the nearest that it can, NaN zero, as
    XLA has it; the processor's conversion leaves them open."""
    operand = operation.operands[0]
    result_type = ir.RankedTensorType(operation.results[0].type)
    source, target = ir.RankedTensorType(operand.type).element_type, result_type.element_type
    if not isinstance(target, ir.IntegerType) or not isinstance(source, ir.FloatType):
        return None
    if target.width == 1:  # whether it is not zero
        return None
    bits = target.width if target.is_unsigned else target.width - 1
    lowest, highest = (0 if target.is_unsigned else -(2**bits)), 2**bits - 1

    def where(direction, limit, number, otherwise):
        bound = _splat(ir.RankedTensorType(operand.type), ir.FloatAttr.get(source, limit))
        return where_values(direction, bound, number, otherwise)

    def where_values(direction, bound, number, otherwise):
        # The attribute takes the bits as a signed number.
        bits_of = number - 2**64 if number >= 2**63 else number
        chosen = _splat(result_type, ir.IntegerAttr.get(target, bits_of))
        condition = stablehlo.CompareOp(
            operand, bound, stablehlo.ComparisonDirectionAttr.get(direction)
        ).result
        return stablehlo.SelectOp(condition, chosen, otherwise).result

    found = stablehlo.ConvertOp(result_type, operand).result
    found = where("GE", float(2**bits), highest, found)
    found = where("LT", float(lowest), lowest, found)
    return [where_values("NE", operand, 0, found)]


def _splat(tensor: ir.RankedTensorType, value: ir.Attribute) -> ir.Value:
    return stablehlo.ConstantOp(ir.DenseElementsAttr.get_splat(tensor, value)).result


def _multiply(operation):
    """Products with a mask choose, as in XLA: zero where it does not hold, of infinities and
    NaNs, too. Not through broadcasts, where XLA multiplies."""
    result_type = ir.RankedTensorType(operation.results[0].type)
    if not isinstance(result_type.element_type, ir.FloatType):
        return None
    for number, factor in itertools.permutations(operation.operands):
        if (mask := _mask(factor)) is not None:
            zero = _splat(result_type, ir.FloatAttr.get(result_type.element_type, 0.0))
            return [stablehlo.SelectOp(mask, number, zero).result]
    return None


def _mask(value: ir.Value) -> ir.Value | None:
    """What a tensor of ones and zeros was converted from; None for another."""
    made = value.owner
    if isinstance(made, ir.Block):
        return None
    if made.name == stablehlo.ConvertOp.OPERATION_NAME:
        source = made.operands[0]
        is_mask = ir.RankedTensorType(source.type).element_type == ir.IntegerType.get_signless(1)
        return source if is_mask else None
    if made.name not in _MOVING or (source := _mask(made.operands[0])) is None:
        return None
    shape = ir.RankedTensorType(value.type).shape
    return ir.Operation.create(
        made.name,
        results=[ir.RankedTensorType.get(shape, ir.IntegerType.get_signless(1))],
        operands=[source],
        attributes={name: made.attributes[name] for name in attribute_names(made)},
    ).results[0]


def _slice(operation):
    """An empty slice is any empty tensor: at the end of its operand it would be
    out of bounds."""
    result_type = ir.RankedTensorType(operation.results[0].type)
    if 0 not in result_type.shape:
        return None
    return ir.Operation.create("tensor.empty", results=[result_type]).results


def _pad(operation):
    """Around nothing there is only the padding. Edges that are cut (negative padding) are
    a slice of what is padded otherwise: the lowering takes them off the operand alone,
    which may have nothing there but the padding inside."""
    if _is_empty(operation.operands[0]):
        return [_filled(operation, 0, 1)]
    low, high, inside = (
        list(ir.DenseI64ArrayAttr(operation.attributes[name]))
        for name in ("edge_padding_low", "edge_padding_high", "interior_padding")
    )
    result_type = ir.RankedTensorType(operation.results[0].type)
    if min([*low, *high], default=0) >= 0:
        return None
    if 0 in result_type.shape:
        return ir.Operation.create("tensor.empty", results=[result_type]).results
    begin, end = [max(-n, 0) for n in low], [max(-n, 0) for n in high]
    whole = [n + a + b for n, a, b in zip(result_type.shape, begin, end, strict=True)]
    padded = stablehlo.PadOp(
        *operation.operands,
        [max(n, 0) for n in low],
        [max(n, 0) for n in high],
        inside,
        results=[ir.RankedTensorType.get(whole, result_type.element_type)],
    )
    limits = [n - b for n, b in zip(whole, end, strict=True)]
    return [stablehlo.SliceOp(padded.result, begin, limits, [1] * len(whole)).result]


def _reduce(operation):
    """Along no dimension nothing is reduced; without elements the initial values are left."""
    count = len(operation.results)
    if not len(ir.DenseI64ArrayAttr(operation.attributes["dimensions"])):
        return list(operation.operands)[:count]
    if not _is_empty(operation.operands[0]):
        return None
    return [_filled(operation, k, count + k) for k in range(count)]


def _random_bits(operation):
    """No bits leave the generator's state as it is."""
    result_type = ir.RankedTensorType(operation.results[1].type)
    if 0 not in result_type.shape:
        return None
    empty = ir.Operation.create("tensor.empty", results=[result_type]).results[0]
    return [operation.operands[0], empty]


def _barrier(operation):
    """Orders nothing that values do not: dropped."""
    return list(operation.operands)


_MOVING = {stablehlo.ReshapeOp.OPERATION_NAME, stablehlo.TransposeOp.OPERATION_NAME}


def _select_and_scatter(operation):
    """The element that is selected stays where `select` holds of it and the next one. What
    lowers it takes the next one where `select` holds of that and the element: of equal ones the
    last instead of the first. So its function is the other's, turned around."""
    select = operation.regions[0].blocks[0]
    selected, following = select.arguments
    turned = {selected: following, following: selected}
    for inner in select.operations:
        for number, operand in enumerate(inner.operands):
            if operand in turned:
                inner.operands[number] = turned[operand]
    end = _terminator(select)
    with ir.InsertionPoint(end), end.location:
        end.operands[0] = stablehlo.NotOp(end.operands[0]).result


_REWRITES = {
    stablehlo.ConcatenateOp.OPERATION_NAME: _concatenate,
    stablehlo.ConvertOp.OPERATION_NAME: _convert,
    stablehlo.ConvolutionOp.OPERATION_NAME: _product,
    stablehlo.DotGeneralOp.OPERATION_NAME: _product,
    stablehlo.MulOp.OPERATION_NAME: _multiply,
    stablehlo.PadOp.OPERATION_NAME: _pad,
    stablehlo.ReduceOp.OPERATION_NAME: _reduce,
    stablehlo.RngBitGeneratorOp.OPERATION_NAME: _random_bits,
    stablehlo.SelectAndScatterOp.OPERATION_NAME: _select_and_scatter,
    stablehlo.SliceOp.OPERATION_NAME: _slice,
    stablehlo.WhileOp.OPERATION_NAME: _while,
    stablehlo.CaseOp.OPERATION_NAME: _case,
    stablehlo.OptimizationBarrierOp.OPERATION_NAME: _barrier,
    stablehlo.CustomCallOp.OPERATION_NAME: threefry.generic,
}


def _types(operation) -> list[ir.Type]:
    return [result.type for result in operation.results]


def _is_empty(value: ir.Value) -> bool:
    return 0 in ir.RankedTensorType(value.type).shape


def _filled(operation, result: int, operand: int) -> ir.Value:
    """A result whose elements all are an operand of rank 0."""
    return stablehlo.BroadcastInDimOp(
        operation.results[result].type, operation.operands[operand], ir.DenseI64ArrayAttr.get([])
    ).result


def _scalar(value: ir.Value) -> ir.Value:
    """The element of a tensor of rank 0."""
    element = ir.RankedTensorType(value.type).element_type
    return ir.Operation.create("tensor.extract", results=[element], operands=[value]).results[0]


def _move_regions(source, target, order=None) -> None:
    """Moves region i of `source` to region `order[i]` of `target`."""
    for i, region in enumerate(source.regions):
        region.blocks[0].append_to(target.regions[order[i] if order else i])


def _terminator(block: ir.Block) -> ir.Operation:
    return block.operations[len(block.operations) - 1].operation


def _yield(block: ir.Block) -> None:
    end = _terminator(block)
    with ir.InsertionPoint(end), end.location:
        ir.Operation.create("scf.yield", operands=list(end.operands))
    end.erase()
