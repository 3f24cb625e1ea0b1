# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`baechi.torch.compile_step` of programs that `BAECHI_RANKS` has started in several processes: all
ranks have what one process computes, bit for bit, and PyTorch to rounding."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import baechi.torch  # noqa: E402
from baechi.compiling import tools  # noqa: E402
from test_stale_ranks import by_hand, ended, start  # noqa: E402

OPTIONS: dict[str, Any] = {"machine": "host:2", "replicas": 2, "costs": "roofline", "budget": "0"}

# Each rank trains, is told of another one's mistakes, goes on, and writes what it has.
RANKS = """
import os, sys
import numpy as np
import baechi.torch
from test_torch_ranks import OPTIONS, batch, made, tensors

rank = int(os.environ["BAECHI_RANK"])
model, optimizer, loss = made()
step = baechi.torch.compile_step(model, loss, optimizer, ranks="launcher", **OPTIONS)
losses = [float(step(*batch(n))[0]) for n in range(2)]

def differs(x, y, words, other=TypeError):
    before = tensors(model, optimizer)
    try:
        step(x, y)
    except (other if rank == 1 else baechi.CompileError) as error:
        assert words in str(error), error
    else:
        raise AssertionError("ranks that differ")
    for name, value in tensors(model, optimizer).items():
        assert np.array_equal(before[name], value), name

x, y = batch(2)
differs(x + rank, y, "the step with other arguments", baechi.CompileError)
differs(x, y if rank == 0 else 100 + y, "100" if rank else "rank 1 has failed", IndexError)
losses.append(float(step(x, y)[0]))
assert "host1" in step.report(), step.report()
try:
    step.placement
except RuntimeError as error:
    assert "report() is what they say" in str(error)
np.savez(f"{sys.argv[1]}/made-{rank}.npz", losses=losses, **tensors(model, optimizer))
"""


def made() -> tuple[Any, Any, Any]:
    torch.manual_seed(1)
    model = torch.nn.Sequential(
        torch.nn.Linear(6, 32, bias=False),  # a shift that the next one takes off
        torch.nn.BatchNorm1d(32),
        torch.nn.GELU(),
        torch.nn.Linear(32, 5),
    )

    def loss(found: Any, target: Any) -> Any:
        return torch.nn.functional.cross_entropy(found, target), found.argmax(1)

    return model, torch.optim.AdamW(model.parameters(), lr=0.01), loss


def batch(number: int) -> tuple[Any, Any]:
    generator = torch.Generator().manual_seed(number)
    x = torch.randn(16, 6, generator=generator)
    return x, torch.randint(5, (16,), generator=generator)


def tensors(model: Any, optimizer: Any) -> dict[str, np.ndarray]:
    found = {name: value.detach() for name, value in model.state_dict().items()}
    for number, state in optimizer.state_dict()["state"].items():
        found |= {f"{name}/{number}": value for name, value in state.items()}
    return {name: value.numpy().copy() for name, value in found.items()}


def test_all_ranks_have_what_one_process_computes(tmp_path: pathlib.Path) -> None:
    text = f"import sys\nsys.path.append({str(pathlib.Path(__file__).parent)!r})\n{RANKS}"
    ranks = [start(tmp_path, text, (), by_hand(rank, 2, tmp_path)) for rank in range(2)]
    for code, _, error in ended(ranks):
        assert code == 0, error
    found, other = (np.load(tmp_path / f"made-{rank}.npz") for rank in range(2))
    model, optimizer, loss = made()
    step = baechi.torch.compile_step(model, loss, optimizer, **OPTIONS)
    losses = [float(step(*batch(n))[0]) for n in range(3)]
    for name, value in {"losses": losses, **tensors(model, optimizer)}.items():
        np.testing.assert_array_equal(found[name], value)
        np.testing.assert_array_equal(other[name], value)
    model, optimizer, loss = made()
    for n in range(3):
        optimizer.zero_grad()
        x, y = batch(n)
        loss(model(x), y)[0].backward()
        optimizer.step()
    for name, value in tensors(model, optimizer).items():
        np.testing.assert_allclose(found[name], value, rtol=2e-3, atol=2e-5)
    assert not list(tmp_path.glob("baechi-*"))


def test_what_ranks_do_not_do_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    model, optimizer, loss = made()
    with pytest.raises(ValueError, match="ranks is 2: give 'launcher'"):
        baechi.torch.compile_step(model, loss, optimizer, ranks=2)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="ranks is 'launcher' and check given"):
        baechi.torch.compile_step(model, loss, optimizer, ranks="launcher", check="first")
    # Where nothing has started several, it is a step as any other.
    for name in (*tools.OF_LAUNCHERS, "RANK"):
        monkeypatch.delenv(name, raising=False)
    step = baechi.torch.compile_step(model, loss, optimizer, ranks="launcher", **OPTIONS)
    step(*batch(0))
    assert set(step.placement.values()) == {"host0", "host1"}
    other = baechi.torch.compile_step(model, loss, optimizer, ranks="launcher", **OPTIONS)
    for name, value in by_hand(0, 2, pathlib.Path("job")).items():
        monkeypatch.setenv(name, str(value))
    monkeypatch.setenv("BAECHI_COORDINATOR", "node7:7000")
    with pytest.raises(ValueError, match="'Sequential' has ranks='launcher', .* 1 of them on this"):
        other(*batch(0))
