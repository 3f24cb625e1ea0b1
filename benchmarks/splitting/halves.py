# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Training steps of the collection whose batch is cut in the model's own source, for the importer:

    python -m baechi.importer benchmarks/splitting/halves.py:step --set model=mlp preset=small ...

The loss is the mean of the pieces' losses. Models that use statistics of the whole batch (batch
normalisation, the balance of experts) would be other models so, and are refused.
"""

from unittest import mock

from baechi.models import configuration, training

BATCH_DIMENSION = {"mlp": 0, "transformer": 0, "convnet": 0, "lstm": 1, "gnmt": 1}


def step(model, preset="tiny", pieces=2, batch=None):
    if model not in BATCH_DIMENSION:
        raise ValueError(f"{model}: not a mean over parts of its batch")
    size = batch or configuration.configure(model, preset).batch
    if size % pieces:
        raise ValueError(f"a batch of {size} has no {pieces} equal parts")
    losses, original = [], training.make_step

    def make_step(loss, params, batch, algorithm, rate=0.0):
        if rate:
            raise ValueError("parts of a batch would draw other masks of a dropout")
        losses.append(loss)  # the first is a part's, as its states have as many rows
        cut = _cut(losses[0], BATCH_DIMENSION[model], pieces)
        return original(cut, params, batch, algorithm)

    with mock.patch.object(training, "make_step", make_step):
        configuration.training_step(model, preset, {"batch": size // pieces})
        return configuration.training_step(model, preset, {"batch": size})


def _cut(loss, dimension, pieces):
    def mean(params, drop, **batch):
        total = 0.0
        for i in range(pieces):
            part = {name: _part(array, dimension, pieces, i) for name, array in batch.items()}
            total = total + loss(params, drop, **part)
        return total / pieces

    return mean


def _part(array, dimension, pieces, i):
    size = array.shape[dimension]
    first = i * size // pieces
    index = [slice(None)] * array.ndim
    index[dimension] = slice(first, first + size // pieces)
    return array[tuple(index)]
