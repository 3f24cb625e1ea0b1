# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`exchange=` of `baechi.jit` and PyTorch's step: parameters that cross the border between
calls have the bits of the same replicas on one device and of `baechi-run --exchange`, whether
calls overlap or not, whenever they are looked at."""

from __future__ import annotations

import json
import pathlib
import subprocess
from typing import Any

import jax
import numpy as np
import pytest

import baechi
from baechi.compiling import tools
from test_replicas_step import OPTIONS, STEPS, _batches, _parameters, _sgd

pytest.importorskip("baechi._placement")


@pytest.fixture
def thin(tmp_path: pathlib.Path) -> str:
    """A network on which slices are worth it and what is sent is still on its way when a call
    has ended."""
    devices = [{"name": f"host{i}", "kind": "host", "memory": 1 << 30} for i in range(2)]
    link = {"latency_ns": 100, "bytes_per_us": 50}
    file = tmp_path / "thin.json"
    machine = {"format": "baechi-machine", "version": 1, "devices": devices}
    file.write_text(json.dumps({**machine, "link_default": link, "link_model": "parallel"}))
    return str(file)


def _carried(step: Any) -> int:
    queues = step._latest.library.program["queues"]
    return sum(message.get("carried", False) for queue in queues for message in queue["messages"])


def _leaves(state: Any) -> list[bytes]:
    return [np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(state)]


def _run(step: Any, state: Any) -> list[Any]:
    """Losses and states: looked at between some calls, given on without a look, changed by the
    caller in between, and one array of the state alone."""
    seen: list[Any] = []
    losses = []
    for call, (x, y) in enumerate(_batches() * 3):
        if call == 6:
            seen.append(_leaves(state))
        if call == 9:
            state = jax.tree.map(lambda leaf: np.asarray(leaf) * np.float32(0.5), state)
        if call in (11, 12, 13):  # the others stay where they are
            leaves, tree = jax.tree.flatten(state)
            leaves[1] = np.full(leaves[1].shape, np.float32(1 / call))
            state = jax.tree.unflatten(tree, leaves)
        state, loss = step(state, x, y)
        losses.append(loss)
    return [*seen, _leaves(state), [float(loss).hex() for loss in losses]]


ORDERS: list[dict[str, Any]] = [
    {"exchange": "fifo"},
    {"exchange": "tictac"},
    {"exchange": "slices", "slice_bytes": 2048},
    {"exchange": "p3", "slice_bytes": 2048},
]


EXCHANGED = ["sgd", "loss of new parameters", "adam and clipping by norm", "lamb", "batch norm"]


@pytest.mark.parametrize("name", EXCHANGED)
def test_the_bits_are_those_of_one_device(name: str, thin: str) -> None:
    function, make = STEPS[name]
    donating = {"replicas": 2, "donate_argnums": 0, **OPTIONS}
    alone = baechi.jit(function, machine="host:1", **donating)
    expected = _run(alone, make())
    for order in ORDERS:
        for overlap in (False, True):
            options = {**order, "machine": thin, "transfers": "network", "overlap_steps": overlap}
            step = baechi.jit(function, **options, **donating)
            assert _run(step, make()) == expected, options
            assert _carried(step) > 0
            report = step.report()
            assert "messages   messages are exchanged" in report
            assert ("overlap    a device begins its next call" in report) == overlap


def test_parameters_go_in_slices(thin: str) -> None:
    options = {"machine": thin, "transfers": "network", "replicas": 2, "donate_argnums": 0}
    step = baechi.jit(_sgd, exchange="p3", slice_bytes=2048, **options, **OPTIONS)
    x, y = _batches()[0]
    step(_parameters(), x, y)
    assert "parameters are exchanged in slices: predicted" in step.report()
    program = step._latest.library.program
    assert any(len(argument.get("pieces", [])) > 1 for argument in program["arguments"])
    assert program["exchange"] == {"slice_bytes": 2048}


def test_parameters_that_a_norm_scales_stay_whole(thin: str) -> None:
    """LAMB's trust ratios are of whole parameters: each has one owner, and is sent whole."""
    function, make = STEPS["lamb"]
    options = {"machine": thin, "transfers": "network", "replicas": 2, "donate_argnums": 0}
    step = baechi.jit(function, exchange="p3", slice_bytes=2048, **options, **OPTIONS)
    x, y = _batches()[0]
    step(make(), x, y)
    program = step._latest.library.program
    weights = [each for each in program["arguments"] if each["name"].endswith("/w")]
    assert len(weights) == 9 and not any("pieces" in weight for weight in weights)


@pytest.mark.parametrize("order", ORDERS, ids=lambda order: order["exchange"])
def test_the_bits_are_the_tool_s(order: dict[str, Any], thin: str, tmp_path: pathlib.Path) -> None:
    x, y = _batches()[0]
    options = {"machine": thin, "transfers": "network", "replicas": 2, **order, **OPTIONS}
    step = baechi.jit(_sgd, donate_argnums=0, overlap_steps=True, **options)
    lowered = step.lower(_parameters(), x, y)
    state: Any = _parameters()
    for _ in range(5):
        state, loss = step(state, x, y)
    model, inputs, outputs = (tmp_path / name for name in ("m.mlir", "in.npz", "out.npz"))
    model.write_text(lowered.as_text())
    names = [argument.name for argument in lowered.border.signature.arguments]
    np.savez(inputs, **dict(zip(names, jax.tree.leaves((_parameters(), x, y)), strict=True)))
    words = [
        f"--{word}"
        for word in lowered.options.words()
        if not word.startswith(("store=", "measure="))
    ]
    flags = [f"--inputs={inputs}", f"--outputs={outputs}", "--steps=5", "--overlap-steps"]
    subprocess.run([tools.find("baechi-run"), model, *words, *flags], check=True)
    found = [np.asarray(leaf) for leaf in jax.tree.leaves((state, loss))]
    told = np.load(outputs)
    assert [leaf.tobytes() for leaf in found] == [
        told[f"out{i}"].tobytes() for i in range(len(found))
    ]


def test_a_saved_step_overlaps(thin: str, tmp_path: pathlib.Path) -> None:
    donating = {"replicas": 2, "donate_argnums": 0, **OPTIONS}
    expected = _run(baechi.jit(_sgd, machine="host:1", **donating), _parameters())
    x, y = _batches()[0]
    step = baechi.jit(_sgd, machine=thin, transfers="network", exchange="tictac", **donating)
    file = step.lower(_parameters(), x, y).compile().save(tmp_path / "step.baechi")
    loaded = baechi.load_step(file, overlap_steps=True)
    assert _run(loaded, _parameters()) == expected
    assert "overlap    a device begins its next call" in loaded.report()


def test_what_is_not_donated_crosses_no_border() -> None:
    step = baechi.jit(_sgd, machine="host:2", replicas=2, exchange="fifo", **OPTIONS)
    alone = baechi.jit(_sgd, machine="host:1", replicas=2, **OPTIONS)
    assert _run(step, _parameters()) == _run(alone, _parameters())
    assert _carried(step) == 0
    assert "no parameter crosses the border between steps" in step.report()


def test_what_no_exchange_can_be_is_refused() -> None:
    with pytest.raises(ValueError, match="exchange is 'tiktac': did you mean 'tictac'"):
        baechi.jit(_sgd, replicas=2, exchange="tiktac")
    with pytest.raises(ValueError, match="orders the messages between replicas; give replicas=N"):
        baechi.jit(_sgd, exchange="p3", **OPTIONS)(_parameters(), *_batches()[0])
    with pytest.raises(ValueError, match="is of exchange='p3' and 'slices', whose"):
        baechi.jit(_sgd, replicas=2, exchange="fifo", slice_bytes=2048)
    with pytest.raises(ValueError, match="is of exchange='p3' and 'slices', whose"):
        baechi.jit(_sgd, replicas=2, slice_bytes=2048)
    with pytest.raises(ValueError, match="slice_bytes is 12: give a number from 1024 to"):
        baechi.jit(_sgd, replicas=2, exchange="p3", slice_bytes=12)
    with pytest.raises(TypeError, match="give the bytes of a slice, as an int"):
        baechi.jit(_sgd, replicas=2, exchange="p3", slice_bytes="2048")  # type: ignore[arg-type]


def test_gpus_exchange_in_no_such_order(tmp_path: pathlib.Path) -> None:
    devices = [{"name": f"gpu{i}", "kind": "cuda", "memory": 1 << 30} for i in range(2)]
    file = tmp_path / "gpus.json"
    link = {"latency_ns": 100, "bytes_per_us": 50}
    machine = {"format": "baechi-machine", "version": 1, "devices": devices, "link_default": link}
    file.write_text(json.dumps({**machine, "link_model": "parallel"}))
    step = baechi.jit(_sgd, machine=file, replicas=2, exchange="fifo", donate_argnums=0, **OPTIONS)
    x, y = _batches()[0]
    with pytest.raises(baechi.CompileError, match="is between host devices, and 'gpu0' is of kind"):
        step(_parameters(), x, y)


def test_a_step_of_pytorch_exchanges(thin: str) -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("torch_mlir")
    compile_step = pytest.importorskip("baechi.torch").compile_step

    def train(**options: Any) -> list[Any]:
        torch.manual_seed(0)
        layers = [torch.nn.Linear(16, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8)]
        model = torch.nn.Sequential(*layers)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        loss = torch.nn.functional.cross_entropy
        step = compile_step(model, loss, optimizer, replicas=2, **options, **OPTIONS)
        found = []
        for call, (x, y) in enumerate(_batches()):
            if call == 3:
                with torch.no_grad():  # PyTorch's own tensors count, whatever was sent
                    layers[0].weight.mul_(0.5)
            found.append(float(step(torch.tensor(x), torch.tensor(y).long())).hex())
            found.append(layers[2].weight.detach().numpy().tobytes())
        if "exchange" in options:
            assert _carried(step) > 0
        moments = [s["exp_avg"].numpy().tobytes() for s in optimizer.state_dict()["state"].values()]
        return [*found, *moments]

    expected = train(machine="host:1")
    for order in ORDERS:
        assert train(machine=thin, transfers="network", **order) == expected, order
