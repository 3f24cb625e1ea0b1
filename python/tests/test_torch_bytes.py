# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Unsigned bytes above 127, bools and wide integers are what PyTorch takes them for."""

import pytest

import torch_support as support
from torch_support import torch

# isort: split
from baechi.importer.common.errors import UnsupportedOperations

pytestmark = support.needs_tools
FACTORS, WHOLE = torch.tensor([0.5, 1.5, 2.0, 3.0]), torch.tensor([1, -2, 3, 4])


RIGHT = [
    lambda x: x / 255.0,
    lambda x: x // 7,
    lambda x: x % 100,
    lambda x: x.sum(),
    lambda x: x.reshape(2, 2).sum(1),
    lambda x: x.float().mean(),
    lambda x: x + x,
    lambda x: x > 100,
    lambda x: x == 200,
    lambda x: (x >= 128.5) & (x != WHOLE),
    lambda x: x < x.flip(0),
    lambda x: x.abs(),
    lambda x: x * 2,
    lambda x: x**2,
    lambda x: x.max(),
    lambda x: x.clamp(min=x.flip(0)),
    lambda x: torch.nn.functional.pad(x, (1, 1), value=200),
    lambda x: torch.nn.functional.threshold(x, 100, 200),
    lambda x: x.masked_fill(x > 100, 250),
]
RIGHT_OR_REFUSED = [
    lambda x: x.fmod(100),
    lambda x: x * 1.5,
    lambda x: x + FACTORS,
    lambda x: x * WHOLE,
    lambda x: x.prod(),
    lambda x: x.mean(dtype=torch.float32),
    lambda x: torch.where(x > 100, x, FACTORS),
    lambda x: torch.maximum(x, WHOLE),
    lambda x: torch.cat([x, WHOLE]),
]


def compiled(function, x):
    torch._dynamo.reset()
    options = {"machine": "host:1", "costs": "roofline", "budget": "0"}
    return torch.compile(function, backend="baechi", options=options)(x)


@pytest.mark.parametrize("number", range(len(RIGHT) + len(RIGHT_OR_REFUSED)))
def test_bytes_are_unsigned(number):
    function = [*RIGHT, *RIGHT_OR_REFUSED][number]
    x = torch.tensor([254, 200, 7, 255], dtype=torch.uint8)
    expected = function(x)
    try:
        found = compiled(function, x)
    except UnsupportedOperations:
        assert number >= len(RIGHT)
        return
    assert found.dtype == expected.dtype
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32])
def test_numbers_beyond_a_type_are_wrapped_where_they_are_compared(dtype):
    x = torch.tensor([200, 5, 0, 255, 100]).to(dtype)

    def all_of_them(x):
        numbers = (-1, 256, 300, -56, 2**33 + 5, 40000)
        return [made for n in numbers for made in (x > n, x == n, x <= n, x != n)]

    for found, expected in zip(compiled(all_of_them, x), all_of_them(x), strict=True):
        assert torch.equal(found, expected)


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8])
def test_bytes_by_themselves(dtype):
    x = torch.tensor([5, -128, 127, -7, 14, -14], dtype=torch.int8).view(dtype)
    by = 7 if dtype == torch.uint8 else -7

    def all_of_them(x):
        return [x.min(), x.max(), torch.remainder(x, by), x % 7, torch.fmod(x, by)]

    for found, expected in zip(compiled(all_of_them, x), all_of_them(x), strict=True):
        assert found.dtype == expected.dtype
        assert torch.equal(found, expected)


def test_the_largest_integers():
    x = torch.tensor([2**63 - 1, -(2**63), 5])
    assert torch.equal(compiled(lambda x: x ^ 3, x), x ^ 3)


def test_inputs_that_are_seen_negated():
    x = torch._neg_view(torch.tensor([1.0, -2.0]))
    assert x.is_neg()
    assert torch.equal(compiled(lambda x: x * 2, x), x * 2)


def test_truths_are_zero_and_one():
    x, wide = torch.tensor([True, False, True, False]), torch.tensor([-1, 0, 0, 2])

    def all_of_them(x):
        compared = [made for n in (-1, 0, 0.5, True) for made in (x > n, x <= n, x == n, x + n)]
        with_others = [
            made for y in (wide, wide.to(torch.int8)) for made in (x > y, y >= x, y == x)
        ]
        unadded = torch.add(x, True, alpha=False)
        return [*compared, *with_others, unadded, x**2, x.square(), (wide > 0) < -1]

    for found, expected in zip(compiled(all_of_them, x), all_of_them(x), strict=True):
        assert found.dtype == expected.dtype
        assert torch.equal(found, expected)
