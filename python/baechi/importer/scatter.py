# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`stablehlo.scatter` of whole rows -> a loop that touches those rows alone.

Such are `table.at[rows].add(values)`, `.set`, `.multiply`, `.max` and `.min`,
and the gradient of a look-up in a large table. A row out of range is dropped,
as StableHLO says.
"""

from __future__ import annotations

import math

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

_DYNAMIC = -(1 << 63)  # ShapedType::kDynamic


def rows_loop(operation: ir.Operation) -> list[ir.Value] | None:
    """The loop's result, made before the operation; None for another form."""
    if len(operation.operands) != 3 or not _is_of_rows(operation):
        return None
    table, indices, updates = operation.operands
    shape = _type(table).shape
    count = math.prod(_type(indices).shape)
    row = [1, *shape[1:]]
    indices = _reshaped(indices, [count])
    updates = _reshaped(updates, [count, *shape[1:]])

    loop = ir.Operation.create(
        "scf.for",
        results=[table.type],
        operands=[_index(0), _index(count), _index(1), table],
        regions=1,
    )
    index = ir.IndexType.get()
    body = ir.Block.create_at_start(loop.regions[0], [index, table.type])
    position, current = body.arguments
    with ir.InsertionPoint(body):
        found = _create("tensor.extract", _type(indices).element_type, [indices, position])
        rows = _create("arith.constant", found.type, value=_integer(found.type, shape[0]))
        # Unsigned, so that what is negative is out of range, too.
        inside = _create(
            "arith.cmpi", ir.IntegerType.get_signless(1), [found, rows],
            predicate=_integer(ir.IntegerType.get_signless(64), 6),
        )  # fmt: skip
        wide = _create("arith.index_cast", index, [found])
        safe = _create("arith.select", index, [inside, wide, _index(0)])
        old = _row(current, safe, row)
        new = _combined(operation, old, _row(updates, position, row))
        flag = _create("tensor.from_elements", _tensor([], inside.type), [inside])
        kept = _create("stablehlo.select", new.type, [flag, new, old])
        result = _create(
            "tensor.insert_slice", table.type, [kept, current, safe],
            **_slice_attributes(row, leading=[1, 1]),
        )  # fmt: skip
        ir.Operation.create("scf.yield", operands=[result])
    return list(loop.results)


def _is_of_rows(operation: ir.Operation) -> bool:
    """Whether each index is a row of the table, and a known function combines."""
    dims = stablehlo.ScatterDimensionNumbers(operation.attributes["scatter_dimension_numbers"])
    table, indices, updates = (_type(value) for value in operation.operands)
    batch = list(indices.shape)
    if dims.index_vector_dim == len(batch) - 1 and batch[-1:] == [1]:
        batch.pop()
    elif dims.index_vector_dim != len(batch):
        return False
    return (
        list(dims.inserted_window_dims) == [0]
        and list(dims.scattered_dims_to_operand_dims) == [0]
        and not dims.input_batching_dims
        and list(dims.update_window_dims) == list(range(len(batch), len(updates.shape)))
        and list(updates.shape) == batch + list(table.shape[1:])
        and isinstance(indices.element_type, ir.IntegerType)
        and indices.element_type.is_signless
        and _function(operation) is not None
    )


def _function(operation: ir.Operation) -> str | None:
    """The operation that combines an old and a new element: one of StableHLO on
    both, or "" where the new one replaces the old."""
    block = operation.regions[0].blocks[0]
    old, new = block.arguments
    *inner, end = [each.operation for each in block.operations]
    if not inner:
        return "" if end.operands[0] == new else None
    of_both = len(inner) == 1 and set(map(str, inner[0].operands)) == {str(old), str(new)}
    if of_both and end.operands[0] == inner[0].results[0]:
        return inner[0].name
    return None


def _combined(operation: ir.Operation, old: ir.Value, new: ir.Value) -> ir.Value:
    name = _function(operation)
    return _create(name, new.type, [old, new]) if name else new


def _row(of: ir.Value, position: ir.Value, row: list[int]) -> ir.Value:
    type_ = _tensor(row, _type(of).element_type)
    return _create(
        "tensor.extract_slice", type_, [of, position], **_slice_attributes(row, leading=[1])
    )


def _slice_attributes(row: list[int], leading: list[int]) -> dict[str, ir.Attribute]:
    """Of a slice of one row at a position that is an operand."""
    return {
        "static_offsets": ir.DenseI64ArrayAttr.get([_DYNAMIC] + [0] * (len(row) - 1)),
        "static_sizes": ir.DenseI64ArrayAttr.get(row),
        "static_strides": ir.DenseI64ArrayAttr.get([1] * len(row)),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([*leading, 1, 0, 0]),
    }


def _reshaped(value: ir.Value, shape: list[int]) -> ir.Value:
    if list(_type(value).shape) == shape:
        return value
    return _create("stablehlo.reshape", _tensor(shape, _type(value).element_type), [value])


def _index(value: int) -> ir.Value:
    type_ = ir.IndexType.get()
    return _create("arith.constant", type_, value=ir.IntegerAttr.get(type_, value))


def _integer(type_: ir.Type, value: int) -> ir.Attribute:
    return ir.IntegerAttr.get(type_, value)


def _tensor(shape: list[int], element: ir.Type) -> ir.Type:
    return ir.RankedTensorType.get(shape, element)


def _type(value: ir.Value) -> ir.RankedTensorType:
    return ir.RankedTensorType(value.type)


def _create(name: str, result: ir.Type, operands=(), **attributes: ir.Attribute) -> ir.Value:
    return ir.Operation.create(
        name, results=[result], operands=list(operands), attributes=attributes
    ).results[0]
