# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The form of an imported module (docs/import.md), made alike for all frameworks.

JAX and torch-mlir each bring MLIR's Python bindings of their own: `ir` is the
one that a module belongs to.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from baechi import init


@dataclasses.dataclass(frozen=True)
class Argument:
    name: str  # "params/blocks/0/w1"
    init: init.Init
    updated_by: int | None  # the position of the result that is its next value


def walk(ir: Any, module: Any, visit: Callable[[Any], None]) -> None:
    """Visits every operation, those around others first."""
    visit_all(ir, module.operation, visit, ir.WalkOrder.PRE_ORDER)


def visit_all(ir: Any, root: Any, visit: Callable[[Any], None], order: Any) -> None:
    """Visits an operation and all within it. What a visit, or a signal's handler meanwhile,
    raises is raised: MLIR's bindings make a RuntimeError of it, Ctrl-C too."""
    raised: list[BaseException] = []

    def advance(operation):
        try:
            visit(operation.operation)
        except BaseException as error:
            raised.append(error)
            return ir.WalkResult.INTERRUPT
        return ir.WalkResult.ADVANCE

    try:
        root.walk(advance, order)
    except RuntimeError as error:
        # It came between two lines of the above.
        if not raised and "KeyboardInterrupt" in str(error):
            raise KeyboardInterrupt from error
        raise
    if raised:
        raise raised[0]


# They have no regions, and are nearly all of a module's operations: to ask each costs more than
# all else that is asked of it.
_WITHOUT_REGIONS = frozenset(
    {"func.return", "linalg.index", "linalg.yield", "tensor.empty", "tensor.extract_slice"}
    | {"tensor.collapse_shape", "tensor.expand_shape", "tensor.insert_slice"}
)


def block_arguments(operation: Any) -> Sequence[Any]:
    """Those of the blocks that an operation holds."""
    kind = operation.name
    if kind in _WITHOUT_REGIONS or kind.startswith(("arith.", "math.")):
        return ()
    if kind == "linalg.generic":  # of the others most: it has one block
        arguments: Sequence[Any] = operation.regions[0].blocks[0].arguments
        return arguments
    blocks = (block for region in operation.regions for block in region.blocks)
    return [argument for block in blocks for argument in block.arguments]


def replace_operations(ir: Any, module: Any, rewrites: Mapping[str, Callable[[Any], Any]]) -> None:
    """Replaces the operations of these names, inner ones before those around them, by
    the values that their rewrite makes, in place, inside the module's own context.
    None: another form, which is left."""
    found = []

    def collect(operation):
        if operation.name in rewrites:
            found.append(operation)

    visit_all(ir, module.operation, collect, ir.WalkOrder.POST_ORDER)
    for operation in found:
        with ir.InsertionPoint(operation), operation.location:
            results = rewrites[operation.name](operation)
        if results is None:
            continue
        for old, new in zip(operation.results, results, strict=True):
            old.replace_all_uses_with(new)
        operation.erase()


def annotate(
    ir: Any,
    module: Any,
    name: str,
    arguments: Sequence[Argument],
    results: Sequence[str],
    first_values: bool = True,
) -> None:
    """Names the module, its one function `@step`, and its arguments and results;
    takes off all other attributes of them. first_values: says those of the arguments,
    too."""
    _clear(module.operation)
    module.operation.attributes["sym_name"] = ir.StringAttr.get(name)
    (function,) = (operation.operation for operation in module.body.operations)
    for attribute in [
        a for a in attribute_names(function) if a not in ("function_type", "sym_name")
    ]:
        del function.attributes[attribute]
    function.attributes["sym_name"] = ir.StringAttr.get("step")
    i64 = ir.IntegerType.get_signless(64)

    def argument(value):
        attributes = {"baechi.name": ir.StringAttr.get(value.name)}
        if first_values:
            attributes["baechi.init"] = init_attribute(ir, value.init)
        if value.updated_by is not None:
            attributes["baechi.updated_by"] = ir.IntegerAttr.get(i64, value.updated_by)
        return ir.DictAttr.get(attributes)

    def result(value):
        return ir.DictAttr.get({"baechi.name": ir.StringAttr.get(value)})

    function.attributes["arg_attrs"] = ir.ArrayAttr.get([argument(value) for value in arguments])
    function.attributes["res_attrs"] = ir.ArrayAttr.get([result(r) for r in results])


def give_first_values(ir: Any, module: Any, values: Sequence[Any]) -> None:
    """Says what the arguments of an annotated step begin with."""
    (function,) = (
        each.operation
        for each in module.body.operations
        if ir.StringAttr(each.operation.attributes["sym_name"]).value == "step"
    )
    arguments = list(ir.ArrayAttr(function.attributes["arg_attrs"]))
    given = [
        ir.DictAttr.get(
            {"baechi.init": value} | {each.name: each.attr for each in ir.DictAttr(own)}
        )
        for own, value in zip(arguments, values, strict=True)
    ]
    function.attributes["arg_attrs"] = ir.ArrayAttr.get(given)


def mark_replicas(
    ir: Any, module: Any, replicas: int, batched: Mapping[int, Sequence[Sequence[int]]]
) -> None:
    """Says how many replicas an annotated step is written for, and which have what part of an
    argument along each dimension, a bit for each."""
    if replicas < 2:
        return
    (function,) = (operation.operation for operation in module.body.operations)
    i64 = ir.IntegerType.get_signless(64)
    function.attributes["baechi.replicas"] = ir.IntegerAttr.get(i64, replicas)
    arguments = list(ir.ArrayAttr(function.attributes["arg_attrs"]))
    for number, dims in batched.items():
        given = {each.name: each.attr for each in ir.DictAttr(arguments[number])}
        parts = [ir.DenseI64ArrayAttr.get([_signed(bits) for bits in dim]) for dim in dims]
        each_own = [list(dim) for dim in dims if dim] == [[1 << i for i in range(replicas)]]
        given["baechi.batched"] = ir.UnitAttr.get() if each_own else ir.ArrayAttr.get(parts)
        arguments[number] = ir.DictAttr.get(given)
    function.attributes["arg_attrs"] = ir.ArrayAttr.get(arguments)


def _signed(bits: int) -> int:
    """64 bits as an i64 has them."""
    return bits - (bits >> 63 << 64)


def init_attribute(ir: Any, value: init.Init) -> Any:
    """The `baechi.init` of an argument."""
    f32, i64 = ir.F32Type.get(), ir.IntegerType.get_signless(64)
    match value:
        case init.Constant():
            fields = {"value": ir.FloatAttr.get(f32, value.constant)}
        case init.Uniform():
            fields = {
                "low": ir.FloatAttr.get(f32, value.low),
                "high": ir.FloatAttr.get(f32, value.high),
                "seed": ir.IntegerAttr.get(i64, value.seed),
            }
        case init.RandInt():
            fields = {
                field: ir.IntegerAttr.get(i64, getattr(value, field))
                for field in ("low", "high", "seed")
            }
    kind = type(value).__name__.lower()
    return ir.DictAttr.get({"kind": ir.StringAttr.get(kind), **fields})


def name_operations(ir: Any, module: Any, name_of: Callable[[Any], str]) -> int:
    """Gives every operation the location that is its name, and blocks' arguments
    none; counts linalg operations."""
    count = 0
    unknown = ir.Location.unknown()
    named: dict[str, Any] = {"": unknown}
    last, name = None, ""

    def visit(operation):
        nonlocal count, last, name
        kind = operation.name
        count += kind.startswith("linalg.") and kind not in ("linalg.yield", "linalg.index")
        location = operation.location
        # What an operation's regions hold is mostly where it is itself.
        if last is None or location != last:
            last, name = location, name_of(location)
            if name not in named:
                named[name] = ir.Location.name(name)
        operation.location = named[name]
        for argument in block_arguments(operation):
            argument.set_location(unknown)

    walk(ir, module, visit)
    return count


def concatenate(ir: Any, parts: Sequence[Any], result_type: Any, axis: int) -> Any:
    """`tensor.insert_slice` of every part at its constant offset."""
    value = ir.Operation.create("tensor.empty", results=[result_type]).results[0]
    offset = 0
    for part in parts:
        sizes = ir.RankedTensorType(part.type).shape
        if 0 in sizes:  # an empty slice at the end would be out of bounds
            continue
        offsets = [0] * result_type.rank
        offsets[axis] = offset
        offset += sizes[axis]
        value = ir.Operation.create(
            "tensor.insert_slice",
            results=[result_type],
            operands=[part, value],
            attributes={
                "static_offsets": ir.DenseI64ArrayAttr.get(offsets),
                "static_sizes": ir.DenseI64ArrayAttr.get(sizes),
                "static_strides": ir.DenseI64ArrayAttr.get([1] * result_type.rank),
                "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 1, 0, 0, 0]),
            },
        ).results[0]
    return value


def attribute_names(operation: Any) -> list[str]:
    """The names of an operation's attributes, in any version of the bindings."""
    return [a if isinstance(a, str) else a.name for a in operation.attributes]


def _clear(operation: Any) -> None:
    for name in attribute_names(operation):
        del operation.attributes[name]
