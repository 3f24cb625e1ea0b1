# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What JAX itself computes with a step: the reference that others must meet."""

from __future__ import annotations

import io
import json
import pathlib
from collections.abc import Callable, Iterable

import jax
import numpy as np

from baechi.common import files
from baechi.importer.jax.signature import Signature


def run(step: Callable, signature: Signature, steps: int) -> Iterable[list[np.ndarray]]:
    """Yields the flat results of every step; updated arguments are fed back."""

    def flat(leaves):
        return jax.tree.leaves(step(*jax.tree.unflatten(signature.tree, leaves)))

    compiled = jax.jit(flat)
    values = signature.initial_values()
    for _ in range(steps):
        results = compiled(values)
        yield [np.asarray(result) for result in results]
        for i, argument in enumerate(signature.arguments):
            if argument.updated_by is not None:
                values[i] = results[argument.updated_by]


def write(path: pathlib.Path, name: str, step: Callable, signature: Signature, steps: int) -> None:
    """Writes `.npz`, the arrays around the first step, or else JSON, the losses
    of all steps and statistics of the last one's results."""
    if path.suffix == ".npz":
        results = next(iter(run(step, signature, 1)))
        arrays = {f"arg{i}": value for i, value in enumerate(signature.initial_values())}
        arrays |= {f"out{i}": value for i, value in enumerate(results)}
        archive = io.BytesIO()
        np.savez_compressed(archive, **arrays)
        files.write(path, archive.getvalue())
    else:
        files.write(path, _summary(name, step, signature, steps).encode())


def _summary(name: str, step: Callable, signature: Signature, steps: int) -> str:
    losses, results = [], []
    for results in run(step, signature, steps):
        if "loss" in signature.results:
            losses.append(float(results[signature.results.index("loss")]))
    rows = [_statistics(n, value) for n, value in zip(signature.results, results)]
    head = {"format": "baechi-reference", "version": 1, "module": name, "steps": steps}
    lines = [f"{json.dumps(key)}: {json.dumps(value)}," for key, value in head.items()]
    lines.append(f'"losses": {json.dumps(losses)},')
    body = ",\n  ".join(json.dumps(row) for row in rows)
    return "{" + "\n ".join(lines) + f'\n "results": [\n  {body}]}}\n'


def _statistics(name: str, value: np.ndarray) -> dict:
    exact = value.astype(np.float64)
    return {
        "name": name,
        "type": str(value.dtype),
        "shape": value.shape,
        "sum": float(exact.sum()),
        "abs_sum": float(np.abs(exact).sum()),
        "first": exact.ravel()[:4].tolist(),
    }
