# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What stands for Python's values compares as they do."""

import array
import dataclasses

import numpy as np
import pytest

pytest.importorskip("torch")

from baechi.torch import values  # noqa: E402


@dataclasses.dataclass
class Config:
    temperature: float = 1.0
    unread: int = 0


def test_frozen_values_compare_as_they_are():
    def same(a, b):
        names = frozenset({"temperature"})
        return values.frozen(a, names) == values.frozen(b, names)

    assert same(float("nan"), float("nan")) and same([1, {"a": 2.0}], [1, {"a": 2.0}])
    assert not same(0.0, -0.0) and not same(0j, -0j) and same(float("-nan"), float("nan"))
    assert not same([1] * 300, [1.0] * 300) and not same([0.0] * 300, [-0.0] * 300)
    assert same([float("nan")] * 300, [float("nan") for _ in range(300)])
    assert not same(1, 1.0) and not same(True, 1) and not same((1,), [1])
    assert same(slice(1, 2), slice(1, 2)) and not same(slice(1, 2), slice(1, 3))
    config = Config()
    first = values.frozen(config, frozenset({"temperature"}))
    config.unread = 7
    assert values.frozen(config, frozenset({"temperature"})) == first
    config.temperature = 7.0
    assert values.frozen(config, frozenset({"temperature"})) != first
    hash(values.frozen([slice(1), {"a": {1, 2}}, config, object()], frozenset()))


MANY = {
    "list": lambda x: [0.5] * 999 + [x],
    "dictionary": lambda x: {i: x if i == 500 else 0.5 for i in range(1000)},
    "set": lambda x: {*map(float, range(1000)), x + 0.25},
    "lists in a list": lambda x: [[0.5, "a"], (x,), [], *[[0.5]] * 999],
    "objects in a list": lambda x: [Config() for _ in range(999)] + [Config(x)],
    "array": lambda x: np.array([0.5] * 999 + [x]).reshape(2, 500).T,
    "array of objects": lambda x: np.array([0.5] * 999 + [x], dtype=object),
    "array with a mask": lambda x: np.ma.array(np.zeros(1000), mask=[False] * 999 + [x == 1.0]),
    "array with fields": lambda x: np.array([(1, 0.5)] * 999 + [(1, x)], "i4,O"),
    "array of the standard library": lambda x: array.array("d", [0.5] * 999 + [x]),
    "bytes": lambda x: bytearray(999) + str(x).encode(),
}


@pytest.mark.parametrize("name", MANY)
def test_many_values_compare_as_they_are(name):
    held, names = MANY[name](1.0), frozenset({"temperature"})
    before = values.frozen(held, names)
    hash(before)
    if name != "objects in a list":  # those are themselves, and their attributes
        assert values.frozen(MANY[name](1.0), names) == before
    else:
        assert values.frozen(held, names) == before
        held[-1].temperature = 2.0
        assert values.frozen(held, names) != before
    assert values.frozen(MANY[name](2.0), names) != before
