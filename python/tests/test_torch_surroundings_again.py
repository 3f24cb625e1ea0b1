# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Python values are looked at before every call: looking again finds what looking anew does."""

import dataclasses

import pytest

import torch_support as support
from torch_support import F, nn, seeded, torch  # noqa: F401

# isort: split
from baechi.torch import surroundings

pytestmark = support.needs_tools


@dataclasses.dataclass
class Config:
    temperature: float = 1.0


WEIGHT = [1.0]
FACTOR = 1.0


def set_global(value):
    global FACTOR
    FACTOR = value


class Scaled(nn.Module):
    offset = 0.0

    def __init__(self):
        super().__init__()
        self.inner, self.scale = nn.Linear(4, 3), 1.0
        self.kinds = {"relu": True}

    def forward(self, x):
        return self.activated(self.inner(x) * self.scale)

    def activated(self, x):
        return x.relu() if self.kinds["relu"] else x.tanh()


class Halved(Scaled):
    def forward(self, x):
        return super().forward(x) / 2


class Configured(Scaled):
    def __init__(self):
        super().__init__()
        self.drop, self.conv = nn.Dropout(0.0), nn.Conv2d(2, 2, 3)

    def forward(self, x):
        return super().forward(x) * self.config.temperature + self.offset * FACTOR


class WithHead(nn.Module):
    def __init__(self):
        super().__init__()
        self.begin, self.inner = nn.Linear(4, 3), nn.Linear(3, 3)

    def forward(self, x):
        x = self.inner(self.begin(x))
        return self.head(x) if hasattr(self, "head") else x


@pytest.mark.parametrize(
    "make, change",
    [
        (Halved, lambda model: setattr(model, "scale", 0.5)),
        (WithHead, lambda model: setattr(model, "head", model.inner)),
    ],
    ids=["what super() reaches", "another name of a module"],
)
def test_less_seen_changes_are_read(make, change):
    model = make()
    step = support.compile_step(
        model, F.mse_loss, torch.optim.SGD(model.parameters(), lr=0.0), machine="host:1"
    )
    x, y = torch.randn(5, 4), torch.randn(5, 3)
    step(x, y)
    change(model)
    with pytest.warns(UserWarning, match="compiled again"):
        found = step(x, y)
    torch.testing.assert_close(found, F.mse_loss(model(x), y).detach())


def with_offset(self, x):
    return x + self.offset


ONE_AFTER_THE_OTHER = {
    "another type": lambda model: setattr(model, "scale", 1),
    "an equal boolean": lambda model: setattr(model, "scale", True),
    "zero": lambda model: setattr(model, "scale", 0.0),
    "negative zero": lambda model: setattr(model, "scale", -0.0),
    "a complex zero": lambda model: setattr(model, "scale", complex(0.0, 0.0)),
    "its conjugate": lambda model: setattr(model, "scale", complex(0.0, -0.0)),
    "a list": lambda model: setattr(model, "scale", [1.0]),
    "in the list": lambda model: model.scale.append(2.0),
    "within a container": lambda model: model.kinds.update(relu=False),
    "taken off": lambda model: delattr(model, "scale"),
    "over the class's": lambda model: setattr(model, "offset", 1.0),
    "the class's again": lambda model: delattr(model, "offset"),
    "the class's": lambda model: setattr(Scaled, "offset", 3.0),
    "a library's": lambda model: setattr(model.drop, "p", 0.25),
    "a library's tuple": lambda model: setattr(model.conv, "stride", (2, 2)),
    "a module for another": lambda model: setattr(model, "drop", nn.Tanh()),
    "none": lambda model: setattr(model, "drop", None),
    "a module again": lambda model: setattr(model, "drop", nn.Dropout(0.5)),
    "another name": lambda model: setattr(model, "another", model.drop),
    "a configuration": lambda model: setattr(model, "config", Config()),
    "in the configuration": lambda model: setattr(model.config, "temperature", 2.0),
    "a hook": lambda model: model.inner.register_forward_hook(lambda *_: WEIGHT[0]),
    "what the hook reads": lambda model: WEIGHT.__setitem__(0, 3.0),
    "a global": lambda model: set_global(2.0),
    "a method": lambda model: setattr(Scaled, "activated", with_offset),
}


def test_looking_again_finds_what_looking_anew_does(monkeypatch):
    for name in ("offset", "activated"):
        monkeypatch.setattr(Scaled, name, vars(Scaled)[name])
    monkeypatch.setitem(globals(), "FACTOR", 1.0)
    monkeypatch.setitem(globals(), "WEIGHT", [1.0])
    model = Configured()
    functions = {"loss": F.mse_loss, "outputs": None}
    looks = surroundings.Surroundings()
    before, _ = looks.look(model, functions)
    for name, change in ONE_AFTER_THE_OTHER.items():
        assert looks.look(model, functions)[0] == before, name
        change(model)
        after, objects = looks.look(model, functions)
        anew, objects_anew = surroundings.Surroundings().look(model, functions)
        assert list(after.items()) == list(anew.items()), name
        assert objects == objects_anew
        assert after != before, name
        before = after
