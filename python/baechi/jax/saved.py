# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A compiled step as one file: a line, a description in JSON, and a step library.

    baechi-step VERSION BYTES_OF_DESCRIPTION BYTES_OF_LIBRARY SHA-256-OF-BOTH
    {"name": …, "architecture": …, "arguments": […], "results": […], …}
    the library, as baechi-run --emit=so writes it (docs/step-library.md)

docs/ahead.md has the fields. Nothing of a file is run, imported or unpickled to read it.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import pathlib
import platform
import re
import stat
import tempfile
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from baechi.common import temporary
from baechi.importer.common.module import Argument
from baechi.importer.jax.signature import Signature
from baechi.init import Constant
from baechi.jax import trees
from baechi.jax.border import Border, is_wide
from baechi.steps.library import TYPES, StepLibrary
from baechi.steps.library_file import StepError

VERSION = 2
_FIRST = re.compile(rb"baechi-step (\d{1,6}) (\d{1,12}) (\d{1,12}) ([0-9a-f]{64})\n")
_LONGEST_LINE = 120  # bytes
_LARGEST = 1 << 32  # bytes: a larger one is no step

# Types that a step's arrays may have, by the compiler's, which have no sign.
_KINDS = {
    "i64": ("int64", "uint64"),
    "i32": ("int32", "uint32"),
    "i16": ("int16", "uint16"),
    "i8": ("int8", "uint8"),
    **{name: (np.dtype(kind).name,) for name, kind in TYPES.items() if name[0] != "i"},
    "i1": ("bool",),
}


def write(file: pathlib.Path, border: Border, library: StepLibrary) -> pathlib.Path:
    """Raises ValueError for structures that have no words and for host calls, and OSError."""
    if border.host_calls:
        operations = ", ".join(str(each) for call in border.host_calls for each in call.operations)
        raise ValueError(
            f"JAX computes a part of '{border.name}' in every step, which a file cannot have: "
            f"{operations} (docs/host-calls.md)"
        )
    described = json.dumps(_describe(border)).encode()
    mine, again = border.signature, _border(json.loads(described))[0].signature
    if (mine.tree, mine.result_tree) != (again.tree, again.result_tree):
        raise ValueError(
            "the structure of its arguments or results is another one when it is read again: "
            f"{mine.tree} → {mine.result_tree}"
        )
    code = library.content()
    digest = hashlib.sha256(described + code).hexdigest()
    first = f"baechi-step {VERSION} {len(described)} {len(code)} {digest}\n".encode()
    # Beside it, so that it can be renamed; for the owner alone until it is whole.
    with tempfile.NamedTemporaryFile(dir=file.parent, prefix=".baechi-", delete=False) as made:
        try:
            made.write(first + described + code)
            made.flush()
            os.fsync(made.fileno())
            os.chmod(made.fileno(), 0o644)
            os.replace(made.name, file)
        except BaseException:
            os.unlink(made.name)
            raise
    return file


def read(file: pathlib.Path) -> tuple[Border, StepLibrary]:
    """Raises StepError, which names the file."""
    described, code = _content(file)
    try:
        border, kinds = _border(json.loads(described))
    except _Unfit as error:
        raise StepError(f"{file}: {error}") from error
    except Exception as error:  # whatever it makes of what is no step
        raise StepError(
            f"{file}: no description of a step: {type(error).__name__}: {error}"
        ) from error
    with temporary.folder("baechi-load-") as folder:
        path = folder / "step.so"  # the name that its functions begin with
        path.touch(mode=0o600)
        path.write_bytes(code)
        try:
            library = StepLibrary(path)
        except StepError as error:
            raise StepError(f"{file}: {str(error).removeprefix(f'{path}: ')}") from error
    program = library.program
    if _kinds_of(program["arguments"]) != kinds[0] or _kinds_of(program["results"]) != kinds[1]:
        raise StepError(f"{file}: its description is of another step than its code")
    return border, library


class _Unfit(Exception):
    """A step that is not for this process."""


def _content(file: pathlib.Path) -> tuple[bytes, bytes]:
    """The description and the library, as they were written."""
    try:
        # A pipe that nobody writes to is not waited for.
        opened = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(opened, "rb") as stream:
            state = os.fstat(opened)
            _check_owner(file, state)
            first = stream.readline(_LONGEST_LINE)
            found = _FIRST.fullmatch(first)
            if not found:
                raise StepError(
                    f"{file}: no saved step: it does not begin as Compiled.save writes it"
                )
            version, description, library = (int(found[i]) for i in (1, 2, 3))
            if version != VERSION:
                raise StepError(
                    f"{file}: of version {version}, and this Baechi reads version {VERSION}: "
                    "compile and save it again"
                )
            if len(first) + description + library != state.st_size or state.st_size > _LARGEST:
                raise StepError(
                    f"{file}: cut short or damaged: {state.st_size} bytes, its first line says "
                    f"{len(first) + description + library}"
                )
            content = stream.read()
    except OSError as error:
        raise StepError(f"{file}: cannot be read: {error.strerror}") from error
    if hashlib.sha256(content).hexdigest().encode() != found[4]:
        raise StepError(f"{file}: damaged: its hash is not the one that it was written with")
    return content[:description], content[description:]


def _check_owner(file: pathlib.Path, state: os.stat_result) -> None:
    if not stat.S_ISREG(state.st_mode):
        raise StepError(f"{file}: no regular file, so no saved step")
    if state.st_uid not in (os.geteuid(), 0):
        raise StepError(
            f"{file}: belongs to another user (uid {state.st_uid}), so its code is not run; "
            "if you trust it, copy it"
        )
    if state.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise StepError(
            f"{file}: others may write it (mode {stat.S_IMODE(state.st_mode):o}), so its code is "
            "not run; if you trust it: chmod go-w"
        )


def _describe(border: Border) -> dict[str, Any]:
    signature = border.signature
    weak = [bool(kind.weak_type) for kind in signature.result_types]
    try:
        version = importlib.metadata.version("baechi")
    except importlib.metadata.PackageNotFoundError:  # a checkout on the path
        version = ""
    return {
        "name": border.name,
        "baechi": version,
        "system": platform.system(),
        "architecture": platform.machine(),
        "x64": is_wide(),
        "arguments": [
            {
                "name": argument.name,
                "type": np.dtype(argument.init.dtype).name,
                "shape": list(argument.init.shape),
                "updated_by": argument.updated_by,
                "generator": generator,
            }
            for argument, generator in zip(signature.arguments, border.given, strict=True)
        ],
        "results": [
            {
                "name": name,
                "type": np.dtype(kind.dtype).name,
                "shape": list(kind.shape),
                "weak": is_weak,
                "generator": generator,
            }
            for name, kind, is_weak, generator in zip(
                signature.results, signature.result_types, weak, border.returned, strict=True
            )
        ],
        "tree": trees.to_data(signature.tree, "the arguments"),
        "result_tree": trees.to_data(signature.result_tree, "what the step returns"),
        "values": border.values,
        "static": border.static,
        "donated": list(border.donated),
    }


def _border(data: dict[str, Any]) -> tuple[Border, tuple[Any, Any]]:
    """The border, and the types of the flat arguments and results."""
    here = platform.system(), platform.machine()
    if (data["system"], data["architecture"]) != here:
        raise _Unfit(
            f"compiled for {data['system']} on {data['architecture']}, and this is {here[0]} on "
            f"{here[1]}: compile it here"
        )
    if data["x64"] and not is_wide():
        raise _Unfit(
            "compiled in JAX's x64 mode: load it in the same, "
            "jax.config.update('jax_enable_x64', True)"
        )
    given = [_typed(row) for row in data["arguments"]]
    returned = [_typed(row) for row in data["results"]]
    arguments = [
        Argument(_word(row["name"]), Constant(kind.shape, kind.dtype.name, 0.0), row["updated_by"])
        for row, kind in zip(data["arguments"], given, strict=True)
    ]
    for argument in arguments:
        if argument.updated_by is not None:
            _typed_alike(argument, returned[argument.updated_by])
    signature = Signature(
        arguments,
        [_word(row["name"]) for row in data["results"]],
        trees.from_data(data["tree"]),
        trees.from_data(data["result_tree"]),
        returned,
    )
    values = [_word(name) for name in data["values"]]
    if signature.tree.num_leaves != len(given) or signature.result_tree.num_leaves != len(returned):
        raise ValueError("its structures have other numbers of arrays")
    if len(signature.tree.children()) != len(values):
        raise ValueError("its structure has another number of arguments")
    border = Border(
        _word(data["name"]),
        signature,
        [_generator(row) for row in data["arguments"]],
        [_generator(row) for row in data["results"]],
        values,
        {_word(name): _word(value) for name, value in data["static"].items()},
        tuple(map(int, data["donated"])),
    )
    return border, (_plain(given), _plain(returned))


def _typed(row: dict[str, Any]) -> jax.ShapeDtypeStruct:
    if row["type"] not in {name for names in _KINDS.values() for name in names}:
        raise ValueError(f"unknown type {row['type']!r}")
    shape = tuple(row["shape"])
    if not all(type(size) is int and size >= 0 for size in shape):
        raise ValueError(f"{shape} is no shape")
    kind: Any = jax.ShapeDtypeStruct
    return kind(shape, np.dtype(row["type"]), weak_type=bool(row.get("weak")))


def _typed_alike(argument: Argument, result: jax.ShapeDtypeStruct) -> None:
    if type(argument.updated_by) is not int or argument.updated_by < 0:
        raise ValueError(f"{argument.updated_by!r} is no result")
    if (argument.init.shape, argument.init.dtype) != (result.shape, result.dtype.name):
        raise ValueError(f"'{argument.name}' is updated by a result of another type")


def _generator(row: dict[str, Any]) -> str | None:
    name = row["generator"]
    if name is not None:
        jax.random.key(0, impl=_word(name))  # raises ValueError for one that is unknown here
    return name


def _word(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is no name")
    return value


def _plain(kinds: Sequence[jax.ShapeDtypeStruct]) -> list[tuple[str, tuple[int, ...]]]:
    names = {name: short for short, names in _KINDS.items() for name in names}
    return [(names[kind.dtype.name], kind.shape) for kind in kinds]


def _kinds_of(rows: Sequence[dict[str, Any]]) -> list[tuple[str, tuple[int, ...]]]:
    return [(row["type"], tuple(row["shape"])) for row in rows]
