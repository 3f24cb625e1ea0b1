# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The state of a step of replicas that go on at their own pace, as a file (docs/replicas.md): an
archive of NumPy's with the parameter store's own file, which has what replicas share and what it
keeps for their steps, and what each replica has for itself. Nothing of it is unpickled."""

from __future__ import annotations

import hashlib
import io
import json
import os
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np

from baechi.common import files, temporary
from baechi.jax import random_keys
from baechi.replicas.arguments import StoreError
from baechi.replicas.store import ParameterStore

VERSION = 1

File = str | os.PathLike[str]


def content_of(store: ParameterStore) -> bytes:
    """The store's file, with all updates."""
    with temporary.folder("baechi-stale-") as folder:
        store.drain()
        store.save(folder / "store")
        return (folder / "store").read_bytes()


def write(file: File, store: bytes, own: Sequence[Any], about: Mapping[str, Any]) -> None:
    """The file appears whole, in place of an earlier one, or not at all."""
    told = json.dumps({"version": VERSION, **about}).encode()
    arrays = {"about": np.frombuffer(told, np.uint8), "store": np.frombuffer(store, np.uint8)}
    for at, value in enumerate(own):
        data = random_keys.data_of(value) if random_keys.kind(value) else value
        arrays[f"own{at}"] = np.asarray(data)
    made = io.BytesIO()
    np.savez(made, **arrays)  # type: ignore[arg-type]
    files.write(pathlib.Path(file), made.getvalue())


class Saved:
    """What `write` wrote. Raises StoreError for what it did not."""

    def __init__(self, file: File):
        self._file = os.fspath(file)
        try:
            content = pathlib.Path(file).read_bytes()
        except OSError as error:
            raise StoreError(f"{self._file} cannot be read: {error.strerror}") from error
        self.digest = hashlib.blake2b(content, digest_size=16).hexdigest()
        try:
            with np.load(io.BytesIO(content), allow_pickle=False) as found:
                self._arrays = dict(found)
            self.about: dict[str, Any] = json.loads(self._arrays["about"].tobytes())
            self._store = self._arrays["store"].tobytes()
            version = self.about["version"]
        except Exception as error:  # of zipfile and NumPy, for what was changed: many kinds
            raise StoreError(
                f"{self._file} is no file of StaleStep.save, or was changed since ({error}): save "
                "the step again"
            ) from error
        if version != VERSION:
            raise StoreError(
                f"{self._file} is of version {version} of such files, and this Baechi reads "
                f"{VERSION}: save the step with this one"
            )

    def check(self, about: Mapping[str, Any]) -> None:
        """Raises StoreError where it is of another state than what is given."""
        for what, given in about.items():
            saved = self.about.get(what)
            if saved == given:
                continue
            if what == "leaves" and isinstance(saved, list) and len(saved) == len(given):
                saved, given = next((a, b) for a, b in zip(saved, given, strict=True) if a != b)
            elif what == "leaves" and isinstance(saved, list):
                saved, given = f"{len(saved)} arrays", f"{len(given)} arrays"
            raise StoreError(
                f"{self._file} has {saved}, and stale_step is given {given}: give the state and "
                "the `revised` of the step that was saved"
            )

    def own(self, count: int, like: Sequence[Any]) -> list[Any]:
        """What each replica has for itself, as those of the state that is given are."""
        made = []
        for at in range(count):
            if f"own{at}" not in self._arrays:
                raise StoreError(f"{self._file} lacks a part of the state: save the step again")
            data, kind = self._arrays[f"own{at}"], random_keys.kind(like[at])
            made.append(
                jax.random.wrap_key_data(jax.numpy.asarray(data), impl=kind) if kind else data
            )
        return made

    def store(self, options: Mapping[str, Any]) -> ParameterStore:
        """Goes on from the file."""
        with temporary.folder("baechi-stale-") as folder:
            (folder / "store").write_bytes(self._store)
            return ParameterStore.restore(folder / "store", **options)
