# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A factorisation as a loop of `baechi.foreach`, and the same words on NumPy's arrays."""

import numpy as np

import baechi

STEP = np.float32(0.05)


def factorise(key, rating, users, items):
    i, j = key
    u, v = users[i], items[j]
    error = rating - (u * v).sum()
    users[i] += STEP * error * v
    items[j] += STEP * error * u


def ratings(count=400, users=(0, 60), items=(0, 30), seed=0):
    random = np.random.default_rng(seed)
    columns = random.integers(*users, count), random.integers(*items, count)
    values = random.normal(size=count).astype(np.float32)
    return baechi.Entries(columns, values, bounds=(users, items))


def factors(users=60, items=30, rank=8, seed=1):
    random = np.random.default_rng(seed)
    return [random.normal(size=(n, rank)).astype(np.float32) * 0.1 for n in (users, items)]


def serially(body, entries, arrays, order):
    """The body on NumPy's arrays, one entry after the other."""
    arrays = [array.copy() for array in arrays]
    views = [Values(array) for array in arrays]
    for n in order:
        keys = tuple(int(column[n]) for column in entries.keys)
        value = entries.leaves[0][n] if entries.leaves else None
        body(keys if len(keys) > 1 else keys[0], value, *views)
    return arrays


class Values(np.lib.mixins.NDArrayOperatorsMixin):
    """An array of NumPy's of which what is read is a value, as in a loop."""

    def __init__(self, array):
        self._array = array

    def __getitem__(self, index):
        return np.array(self._array[index])

    def __setitem__(self, index, value):
        self._array[index] = value

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        taken = [each._array.copy() if isinstance(each, Values) else each for each in inputs]
        out = options.pop("out", None)
        made = getattr(ufunc, method)(*taken, **options)
        if out is None:
            return made
        self._array[...] = made  # x += 1
        return self

    def __getattr__(self, name):
        return getattr(self._array, name)
