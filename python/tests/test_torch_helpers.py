# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Python values count that helpers, static methods and properties read for a model."""

import warnings

import pytest

import torch_support as support
from torch_support import F, nn, seeded, torch  # noqa: F401

pytestmark = support.needs_tools


class Schedule:
    """An object whose methods, not the model, read its attributes."""

    kept = 1.0

    def __init__(self):
        self.t, self.parts = 1.0, [{"deep": [[[1.0]]]}]

    def value(self):
        return 1.0 / self.t

    def __call__(self, x):
        return x * self.t

    @classmethod
    def of_all(cls):
        return cls.kept


SCHEDULE = Schedule()


def scale_of(model):
    return model.scale


class Helped(nn.Module):
    """Reads values by ways that its own code does not name whole."""

    T = 1.0

    def __init__(self, way):
        super().__init__()
        self.inner, self.scale = nn.Linear(4, 3), 1.0
        self.helper, self.way = Schedule(), way

    def forward(self, x):
        h = self.inner(x)
        ways = {
            "method": lambda: h * self.helper.value(),
            "call": lambda: self.helper(h),
            "global": lambda: h * SCHEDULE.value(),
            "static": lambda: Helped.times(h, self),
            "class": lambda: h * self.of_class(),
            "function": lambda: h * scale_of(self),
            "property": lambda: h * self.factor,
            "deep": lambda: h * self.helper.parts[0]["deep"][0][0][0],
        }
        return ways[self.way]()

    @staticmethod
    def times(x, other):
        return x * other.scale

    @classmethod
    def of_class(cls):
        return cls.T

    @property
    def factor(self):
        return self.scale


factor = "a global of the name of a property"
CHANGED = {
    "method": lambda model, value: setattr(model.helper, "t", value),
    "call": lambda model, value: setattr(model.helper, "t", value),
    "global": lambda model, value: setattr(SCHEDULE, "t", value),
    "class": lambda model, value: setattr(Helped, "T", value),
    "deep": lambda model, value: model.helper.parts[0]["deep"][0][0].__setitem__(0, value),
}


@pytest.mark.parametrize(
    "way", ["method", "call", "global", "static", "class", "function", "property", "deep"]
)
def test_values_that_others_read_for_a_model_count(way, monkeypatch):
    monkeypatch.setattr(Helped, "T", 1.0)
    monkeypatch.setattr(SCHEDULE, "t", 1.0)
    model = Helped(way)
    step = support.compile_step(
        model, F.mse_loss, torch.optim.SGD(model.parameters(), lr=0.1), machine="host:1"
    )
    x, y = torch.randn(5, 4), torch.randn(5, 3)
    for value in (1.0, 2.0):
        CHANGED.get(way, lambda model, value: setattr(model, "scale", value))(model, value)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = F.mse_loss(model(x), y).detach()
            torch.testing.assert_close(step(x, y), expected)


def test_globals_with_the_names_of_attributes_compile_nothing(monkeypatch):
    """`inner = step(...)` in a script is nobody's attribute."""
    model = Helped("property")
    step = support.compile_step(
        model, F.mse_loss, torch.optim.SGD(model.parameters(), lr=0.1), machine="host:1"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for i in range(3):
            monkeypatch.setitem(globals(), "inner", object())
            monkeypatch.setitem(globals(), "scale", i)
            step(torch.randn(5, 4), torch.randn(5, 3))
    assert len(step._programs) == 1
