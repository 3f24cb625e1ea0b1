# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Modules that were imported before: what JAX has lowered a step to is found again by its bytes.

Nothing before that can be: a Python function computes whatever it likes while it is traced.
"""

from __future__ import annotations

import functools
import hashlib
import io
import pathlib
import zlib
from collections.abc import Mapping, Sequence
from typing import Protocol

import jax
import jaxlib
from jaxlib.mlir import ir

import baechi
from baechi.importer.jax.signature import Signature

_MOST_BYTES = 16 << 20  # of a compressed module


class Kept(Protocol):
    """A store of bytes."""

    def take(self, key: bytes) -> bytes | None: ...

    def keep(self, key: bytes, value: bytes) -> None: ...


class KeptModule:
    """The place in a store of what one module of StableHLO is imported to.

    The first values of arguments are no part of it.

    replicas: how many it is written for, and which arguments have a part for each.
    """

    def __init__(
        self,
        store: Kept,
        module: ir.Module,
        name: str,
        signature: Signature,
        replicas: tuple[int, Mapping[int, Sequence[Sequence[int]]]],
    ):
        arguments = [
            (each.name, each.init.shape, each.init.dtype, each.updated_by)
            for each in signature.arguments
        ]
        given = (name, arguments, signature.results, replicas, jax.__version__, jaxlib.__version__)
        bytecode = io.BytesIO()
        module.operation.write_bytecode(bytecode)
        digest = hashlib.sha256(_importer())
        digest.update(repr(given).encode())
        digest.update(bytecode.getbuffer())
        self._store, self._key = store, digest.digest()

    def take(self) -> tuple[bytes, int] | None:
        """The imported module, and how many linalg operations it has."""
        found = self._store.take(self._key)
        if found is None:
            return None
        count, code = zlib.decompress(found).split(b"\n", 1)
        return code, int(count)

    def keep(self, code: bytes, count: int) -> None:
        # With large constants it is soon made again, and would push out what is not.
        if (compressed := _compressed(b"%d\n" % count + code)) is not None:
            self._store.keep(self._key, compressed)


def _compressed(code: bytes) -> bytes | None:
    """None where there is more than may be kept, which is noticed on the way."""
    compressor, parts, size = zlib.compressobj(1), [], 0
    for begin in range(0, len(code), 1 << 20):
        parts.append(compressor.compress(code[begin : begin + (1 << 20)]))
        size += len(parts[-1])
        if size > _MOST_BYTES:
            return None
    return b"".join([*parts, compressor.flush()])


@functools.cache
def _importer() -> bytes:
    """Of all code that has a part in importing."""
    root = pathlib.Path(baechi.__file__).parent
    digest = hashlib.sha256()
    for folder in ("importer/common", "importer/jax"):
        for file in sorted((root / folder).glob("*.py")):
            digest.update(file.read_bytes())
    return digest.digest()
