# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Python values that a training step reads count as they are at every call."""

import collections
import copy
import dataclasses
import itertools
import random
import time
import warnings

import numpy as np
import pytest

import torch_support as support
from torch_support import F, nn, seeded, torch  # noqa: F401

# isort: split
from torch.nn.utils import prune

from baechi.importer.common.errors import ImportFailure

pytestmark = support.needs_tools


@dataclasses.dataclass
class Config:
    temperature: float = 1.0
    unread: int = 0


CONFIG = Config()
WEIGHT = [1.0]
TABLE = [1.0] * 1000
FACTOR = 1.0


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.scale, self.calls = nn.Linear(4, 3), 1.0, 0
        self.kinds = {"relu": True}

    def forward(self, x):
        return self.activated(self.inner(x) * self.scale)

    def activated(self, x):
        return x.relu() if self.kinds["relu"] else x.tanh()


def weighted(output, target):
    return WEIGHT[0] * TABLE[700] * F.mse_loss(output, target) * FACTOR / CONFIG.temperature


def closure_of(holder):
    def loss(output, target):
        return holder.weight * F.mse_loss(output, target)

    return loss


class Annealed(nn.Module):
    """A loss that is a module."""

    def __init__(self):
        super().__init__()
        self.weight = 1.0

    def forward(self, output, target):
        return self.weight * F.mse_loss(output, target)


class Holder:
    weight = 1.0


def set_global(i):
    global FACTOR
    FACTOR = 1.0 - 0.2 * i


def changed_attribute(i, model, loss):
    model.scale = 1.0 - 0.2 * i


def changed_dropout(i, model, loss):
    model.drop.p = 0.2 * i


def changed_container(i, model, loss):
    model.kinds["relu"] = i % 2 == 0


def replaced_module(i, model, loss):
    if i == 2:
        model.drop = nn.Tanh()


def replaced_weights(i, model, loss):
    if i == 2:
        model.inner.weight.data = torch.ones(3, 4)


CHANGES = {
    "attribute": (changed_attribute, lambda: F.mse_loss),
    "dropout": (changed_dropout, lambda: F.mse_loss),
    "container": (changed_container, lambda: F.mse_loss),
    "module": (replaced_module, lambda: F.mse_loss),
    "weights": (replaced_weights, lambda: F.mse_loss),
    "global": (lambda i, *_: set_global(i), lambda: weighted),
    "list": (lambda i, *_: WEIGHT.__setitem__(0, 1.0 - 0.2 * i), lambda: weighted),
    "large list": (lambda i, *_: TABLE.__setitem__(700, 1.0 - 0.2 * i), lambda: weighted),
    "configuration": (lambda i, *_: setattr(CONFIG, "temperature", 1.0 + i), lambda: weighted),
    "closure": (
        lambda i, _, loss: setattr(loss.__closure__[0].cell_contents, "weight", 1.0 - 0.2 * i),
        lambda: closure_of(Holder()),
    ),
    "loss module": (lambda i, _, loss: setattr(loss, "weight", 1.0 - 0.2 * i), Annealed),
}


@pytest.fixture(autouse=True)
def restored():
    yield
    WEIGHT[0], TABLE[700], CONFIG.temperature = 1.0, 1.0, 1.0
    set_global(0)


def dropping():
    model = Scaled()
    model.drop = nn.Dropout(0.0)
    model.register_forward_hook(lambda module, _, output: module.drop(output))
    return model


@pytest.mark.parametrize("name", CHANGES)
def test_a_changed_value_is_read(name):
    change, make = CHANGES[name]
    model, loss = dropping(), make()
    eager = copy.deepcopy(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    expected = torch.optim.SGD(eager.parameters(), lr=0.1)
    step = support.compile_step(model, loss, optimizer, machine="host:1")
    x, y = torch.randn(5, 4), torch.randn(5, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for i in range(4):
            change(i, model, loss)
            random = torch.get_rng_state()
            found = step(x, y)
            torch.set_rng_state(random)
            change(i, eager, loss)
            expected.zero_grad()
            value = loss(eager(x), y)
            value.backward()
            expected.step()
            torch.testing.assert_close(found, value.detach())
    torch.testing.assert_close(model.state_dict(), eager.state_dict())


def test_what_no_code_reads_compiles_nothing():
    model = Scaled()
    step = support.compile_step(
        model, weighted, torch.optim.SGD(model.parameters(), lr=0.1), machine="host:1"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for i in range(3):
            model.calls, CONFIG.unread = i, i
            step(torch.randn(5, 4), torch.randn(5, 3))
    assert len(step._programs) == 1


def test_a_second_compilation_is_told_with_what_changed():
    model = Scaled()
    step = support.compile_step(
        model, F.mse_loss, torch.optim.SGD(model.parameters(), lr=0.1), machine="host:1"
    )
    step(torch.randn(5, 4), torch.randn(5, 3))
    model.scale = 0.5
    with pytest.warns(UserWarning, match=r"compiled again: 'model\.scale' is 0\.5 and was 1\.0"):
        step(torch.randn(5, 4), torch.randn(5, 3))


def test_values_without_end_are_refused(monkeypatch):
    monkeypatch.setattr("baechi.torch.training._MOST_SURROUNDINGS", 2)
    model = Scaled()
    step = support.compile_step(
        model, F.mse_loss, torch.optim.SGD(model.parameters(), lr=0.1), machine="host:1"
    )
    with pytest.raises(ImportFailure, match=r"compiled 2 times.*'model\.scale' is 0\.8"):
        for i in range(3):
            model.scale = 1.0 - 0.1 * i
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                step(torch.randn(5, 4), torch.randn(5, 3))


class Counting(Scaled):
    def forward(self, x):
        self.calls += 1
        return super().forward(x) / self.calls


class Keeping(Scaled):
    def forward(self, x):
        self.last = super().forward(x)
        return self.last


KEPT: list = []


def keeping_loss(output, target):
    KEPT.append(output)
    return F.mse_loss(output, target)


class Growing(Scaled):
    def __init__(self):
        super().__init__()
        self.history = []

    def forward(self, x):
        self.history.append(1)
        return super().forward(x) / len(self.history)


class Drawing(Scaled):
    def forward(self, x):
        return super().forward(x) * (2.0 if random.random() < 0.5 else 1.0)


class DrawingByNumPy(Scaled):
    def forward(self, x):
        return super().forward(x) * float(np.random.uniform())


class CountingForAll(Scaled):
    count = 0

    def forward(self, x):
        self.count += 1
        return super().forward(x) * self.count


class CountingInItsClass(Scaled):
    count = 0

    def forward(self, x):
        type(self).count += 1
        return super().forward(x) * self.count


class GrowingForAll(Scaled):
    history: list = []

    def forward(self, x):
        self.history.append(1)
        return super().forward(x) / len(self.history)


class CountingFromNothing(Scaled):
    def forward(self, x):
        self.seen = getattr(self, "seen", 0) + 1
        return super().forward(x) * (2.0 if self.seen > 3 else 1.0)


class Taking(Scaled):
    def __init__(self):
        super().__init__()
        self.factors = itertools.cycle([1.0, 1.0, 1.0, 2.0])

    def forward(self, x):
        return super().forward(x) * next(self.factors)


class TakingFromAQueue(Scaled):
    def __init__(self):
        super().__init__()
        self.factors = collections.deque([1.0, 1.0, 1.0, 2.0])

    def forward(self, x):
        return super().forward(x) * self.factors.popleft()


class DrawingOfItsOwn(Scaled):
    def __init__(self, source):
        super().__init__()
        self.source = source

    def forward(self, x):
        return super().forward(x) * (2.0 if self.source.random() > 0.99 else 1.0)


class DrawingFromAGenerator(Scaled):
    def __init__(self):
        super().__init__()
        self.source = torch.Generator()

    def forward(self, x):
        return super().forward(x) + torch.rand(3, generator=self.source)


class Timed(Scaled):
    def forward(self, x):
        return super().forward(x) * (time.perf_counter_ns() % 1000003)


class FirstOther(Scaled):
    def __init__(self):
        super().__init__()
        self.first = True

    def forward(self, x):
        if self.first:
            self.first = False
            return super().forward(x) * 2
        return super().forward(x)


class Alternating(Scaled):
    def __init__(self):
        super().__init__()
        self.odd = False

    def forward(self, x):
        self.odd = not self.odd
        return super().forward(x)


def pruned():
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
    prune.l1_unstructured(model[0], "weight", amount=0.5)
    return model


def test_pruned_layers_train():
    model, eager = pruned(), pruned()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    expected = torch.optim.SGD(eager.parameters(), lr=0.1)
    step = support.compile_step(model, F.mse_loss, optimizer, machine="host:1")
    x, y = torch.randn(5, 4), torch.randn(5, 3)
    for _ in range(3):
        found = step(x, y)
        expected.zero_grad()
        loss = F.mse_loss(eager(x), y)
        loss.backward()
        expected.step()
        torch.testing.assert_close(found, loss.detach())
    with pytest.raises(RuntimeError, match="computed by a hook of the model"):
        model[0].weight.sum()
    torch.testing.assert_close(model(x), eager(x))
    torch.testing.assert_close(model[0].weight, eager[0].weight)


def kept_by(model):
    """Attributes of a model and of its class that can be compared."""
    found = {**vars(model), "count": getattr(model, "count", 0)}
    if isinstance(model, GrowingForAll):
        found["history"] = model.history
    return {n: x for n, x in found.items() if n not in ("_modules", "source", "factors")}


@pytest.mark.parametrize(
    "model, loss, message",
    [
        (Growing, F.mse_loss, r"changes 'model\.history';.*in buffers"),
        (Drawing, F.mse_loss, "draws a number from Python's random.*torch.rand"),
        (DrawingByNumPy, F.mse_loss, "draws a number from numpy.random.*torch.rand"),
        (CountingForAll, F.mse_loss, r"changes 'model\.count', which was 0"),
        (CountingInItsClass, F.mse_loss, r"changes 'model\.count', which was 0"),
        (GrowingForAll, F.mse_loss, r"changes 'model\.history'"),
        (CountingFromNothing, F.mse_loss, r"changes 'model\.seen', which was 1"),
        (Taking, F.mse_loss, r"reads the iterator 'model\.factors'"),
        (TakingFromAQueue, F.mse_loss, r"changes 'model\.factors'"),
        (lambda: DrawingOfItsOwn(random.Random(0)), F.mse_loss, r"a number from 'model\.source'"),
        (
            lambda: DrawingOfItsOwn(np.random.default_rng(0)),
            F.mse_loss,
            r"a number from 'model\.source'",
        ),
        (
            lambda: DrawingOfItsOwn(np.random.RandomState(0)),
            F.mse_loss,
            r"a number from 'model\.source'",
        ),
        (DrawingFromAGenerator, F.mse_loss, r"test_torch.*draws from a torch\.Generator"),
        (Timed, F.mse_loss, r"test_torch.*does not do the same.*mul\(…, \d+\), then mul"),
        (FirstOther, F.mse_loss, r"not do the same.*'model\.first' is False and was True"),
        (Alternating, F.mse_loss, r"changes 'model\.odd'"),
        (Counting, F.mse_loss, r"changes 'model\.calls', which was 0;.*in buffers"),
        (Keeping, F.mse_loss, r"keeps a tensor in 'model\.last'.*outputs="),
        (Scaled, keeping_loss, r"keeps a tensor in 'loss: KEPT'.*outputs="),
    ],
)
def test_what_forward_leaves_behind_is_refused(model, loss, message):
    model = model()
    before = copy.deepcopy(kept_by(model))
    step = support.compile_step(
        model, loss, torch.optim.SGD(model.parameters(), lr=0.1), machine="host:1"
    )
    for _ in range(2):  # it is refused again, too
        with warnings.catch_warnings(), pytest.raises(ImportFailure, match=message):
            warnings.simplefilter("error")
            step(torch.randn(5, 4), torch.randn(5, 3))
        KEPT.clear()
    assert kept_by(model) == before


def test_too_many_objects_are_refused():
    model = Scaled()
    model.kinds = {"relu": True, "others": [object() for _ in range(100_001)]}
    step = support.compile_step(
        model, F.mse_loss, torch.optim.SGD(model.parameters(), lr=0.1), machine="host:1"
    )
    with pytest.raises(ImportFailure, match=r"reads 'model\.kinds', which holds more than 100,000"):
        step(torch.randn(5, 4), torch.randn(5, 3))
