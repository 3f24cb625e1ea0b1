# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`stablehlo.scatter` -> slices at known places, or a loop over its windows.

`x.at[1:3].set(y)`, `x.at[..., ::2].add(y)` and the gradients of such slices have
indices that are known: the update goes into one slice, with strides. All else
(`table.at[rows].add`, the gradients of look-ups, of `x[i, j]` and of slices at
indices) is a loop that touches one window after the other and nothing else. A
window that is not all inside is dropped, as XLA does.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

from baechi.importer.common.constants import known
from baechi.importer.common.module import attribute_names
from baechi.importer.jax import slices


def scatter(operation: ir.Operation) -> list[ir.Value] | None:
    """The result, made before the operation; None for another form."""
    if len(operation.operands) != 3 or not _is_elementwise(operation):
        return None
    form = _Form.of(operation)
    place = _place(operation, form)
    return [_one_slice(operation, form, place) if place else _loop(operation, form)]


@dataclasses.dataclass(frozen=True)
class _Form:
    """Which dimensions of the three operands belong together.

    `batch` are the sizes of the indices' dimensions but the one of index vectors; the
    dimensions of the updates that are no windows have the same in the same order.
    """

    indexed: list[int]  # of the table, for each component of an index
    batched: list[tuple[int, int]]  # of the table, each with its position in `batch`
    batch: list[int]
    vector: int  # of the indices; their rank if every element is an index
    windows: list[int]  # for each dimension of the table; 1 where one element is picked
    window_dims: dict[int, int]  # of the table, each with that of the updates
    batch_dims: list[int]  # of the updates

    @staticmethod
    def of(operation: ir.Operation) -> _Form:
        dims = stablehlo.ScatterDimensionNumbers(operation.attributes["scatter_dimension_numbers"])
        table, indices, updates = (_shape(value) for value in operation.operands)
        vector = dims.index_vector_dim
        batching = list(dims.input_batching_dims)
        places = [d - (d > vector) for d in dims.scatter_indices_batching_dims]
        kept = [d for d in range(len(table)) if d not in (*dims.inserted_window_dims, *batching)]
        window_dims = dict(zip(kept, dims.update_window_dims, strict=True))
        return _Form(
            indexed=list(dims.scattered_dims_to_operand_dims),
            batched=list(zip(batching, places, strict=True)),
            batch=[size for d, size in enumerate(indices) if d != vector],
            vector=vector,
            windows=[updates[window_dims[d]] if d in window_dims else 1 for d in range(len(table))],
            window_dims=window_dims,
            batch_dims=[d for d in range(len(updates)) if d not in window_dims.values()],
        )


@dataclasses.dataclass(frozen=True)
class _Place:
    """One slice for all windows."""

    offsets: list[int]
    sizes: list[int]
    strides: list[int]
    batch_of: dict[int, int]  # the dimension of the batch that runs along one of the table
    downwards: list[int]  # dimensions of the table along which it does so from the end on


def _place(operation: ir.Operation, form: _Form) -> _Place | None:
    """Where the windows lie if their indices are known, evenly apart and inside."""
    starts = _starts(operation, form)
    if starts is None or 0 in (*form.batch, *form.windows):
        return None
    table = _shape(operation.operands[0])
    place = _Place([0] * len(table), list(form.windows), [1] * len(table), {}, [])
    for dim, start in starts.items():
        first = int(start.flat[0])
        steps = [int(np.take(start, min(1, n - 1), d).flat[0]) - first
                 for d, n in enumerate(form.batch)]  # fmt: skip
        even = sum((step * _along(form.batch, d) for d, step in enumerate(steps)), first)
        moving = [d for d, step in enumerate(steps) if step]
        if len(moving) > 1 or not np.all(start == even):
            return None
        for d in moving:
            if form.windows[dim] != 1 or d in place.batch_of.values():
                return None
            place.batch_of[dim] = d
            place.sizes[dim], place.strides[dim] = form.batch[d], abs(steps[d])
            if steps[d] < 0:
                first += steps[d] * (form.batch[d] - 1)
                place.downwards.append(dim)
        place.offsets[dim] = first
        last = first + (place.sizes[dim] - 1) * place.strides[dim]
        if first < 0 or last >= table[dim]:
            return None
    # Windows at the same place are combined one after the other: in a loop.
    apart = set(place.batch_of.values())
    return place if all(n == 1 or d in apart for d, n in enumerate(form.batch)) else None


def _starts(operation: ir.Operation, form: _Form) -> dict[int, np.ndarray] | None:
    """The first element of every window, by dimension of the table."""
    indices = known(operation.operands[1])
    if indices is None:
        return None
    indices = indices.astype(np.int64).reshape(_shape(operation.operands[1]))
    vectors = indices[..., None] if form.vector == indices.ndim else indices
    vectors = np.moveaxis(vectors, form.vector, -1)
    starts = {dim: vectors[..., k] for k, dim in enumerate(form.indexed)}
    return starts | {dim: _along(form.batch, place) for dim, place in form.batched}


def _along(shape: Sequence[int], axis: int) -> np.ndarray:
    """Each element's position along an axis."""
    line = [-1 if d == axis else 1 for d in range(len(shape))]
    return np.broadcast_to(np.arange(shape[axis]).reshape(line), shape)


def _one_slice(operation: ir.Operation, form: _Form, place: _Place) -> ir.Value:
    table, _, updates = operation.operands
    # The updates' dimensions in the order of the table's; the others have one element.
    order = [
        form.batch_dims[place.batch_of[dim]] if dim in place.batch_of else form.window_dims[dim]
        for dim in range(len(form.windows))
        if dim in place.batch_of or dim in form.window_dims
    ]
    order += [d for d in range(len(_shape(updates))) if d not in order]
    part = _reshaped(_transposed(updates, order), place.sizes)
    if place.downwards:
        dims = ir.DenseI64ArrayAttr.get(place.downwards)
        part = _create("stablehlo.reverse", part.type, [part], dimensions=dims)
    at = place.offsets, place.sizes, place.strides
    new = _combined(operation, slices.extract(ir, table, *at), part)
    return slices.insert(ir, new, table, *at)


def _loop(operation: ir.Operation, form: _Form) -> ir.Value:
    """One window after the other, in the order of the indices."""
    table, indices, updates = operation.operands
    count = math.prod(form.batch)
    updates = _transposed(updates, [*form.batch_dims, *form.window_dims.values()])
    updates = _reshaped(updates, [count, *form.windows])
    if form.vector < len(_shape(indices)):
        order = [d for d in range(len(_shape(indices))) if d != form.vector]
        indices = _transposed(indices, [*order, form.vector])
    indices = _reshaped(_signless(indices), [count, len(form.indexed)])

    loop = ir.Operation.create(
        "scf.for",
        results=[table.type],
        operands=[_index(0), _index(count), _index(1), table],
        regions=1,
    )
    body = ir.Block.create_at_start(loop.regions[0], [ir.IndexType.get(), table.type])
    position, current = body.arguments
    with ir.InsertionPoint(body):
        offsets, inside = _window_at(position, indices, form, _shape(table))
        old = slices.extract(ir, current, offsets, form.windows)
        at = [position] + [0] * len(form.windows)
        sizes = [1, *form.windows]
        new = _combined(operation, old, slices.extract(ir, updates, at, sizes, shape=form.windows))
        if inside is not None:
            flag = _create("tensor.from_elements", _tensor([], inside.type), [inside])
            new = _create("stablehlo.select", new.type, [flag, new, old])
        result = slices.insert(ir, new, current, offsets, form.windows)
        ir.Operation.create("scf.yield", operands=[result])
    return loop.results[0]


def _window_at(position: ir.Value, indices: ir.Value, form: _Form, table: Sequence[int]):
    """Where a window begins, and whether it is all inside; if not, another place."""
    index, kind = ir.IndexType.get(), _type(indices).element_type
    found, inside = {}, None
    for k, dim in enumerate(form.indexed):
        start = _create("tensor.extract", kind, [indices, position, _index(k)])
        # Unsigned, so that what is negative is out of range, too.
        limit = _constant(kind, table[dim] - form.windows[dim])
        fits = _create("arith.cmpi", _bits(1), [start, limit], predicate=_attribute(_bits(64), 7))
        inside = fits if inside is None else _create("arith.andi", _bits(1), [inside, fits])
        found[dim] = _create("arith.index_cast", index, [start])
    offsets: list[ir.Value | int] = [0] * len(table)
    for dim, start in found.items():
        offsets[dim] = _create("arith.select", index, [inside, start, _index(0)])
    for dim, place in form.batched:
        after = math.prod(form.batch[place + 1 :])
        line = _create("arith.divui", index, [position, _index(after)])
        offsets[dim] = _create("arith.remui", index, [line, _index(form.batch[place])])
    return offsets, inside


def _is_elementwise(operation: ir.Operation) -> bool:
    """Whether what combines an old and a new element can combine whole windows."""
    *inner, _ = operation.regions[0].blocks[0].operations
    known = ("stablehlo.", "chlo.")
    return all(
        each.operation.name.startswith(known)
        and not list(each.operation.regions)
        and len(each.operation.results) == 1
        for each in inner
    )


def _combined(operation: ir.Operation, old: ir.Value, new: ir.Value) -> ir.Value:
    """What the operation's function of two elements makes of two tensors."""
    block = operation.regions[0].blocks[0]
    shape = _shape(old)
    of = dict(zip(block.arguments, (old, new), strict=True))
    *inner, end = [each.operation for each in block.operations]

    def whole(value: ir.Value) -> ir.Value:
        if value not in of:  # from outside
            of[value] = _splat(value, shape)
        return of[value]

    for each in inner:
        if each.name == "stablehlo.constant":
            copy = each.clone().results[0]
            of[each.results[0]] = _splat(copy, shape)
            continue
        attributes = {name: each.attributes[name] for name in attribute_names(each)}
        element = _type(each.results[0]).element_type
        operands = [whole(operand) for operand in each.operands]
        of[each.results[0]] = _create(each.name, _tensor(shape, element), operands, **attributes)
    return whole(end.operands[0])


def _splat(value: ir.Value, shape: Sequence[int]) -> ir.Value:
    type_ = _tensor(shape, _type(value).element_type)
    none = ir.DenseI64ArrayAttr.get([])
    return _create("stablehlo.broadcast_in_dim", type_, [value], broadcast_dimensions=none)


def _transposed(value: ir.Value, order: Sequence[int]) -> ir.Value:
    if list(order) == sorted(order):
        return value
    shape = _shape(value)
    type_ = _tensor([shape[d] for d in order], _type(value).element_type)
    permutation = ir.DenseI64ArrayAttr.get(list(order))
    return _create("stablehlo.transpose", type_, [value], permutation=permutation)


def _reshaped(value: ir.Value, shape: Sequence[int]) -> ir.Value:
    if _shape(value) == list(shape):
        return value
    return _create("stablehlo.reshape", _tensor(shape, _type(value).element_type), [value])


def _signless(indices: ir.Value) -> ir.Value:
    """Unsigned indices in a wider type, so that none becomes negative."""
    kind = _type(indices).element_type
    if kind.is_signless:
        return indices
    return _create("stablehlo.convert", _tensor(_shape(indices), _bits(64)), [indices])


def _index(value: int) -> ir.Value:
    return _constant(ir.IndexType.get(), value)


def _constant(type_: ir.Type, value: int) -> ir.Value:
    return _create("arith.constant", type_, value=_attribute(type_, value))


def _attribute(type_: ir.Type, value: int) -> ir.Attribute:
    return ir.IntegerAttr.get(type_, value)


def _bits(width: int) -> ir.Type:
    return ir.IntegerType.get_signless(width)


def _tensor(shape: Sequence[int], element: ir.Type) -> ir.Type:
    return ir.RankedTensorType.get(list(shape), element)


def _type(value: ir.Value) -> ir.RankedTensorType:
    return ir.RankedTensorType(value.type)


def _shape(value: ir.Value) -> list[int]:
    return list(_type(value).shape)


def _create(name: str, result: ir.Type, operands=(), **attributes: ir.Attribute) -> ir.Value:
    return ir.Operation.create(
        name, results=[result], operands=list(operands), attributes=attributes
    ).results[0]
