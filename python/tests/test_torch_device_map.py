# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`baechi.torch.device_map` against accelerate's `infer_auto_device_map`."""

import numpy as np
import pytest

import needs
import torch_support as support
from torch_support import F, baechi, nn, seeded, torch  # noqa: F401

pytest.importorskip("baechi._placement", reason="the Python extension is not built")

from baechi.models import torch as models  # noqa: E402
from baechi.torch.mapping import _machine  # noqa: E402
from baechi.torch.module_graph import ModuleGraphBuilder  # noqa: E402


def collected(name, preset="tiny"):
    module = models.load(name)
    made = module.training(module.PRESETS[preset])
    return made.model.eval(), made.batch[:-1]


class Branches(nn.Module):
    """Two towers that run at the same time where there are two devices."""

    def __init__(self):
        super().__init__()
        self.left = nn.Sequential(*(nn.Linear(256, 256) for _ in range(4)))
        self.right = nn.Sequential(*(nn.Linear(256, 256) for _ in range(4)))
        self.join = Join()

    def forward(self, x):
        return self.join(self.left(x), self.right(x))


class Join(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(512, 16)

    def forward(self, a, b):
        return self.head(torch.cat([a, b], -1))


class Layers(nn.Module):
    """Stacked LSTMs, a module a layer."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.LSTM(32, 32, batch_first=True) for _ in range(4))
        self.head = nn.Linear(32, 10)

    def forward(self, x):
        for layer in self.layers:
            x, _ = layer(x)
        return self.head(x[:, -1])


MODELS = {
    "mlp": lambda: collected("mlp", "small"),
    "resnet": lambda: collected("resnet", "small"),
    "transformer": lambda: collected("transformer", "small"),
    "lstm": lambda: (Layers().eval(), (torch.randn(8, 6, 32),)),
    "branches": lambda: (Branches().eval(), (torch.randn(512, 256),)),
}

# For activations, bytes.
ROOM = {
    "mlp": 2**22,
    "resnet": 2**24,
    "transformer": 2**24,
    "lstm": 2**16,
    "branches": 2**21,
}


def size(model):
    tensors = [*model.parameters(), *model.buffers()]
    return sum(t.numel() * t.element_size() for t in tensors)


def device_of(found, path):
    parts = path.split(".")
    paths = [".".join(parts[:i]) for i in range(len(parts), -1, -1)]
    return next(found[p] for p in paths if p in found)


def evaluate(model, sample, memory, found, no_split=()):
    """A map by Baechi's evaluator. None where it uses more than the devices."""
    machine, keys = _machine(memory)
    built = ModuleGraphBuilder(model, tuple(sample), {}, no_split).build({"cuda", "host"}, False)
    number = {keys[device["name"]]: i for i, device in enumerate(machine["devices"])}
    if not set(found.values()) <= set(number):
        return None
    # A group that the map tears apart is where most of it is said to be first.
    first = {}
    for op, unit in zip(built.graph.ops, built.units):
        first.setdefault(op.group, number[device_of(found, unit)])
    choice = np.array([first[op.group] for op in built.graph.ops], np.int32)
    return baechi.Evaluator(built.graph, machine)(choice)


@pytest.mark.parametrize("share", [0.4, 0.6, 0.8, 3.0])
@pytest.mark.parametrize("name", MODELS)
def test_never_over_the_limit_and_never_slower_than_accelerate(name, share):
    accelerate = pytest.importorskip("accelerate", reason="accelerate is not installed")
    from accelerate.utils.modeling import check_device_map

    model, sample = MODELS[name]()
    limit = int(share * size(model)) + ROOM[name]
    memory = {0: limit, 1: limit, 2: limit, "cpu": 8 * limit}
    ours = baechi.torch.device_map(model, tuple(sample), memory)
    check_device_map(model, ours)  # every parameter has a device
    mine = evaluate(model, sample, memory, ours)
    assert mine.fits and mine.step_ns == ours.step_ns
    assert all(peak <= memory[key] for key, peak in ours.peak_bytes.items())

    whole = {type(m).__name__ for m in model.modules()} & {"Block", "LSTM", "Join"}
    theirs = accelerate.infer_auto_device_map(
        model, max_memory=dict(memory), no_split_module_classes=list(whole)
    )
    other = evaluate(model, sample, memory, theirs)
    if other is not None and other.fits:
        assert mine.step_ns <= other.step_ns


def test_parallel_towers_are_on_two_devices():
    model, sample = MODELS["branches"]()
    found = baechi.torch.device_map(model, sample, {0: "1GiB", 1: "1GiB"})
    assert device_of(found, "left.0") != device_of(found, "right.0")


def test_maps_for_a_machine_by_its_names():
    model, sample = MODELS["lstm"]()
    if needs.built("baechi-run"):
        found = baechi.torch.device_map(model, sample, "host:2@64MiB", costs="measured")
        assert set(found.values()) <= {"host0", "host1"} and found.step_ns > 0
    machine = baechi.Machine(
        [baechi.Device(f"gpu{i}", "cuda", 2**20) for i in range(2)], baechi.Link(1000, 10_000)
    )
    assert baechi.torch.device_map(model, {"x": sample[0]}, machine) == {"": "gpu0"}


def test_models_without_values():
    with torch.device("meta"):
        model = support.Mlp(inputs=4096, hidden=4096).eval()
    found = baechi.torch.device_map(model, torch.randn(8, 4096), {0: "68MB", 1: "68MB"})
    assert set(found.values()) == {0, 1}
    with pytest.raises(ValueError, match="has no values"):
        baechi.torch.device_map(model, torch.randn(8, 4096), {"cpu": "1GB"}, costs="measured")


def test_errors():
    model, sample = support.Mlp(), torch.randn(8, 16)
    with pytest.raises(baechi.PlacementError, match="bytes"):
        baechi.torch.device_map(model, sample, {0: "1KB", 1: "1KB"})
    with pytest.raises(ValueError, match="no device 'disk'"):
        baechi.torch.device_map(model, sample, {0: "1GB", "disk": "1GB"})
    with pytest.raises(ValueError, match="'much' is no size"):
        baechi.torch.device_map(model, sample, {0: "much"})
    with pytest.raises(ValueError, match="known are"):
        baechi.torch.device_map(model, sample, costs="guessed")
