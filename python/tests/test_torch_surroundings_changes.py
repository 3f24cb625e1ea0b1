# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ways in which Python lets what a model computes change between two calls."""

import dataclasses
import functools

import pytest

import torch_support as support
from torch_support import F, nn, torch

# isort: split
import baechi.torch
from baechi.torch import surroundings

pytestmark = support.needs_tools


class Linear(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 3)
        self.set(1.0)


def scaled(x, factor=1.0):
    return x * factor


class Replaced(Linear):
    """By an object at whose place the next one may lie."""

    def set(self, value):
        self.function = lambda x, factor=value: x * factor

    def forward(self, x):
        return self.function(self.inner(x))


class Closed(Replaced):
    def set(self, value):
        self.function = lambda x: x * value


class Partial(Replaced):
    function = functools.partial(scaled, factor=1.0)

    def set(self, value):
        self.function.keywords["factor"] = value


@dataclasses.dataclass(slots=True)
class Slots:
    factor: float = 1.0


class InSlots(Linear):
    config = Slots()

    def set(self, value):
        self.config.factor = value

    def forward(self, x):
        return self.inner(x) * self.config.factor


@dataclasses.dataclass(frozen=True, slots=True)
class Frozen:
    factor: float = 1.0


class NewSlots(InSlots):
    def set(self, value):
        self.config = Frozen(value)


class ByString(InSlots):
    def forward(self, x):
        return self.inner(x) * getattr(self.config, "factor")  # noqa: B009


class ByDictionary(Linear):
    def set(self, value):
        self.factor = value

    def forward(self, x):
        return self.inner(x) * self.__dict__["factor"]


class OfClass(Linear):
    def set(self, value):
        OfClass.times = (lambda _, x: x) if value == 1 else (lambda _, x: x * 2)

    def forward(self, x):
        return self.times(self.inner(x))


class Forward(Linear):
    def set(self, value):
        Forward.forward = _once if value == 1 else _twice


def _once(self, x):
    return self.inner(x)


def _twice(self, x):
    return self.inner(x) * 2


def of_script(x):
    return x


class OfScript(Linear):
    def set(self, value):
        global of_script
        of_script = (lambda x: x) if value == 1 else (lambda x: x * 2)

    def forward(self, x):
        return of_script(self.inner(x))


class OfFunction(Linear):
    def set(self, value):
        scaled.factor = value

    def forward(self, x):
        return self.inner(x) * scaled.factor


class Descriptor:
    def __get__(self, owner, kind=None):
        return owner.hidden


class Described(Linear):
    factor = Descriptor()

    def set(self, value):
        self.hidden = value

    def forward(self, x):
        return self.inner(x) * self.factor


class Missing(Linear):
    def set(self, value):
        self.values = {"factor": value}

    def __getattr__(self, name):
        return self.values["factor"] if name == "factor" else super().__getattr__(name)

    def forward(self, x):
        return self.inner(x) * self.factor


class Indexed(Linear):
    class Table:
        def __getitem__(self, index):
            return self.entry

    table = Table()

    def set(self, value):
        self.table.entry = value

    def forward(self, x):
        return self.inner(x) * self.table[0]


CHANGES = [
    Replaced, Closed, Partial, InSlots, NewSlots, ByString, ByDictionary, OfClass, Forward,
    OfScript, OfFunction, Described, Missing, Indexed,
]  # fmt: skip


@pytest.mark.parametrize("kind", CHANGES)
def test_changes_are_seen(kind):
    model, looked = kind(), surroundings.Surroundings()
    before = looked.look(model, {})[0]
    assert looked.look(model, {})[0] == before
    model.set(2.0)
    after = looked.look(model, {})[0]
    assert after != before and surroundings.difference(before, after) != "nothing"


@pytest.mark.parametrize("kind", [Replaced, NewSlots, OfClass])
def test_steps_are_those_of_now(kind):
    torch.manual_seed(0)
    model, x, y = kind(), torch.randn(5, 4), torch.randn(5, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    step = baechi.torch.compile_step(
        model, F.mse_loss, optimizer, machine="host:1", costs="roofline", budget="0"
    )
    with pytest.warns(UserWarning, match="compiled again"):
        for value in (1.0, 1.0, 2.0, 2.0, 1.0):
            model.set(value)
            torch.testing.assert_close(step(x, y), F.mse_loss(model(x), y))
