# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What docs/replicas.md says of DistributedDataParallel: each row of its table compared with
PyTorch's own in two processes, which exchange gradients by gloo."""

from __future__ import annotations

import pathlib
import subprocess
import sys
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch_mlir")
compile_step = pytest.importorskip("baechi.torch").compile_step

from ddp_steps import LOOPS, RANKS, Loop, batches  # noqa: E402

OPTIONS: dict[str, Any] = {"machine": "host:2", "costs": "roofline", "budget": "0"}
HERE = pathlib.Path(__file__).parent


@pytest.fixture(scope="module")
def of_ddp(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """The parameters and buffers that DDP leaves."""
    file = tmp_path_factory.mktemp("ddp") / "states.pt"
    subprocess.run(
        [sys.executable, "-W", "ignore", str(HERE / "ddp_steps.py"), str(file)], check=True
    )
    states: dict[str, dict[str, Any]] = torch.load(file)
    return states


def _trained(loop: Loop, **options: Any) -> dict[str, Any]:
    model, optimizer = loop.made()
    step = compile_step(
        model,
        lambda made, y: loop.loss(made, y) / loop.scale,
        optimizer,
        clip_grad_norm=loop.clip,
        accumulate=loop.accumulate,
        replicas=RANKS,
        **OPTIONS | options,
    )
    for x, y in batches():
        step(x, y)
    return dict(model.state_dict())


@pytest.mark.parametrize("name", LOOPS)
def test_states_are_ddps(name: str, of_ddp: dict[str, dict[str, Any]]) -> None:
    found, expected = _trained(LOOPS[name]), of_ddp[name]
    assert found.keys() == expected.keys()
    for key, value in found.items():
        torch.testing.assert_close(value, expected[key], rtol=1e-4, atol=1e-6)


def test_ranks_may_be_compiled(of_ddp: dict[str, dict[str, Any]]) -> None:
    """By the backend of torch.compile, within DDP."""
    for key, value in of_ddp["compiled"].items():
        expected = of_ddp["mean of the parts"][key]
        torch.testing.assert_close(value, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.nightly
def test_loops_can_differ(of_ddp: dict[str, dict[str, Any]]) -> None:
    """What the rows say matters: without it the states are others."""

    def differ(loop: Loop, name: str) -> bool:
        pairs = [(value, of_ddp[name][key]) for key, value in _trained(loop).items()]
        return any(not torch.allclose(a, b, rtol=1e-2, atol=1e-3) for a, b in pairs)

    assert differ(LOOPS["loss that is a sum"]._replace(scale=1), "loss that is a sum")
    assert differ(LOOPS["norm of all"], "norm of each")
    assert differ(LOOPS["clipping"]._replace(clip=None), "clipping")
    assert differ(LOOPS["accumulation"]._replace(accumulate=1), "accumulation")


@pytest.mark.parametrize("options", [{"exchange": "p3", "slice_bytes": 1024}, {"exchange": "fifo"}])
def test_buckets_are_slices(options: dict[str, Any]) -> None:
    """How gradients travel changes no bit."""
    found, expected = _trained(LOOPS["buckets"], **options), _trained(LOOPS["buckets"])
    for key, value in found.items():
        assert torch.equal(value, expected[key])


def test_wrapped_models_are_refused(tmp_path: pathlib.Path) -> None:
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1
    )
    try:
        model, _ = Loop().made()
        wrapped = torch.nn.parallel.DistributedDataParallel(model)
        around = torch.nn.Sequential(wrapped, torch.nn.ReLU())
        for given, what in ((wrapped, "the model"), (around, "the model's '0'")):
            optimizer = torch.optim.SGD(given.parameters(), lr=0.1)
            with pytest.raises(TypeError) as raised:
                compile_step(given, torch.nn.functional.cross_entropy, optimizer, **OPTIONS)
            told = f"{what} is a DistributedDataParallel, which exchanges gradients between"
            assert told in str(raised.value) and "replicas=N" in str(raised.value)
    finally:
        torch.distributed.destroy_process_group()
