# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From a file of StableHLO, as JAX and others write it, to one MLIR module of linalg on tensors."""

from __future__ import annotations

import dataclasses
import pathlib
import re

from jax._src.interpreters import mlir as internal  # a context with the dialects
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as stablehlo_dialect

from baechi import init
from baechi.importer.common import locations
from baechi.importer.common.errors import ImportFailure, UnsupportedOperations
from baechi.importer.common.module import Argument, annotate, attribute_names, name_operations
from baechi.importer.jax.step import to_linalg

# How a portable artifact of StableHLO, as `jax.export` has it, begins.
_BYTECODE, _ARTIFACT = b"ML\xefR", b"ML\xefR\x0dStableHLO_v"
_DTYPES = {
    **{"i1": "bool", "f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64"},
    **{f"i{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
    **{f"ui{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
}


@dataclasses.dataclass(frozen=True)
class ImportedFile:
    text: str  # the module
    operations: int  # linalg operations in it
    arguments: list[Argument]
    results: list[str]


def import_file(path: str, name: str) -> ImportedFile:
    """Imports the public function of a StableHLO module: text, MLIR bytecode or a portable
    artifact.

    Names of arguments and results are JAX's, where it left them. An argument that a result
    takes the place of (`tf.aliasing_output`) is replaced by it after every step. Arguments of
    floating point start with numbers from 0 to 1, others with zeros. Raises ImportFailure.
    """
    data = _read(path)
    with internal.make_ir_context() as context, ir.Location.unknown():
        module = _parse(path, data, context)
        function = _entry(path, module)
        _refuse_several(path, module)
        arguments, results = _arguments(path, function), _results(path, function)
        function.attributes["sym_visibility"] = ir.StringAttr.get("public")
        try:
            to_linalg(module)
        except UnsupportedOperations as error:
            raise _named(path, error) from error
        annotate(ir, module, name, arguments, results)
        count = name_operations(ir, module, locations.name_of)
        text = module.operation.get_asm(enable_debug_info=True)
        return ImportedFile(text, count, arguments, results)


def _named(path: str, error: UnsupportedOperations) -> UnsupportedOperations:
    """With the file's name, where MLIR, which was given its text, has none."""
    return UnsupportedOperations(
        [
            dataclasses.replace(each, source=re.sub(r"^-(?=:\d)", path, each.source))
            for each in error.operations
        ]
    )


def _read(path: str) -> bytes:
    file = pathlib.Path(path)
    if not file.is_file():
        raise ImportFailure(f"{path}: no such file")
    return file.read_bytes()


def _parse(path: str, data: bytes, context: ir.Context) -> ir.Module:
    if data.startswith(_ARTIFACT):
        try:
            return stablehlo_dialect.deserialize_portable_artifact(context, data)
        except (ir.MLIRError, ValueError) as error:
            raise ImportFailure(f"{path}: not a portable artifact of StableHLO: {error}") from error
    source: str | bytes = data
    if not data.startswith(_BYTECODE):
        try:
            source = data.decode()
        except UnicodeDecodeError as error:
            raise ImportFailure(f"{path}: neither text nor MLIR bytecode") from error
    try:
        return ir.Module.parse(source)
    except ir.MLIRError as error:
        lines = [f"{path}: not a module of StableHLO:"]
        for each in error.error_diagnostics:
            where = locations.source_of(each.location).rsplit(":", 2)
            place = f"{path}:{where[1]}:{where[2]}" if len(where) == 3 else path
            lines.append(f"  {place}: {each.message}")
        if b"linalg." in data:
            lines.append("  what is linalg already needs no import: baechi-run takes it as it is")
        raise ImportFailure("\n".join(lines)) from error


def _entry(path: str, module: ir.Module) -> ir.Operation:
    """The one public function, or that of several whose name is main."""
    found = {}
    for operation in (each.operation for each in module.body.operations):
        if operation.name == "func.func" and not _is_private(operation):
            found[ir.StringAttr(operation.attributes["sym_name"]).value] = operation
    if len(found) > 1 and "main" in found:
        for name in found.keys() - {"main"}:
            found[name].attributes["sym_visibility"] = ir.StringAttr.get("private")
        found = {"main": found["main"]}
    if len(found) != 1:
        names = ", ".join(f"@{name}" for name in sorted(found))
        raise ImportFailure(
            f"{path}: expected one public function, or one that is called main, "
            f"and found {names or 'none'}"
        )
    (function,) = found.values()
    if not function.regions[0].blocks:
        raise ImportFailure(f"{path}: the public function has no body")
    return function


def _is_private(function: ir.Operation) -> bool:
    if "sym_visibility" not in attribute_names(function):
        return False
    return ir.StringAttr(function.attributes["sym_visibility"]).value == "private"


def _refuse_several(path: str, module: ir.Module) -> None:
    """What a program of several devices computes is not what one of them does."""
    for name in ("mhlo.num_replicas", "mhlo.num_partitions"):
        if name in attribute_names(module.operation):
            count = ir.IntegerAttr(module.operation.attributes[name]).value
            if count > 1:
                raise ImportFailure(
                    f"{path}: {name} is {count}: the program is one of several devices; write the "
                    "one of a single device, and let Baechi place or replicate it"
                )


def _arguments(path: str, function: ir.Operation) -> list[Argument]:
    block = function.regions[0].blocks[0]
    given = _attributes(function, "arg_attrs", len(block.arguments))
    names = [_name(locations.given_name(each.location)) for each in block.arguments]
    names = _unlike(names, "arg")
    updates = [_updated_by(path, attributes) for attributes in given]
    _check_updates(path, function, names, updates)
    twice = {each for each in updates if each is not None and updates.count(each) > 1}
    if twice:
        raise ImportFailure(f"{path}: two arguments have tf.aliasing_output = {min(twice)}")
    arguments = []
    for number, value in enumerate(block.arguments):
        shape, dtype = _type(path, f"argument '{names[number]}'", value.type)
        start: init.Init = init.Constant(shape, dtype, 0.0)
        if dtype.endswith(("float16", "float32", "float64")):
            start = init.Uniform(shape, dtype, 0.0, 1.0, seed=number + 1)
        arguments.append(Argument(names[number], start, updates[number]))
    return arguments


def _check_updates(
    path: str, function: ir.Operation, names: list[str], updates: list[int | None]
) -> None:
    """A next value has the type of what it replaces."""
    types = _types(function)
    for name, value, result in zip(names, types.inputs, updates, strict=True):
        if result is not None and not 0 <= result < len(types.results):
            raise ImportFailure(
                f"{path}: argument '{name}' has tf.aliasing_output = {result}, and there are "
                f"{len(types.results)} results"
            )
        if result is not None and types.results[result] != value:
            raise ImportFailure(
                f"{path}: argument '{name}' is {value}, and result {result}, which "
                f"tf.aliasing_output gives its place, {types.results[result]}"
            )


def _types(function: ir.Operation) -> ir.FunctionType:
    return ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)


def _results(path: str, function: ir.Operation) -> list[str]:
    types = _types(function).results
    for number, each in enumerate(types):
        _type(path, f"result {number}", each)
    given = _attributes(function, "res_attrs", len(types))
    infos = [attributes.get("jax.result_info") for attributes in given]
    return _unlike([_name(ir.StringAttr(each).value) if each else "" for each in infos], "result")


def _attributes(function: ir.Operation, name: str, count: int) -> list[dict[str, ir.Attribute]]:
    if name not in attribute_names(function):
        return [{} for _ in range(count)]
    found = ir.ArrayAttr(function.attributes[name])
    return [{each.name: each.attr for each in ir.DictAttr(one)} for one in found]


def _updated_by(path: str, attributes: dict[str, ir.Attribute]) -> int | None:
    if (aliased := attributes.get("tf.aliasing_output")) is None:
        return None
    try:
        return ir.IntegerAttr(aliased).value
    except ValueError as error:
        raise ImportFailure(f"{path}: tf.aliasing_output is no number: {aliased}") from error


def _type(path: str, what: str, type_: ir.Type) -> tuple[tuple[int, ...], str]:
    if not isinstance(type_, ir.RankedTensorType):
        raise ImportFailure(f"{path}: {what} is no tensor: {type_}")
    if not type_.has_static_shape:
        raise ImportFailure(f"{path}: {what} has unknown sizes: {type_}; export it for known ones")
    element = str(type_.element_type)
    if element not in _DTYPES:
        raise ImportFailure(f"{path}: {what} has elements of {element}, which no step takes")
    return tuple(type_.shape), _DTYPES[element]


def _name(path: str) -> str:
    """JAX's `params['w'][0]` as `params/w/0`, as steps that are imported have it."""
    return "/".join(part for part in re.split(r"[\[\].'\"/]+", path) if part)


def _unlike(names: list[str], prefix: str) -> list[str]:
    """With numbers for what has no name, or that of another."""
    found: list[str] = []
    for number, name in enumerate(names):
        if not name or names.count(name) > 1:
            name = f"{prefix}{number}"
            while name in names:
                name += "_"
        found.append(name)
    return found
