# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The initial values' generator, against the vectors of docs/import.md."""

import numpy as np
import pytest

from baechi import init


def test_splitmix64_is_the_published_generator():
    # The first outputs of Vigna's splitmix64.c for the state 1234567.
    state = np.uint64(1234567)
    steps = np.arange(3, dtype=np.uint64) * np.uint64(init.GOLDEN_GAMMA) + state
    assert init.splitmix64(steps).tolist() == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
    ]


def test_random_bits_vectors():
    assert [hex(z) for z in init.random_bits(1, 4)] == [
        "0x6e789e6aa1b965f4",
        "0xbeeb8da1658eec67",
        "0xbfc846100bfc1e42",
        "0xb3466f8a7b81a989",
    ]
    assert [hex(z) for z in init.random_bits(2**64 - 1, 2)] == ["0x0", "0x5692161d100b05e5"]


def test_uniform_vectors():
    value = init.Uniform((4,), "float32", -0.1, 0.1, 7).value()
    assert value.dtype == np.float32
    assert [hex(bits) for bits in value.view(np.uint32)] == [
        "0x3d5e7372",
        "0x3b972c50",
        "0x3d43dc3e",
        "0x3d9f3815",
    ]


def test_randint_vectors():
    value = init.RandInt((2, 4), "int32", 0, 1000, 9).value()
    assert value.dtype == np.int32
    assert value.ravel().tolist() == [390, 950, 932, 522, 629, 195, 622, 425]


def test_randint_counts_from_low():
    value = init.RandInt((1000,), "int32", -3, 4, 5).value()
    assert set(value.tolist()) == set(range(-3, 4))


def test_constant():
    assert init.constant(2, value=0.5).value().tolist() == [0.5, 0.5]
    assert init.constant(value=0.9).value().shape == ()


def test_elements_do_not_depend_on_the_shape():
    flat = init.Uniform((12,), "float32", -1.0, 1.0, 3).value()
    square = init.Uniform((3, 4), "float32", -1.0, 1.0, 3).value()
    assert (flat.reshape(3, 4) == square).all()


def test_uniform_is_uniform():
    value = init.Uniform((100000,), "float32", -1.0, 3.0, 11).value()
    assert value.min() >= -1.0 and value.max() <= 3.0
    assert value.mean() == pytest.approx(1.0, abs=0.01)
    assert value.std() == pytest.approx(4.0 / 12**0.5, abs=0.01)


def test_seeds_are_independent():
    one, two = (init.Uniform((10000,), "float32", -1.0, 1.0, seed).value() for seed in (1, 2))
    assert abs(np.corrcoef(one, two)[0, 1]) < 0.05


def test_from_example_keeps_splats_and_ranges():
    assert init.from_example(np.full((2, 3), 0.25, np.float32), 1) == init.Constant(
        (2, 3), "float32", 0.25
    )
    assert init.from_example(np.int32([3, 9, 4]), 2) == init.RandInt((3,), "int32", 3, 10, 2)
    assert init.from_example(np.float32([-1, 0, 2]), 3) == init.Uniform(
        (3,), "float32", -1.0, 2.0, 3
    )
    assert init.from_example(np.array([True, False]), 4) == init.RandInt((2,), "bool", 0, 2, 4)


def test_from_example_keeps_integers_that_float32_cannot_hold():
    value = init.from_example(np.int32([2**24 + 1]), 1).value()
    assert value.tolist() == [2**24 + 1]
