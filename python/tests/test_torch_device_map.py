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


def test_what_has_no_room_is_on_disk():
    model = nn.Sequential(*(nn.Linear(256, 256) for _ in range(8)))
    sample = (torch.zeros(4, 256),)
    limit = size(model) // 4 + 10_000
    found = baechi.torch.device_map(model, sample, {0: limit, "cpu": limit, "disk": "1GiB"})
    assert set(found.values()) == {0, "cpu", "disk"}
    assert found.peak_bytes[0] <= limit and found.peak_bytes["cpu"] <= limit
    memory = {0: "1GiB", "cpu": "1GiB", "disk": "1GiB"}
    assert "disk" not in baechi.torch.device_map(model, sample, memory).values()


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
    with pytest.raises(ValueError, match="no device 'tape'"):
        baechi.torch.device_map(model, sample, {0: "1GB", "tape": "1GB"})
    with pytest.raises(ValueError, match="'much' is no size"):
        baechi.torch.device_map(model, sample, {0: "much"})
    with pytest.raises(ValueError, match="known are"):
        baechi.torch.device_map(model, sample, costs="guessed")


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.up, self.down = (
            nn.LayerNorm(width),
            nn.Linear(width, width),
            nn.Linear(width, width),
        )

    def forward(self, x, mask, angles):
        return x + self.down(torch.relu(self.up(self.norm(x) * angles))) * mask


class Angles(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.register_buffer("rates", torch.rand(width))

    def forward(self, positions):
        return torch.cos(positions.unsqueeze(-1) * self.rates)


class Decoder(nn.Module):
    """As GPT-2 and Llama are written: embeddings, a mask and a loop in one forward."""

    def __init__(self, width, layers):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(100, width), nn.Embedding(32, width)
        self.angles = Angles(width)
        self.layers = nn.ModuleList(Block(width) for _ in range(layers))
        self.norm = nn.LayerNorm(width)

    def forward(self, ids, mask=None):
        places = torch.arange(ids.shape[1])
        mask = torch.ones_like(ids) if mask is None else mask
        keep = (mask * (mask > 0)).unsqueeze(-1).float()
        x = self.tokens(ids) + self.positions(places)
        angles = self.angles(places)
        for layer in self.layers:
            x = layer(x, keep, angles)
        return self.norm(x)


class LanguageModel(nn.Module):
    def __init__(self, width=64, layers=6, tied=True):
        super().__init__()
        self.decoder = Decoder(width, layers)
        self.head = nn.Linear(width, 100, bias=False)
        if tied:
            self.head.weight = self.decoder.tokens.weight

    def forward(self, ids, mask=None):
        return self.head(self.decoder(ids, mask))


def run_dispatched(make, found, *sample):
    """Runs a model whose modules are on devices as in a map, and whose inputs are moved where
    such a module is entered (as accelerate does), without memory behind the devices. PyTorch
    refuses operations on two devices."""
    from torch._subclasses import FakeTensorMode

    def to(values, device):
        move = lambda x: x.to(device) if isinstance(x, torch.Tensor) else x  # noqa: E731
        return torch.utils._pytree.tree_map(move, values)

    def moved(x, device):
        return None if x is None else nn.Parameter(x.detach().to(device), requires_grad=False)

    with FakeTensorMode(allow_non_fake_inputs=True), torch.no_grad():
        model = make()
        modules = dict(model.named_modules())
        for path, number in found.items():
            module, device = modules[path], f"cuda:{number}"
            for part in module.modules():
                for held in (part._parameters, part._buffers):
                    held.update({name: moved(x, device) for name, x in held.items()})
            module.register_forward_pre_hook(
                lambda _, args, kwargs, device=device: (to(args, device), to(kwargs, device)),
                with_kwargs=True,
            )
        first = f"cuda:{next(iter(found.values()))}"
        return model(*(torch.empty_like(x, device=first) for x in sample))


@pytest.mark.parametrize("tied", [True, False])
def test_decoders_are_split_where_their_own_forward_combines(tied):
    def make():
        return LanguageModel(tied=tied).eval()

    sample = torch.zeros(2, 16, dtype=torch.int64), torch.ones(2, 16, dtype=torch.int64)
    model = make()
    half = size(model) * 6 // 10 + 60_000
    found = baechi.torch.device_map(model, sample, {0: half, 1: half})
    assert set(found.values()) == {0, 1}
    assert device_of(found, "decoder.tokens") == device_of(found, "decoder.positions")
    # Residual blocks stay whole, the decoder does not.
    assert "decoder" not in found and all(path.count(".") <= 2 for path in found)
    if tied:
        assert device_of(found, "head") == device_of(found, "decoder.tokens")
    assert run_dispatched(make, found, *sample).shape == (2, 16, 100)
    torn = found | {"decoder.positions": 1 - device_of(found, "decoder.tokens")}
    with pytest.raises(RuntimeError, match="device"):
        run_dispatched(make, torn, *sample)


def test_wrong_samples_and_classes():
    model = LanguageModel()
    with pytest.raises(ValueError, match="no module of class 'Blok': did you mean 'Block'"):
        ids = torch.zeros(2, 16, dtype=torch.int64)
        baechi.torch.device_map(model, ids, {0: "1GB"}, no_split=["Blok"])
    with pytest.raises(TypeError, match=r"write no_split=\['Block'\]"):
        baechi.torch.device_map(model, ids, {0: "1GB"}, no_split="Block")
    block = type(next(m for m in model.modules() if type(m).__name__ == "Block"))
    with pytest.raises(TypeError, match=r"write no_split=\[Block\]"):
        baechi.torch.device_map(model, ids, {0: "1GB"}, no_split=block)
    with pytest.raises(TypeError, match="no_split has 3: give classes of modules, or their names"):
        baechi.torch.device_map(model, ids, {0: "1GB"}, no_split=[3])
    with pytest.raises(ValueError, match="no module of class 'LSTM'"):
        baechi.torch.device_map(model, ids, {0: "1GB"}, no_split=[torch.nn.LSTM])
    by_class = baechi.torch.device_map(model, ids, {0: "1GB"}, no_split=[block])
    assert by_class == baechi.torch.device_map(model, ids, {0: "1GB"}, no_split=["Block"])
    with pytest.raises(
        baechi.torch.ImportFailure,
        match=r"'decoder.tokens' looks up rows by numbers of float32: .*ids\.long",
    ):
        baechi.torch.device_map(model, torch.zeros(2, 16), {0: "1GB"})
