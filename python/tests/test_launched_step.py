# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`baechi.jit` of programs that mpirun, torchrun, `BAECHI_RANKS` or `jax.distributed` has started
in several processes: all ranks get what one process computes, bit for bit, and JAX to rounding."""

from __future__ import annotations

import os
import pathlib
import socket
import subprocess
import sys
import types
import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import baechi
from baechi.common import launch
from baechi.common.launch import Launch, find_launch
from baechi.compiling import tools
from baechi.compiling.tools import CompileError

# Trains over two ranks, and once more by a store; writes what this rank has found.
PROGRAM = """
import os, sys
import numpy as np
import jax, jax.numpy as jnp

folder, rank = sys.argv[1], int(sys.argv[2])
import baechi
from test_launched_step import train, first, batch
OPTIONS = {"costs": "roofline", "budget": "0", "ranks": "launcher"}
step = baechi.jit(
    train, machine="host:2", replicas=2, exchange="p3", donate_argnums=0, **OPTIONS
)
if len(sys.argv) > 3:  # after the step was made, as a program may
    jax.distributed.initialize(sys.argv[3], 2, rank)
state, losses = first(), []
for n in range(3):
    state, loss = step(state, *batch(n))
    losses.append(loss)
def differs(rows, features, words, other=TypeError):
    x, y = batch(3 + rank if rows is None else 3)
    try:
        step(state, x[:rows, :features], y[:rows])
    except other if rank == 1 else baechi.CompileError as error:
        assert words in str(error), error
    else:
        raise AssertionError("ranks that differ")

compiled = baechi.CompileError
differs(None, None, "rank 1 calls another step, or the step with other arguments", compiled)
differs(16 - 8 * rank, None, "calls another step, or the step with other arguments", compiled)
differs(16, 8 - rank, "dot_general requires contracting dimensions to have the same shape")
other = baechi.jit(jnp.sin, machine="host:2", **OPTIONS)
if rank == 1:
    differs(16, None, "rank 0 calls another step", compiled)
else:
    try:
        other(batch(3)[0])
    except baechi.CompileError as error:
        assert "rank 1 calls another step, or the step with" in str(error), error
assert np.array_equal(other(batch(3)[0]), jax.jit(jnp.sin)(batch(3)[0]))
state, loss = step(state, *batch(3))
assert all(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves((state, loss)))
assert "host1" in step.report() and "order p3" in step.report(), step.report()
try:
    step.placement
except RuntimeError as error:
    assert "report() is what they say" in str(error)

def sgd(w, x, y):
    value, gradient = jax.value_and_grad(lambda w: jnp.mean((x @ w - y) ** 2))(w)
    return w - 0.1 * gradient, value

with baechi.stale_step(
    sgd, np.zeros((8, 1), np.float32), replicas=2, staleness=0, **OPTIONS
) as late:
    value = late(*batch(0)).result()
    w = late.state()
(params, key) = state
np.savez(
    f"{folder}/made-{rank}.npz", key=jax.random.key_data(key), losses=np.array([*losses, loss]),
    value=value, w=w, **params,
)
"""


def train(state: Any, x: Any, y: Any) -> Any:
    params, key = state

    def loss_of(params: Any) -> Any:
        return jnp.mean((jnp.tanh(x @ params["in"]) @ params["out"] - y) ** 2)

    loss, gradients = jax.value_and_grad(loss_of)(params)
    params = jax.tree.map(lambda p, g: p - 0.05 * g, params, gradients)
    return (params, jax.random.split(key)[0]), loss


def first() -> Any:
    random = np.random.default_rng(0)
    params = {
        "in": jnp.array(random.normal(size=(8, 48)) / 3, jnp.float32),
        "out": jnp.array(random.normal(size=(48, 1)) / 7, jnp.float32),
    }
    return params, jax.random.key(7)


def batch(number: int) -> tuple[Any, Any]:
    x = np.random.default_rng(number + 1).normal(size=(16, 8)).astype(np.float32)
    return x, np.tanh(x[:, :1])


def _of_one_process() -> dict[str, np.ndarray]:
    options: Any = {"costs": "roofline", "budget": "0", "exchange": "p3", "replicas": 2}
    step = baechi.jit(train, machine="host:2", donate_argnums=0, **options)
    state, losses = first(), []
    for n in range(4):
        state, loss = step(state, *batch(n))
        losses.append(float(loss))
    params, key = state
    return {
        "key": np.asarray(jax.random.key_data(key)),
        "losses": np.array(losses, np.float32),
        **{name: np.asarray(value) for name, value in params.items()},
    }


def _of_jax() -> dict[str, np.ndarray]:
    state = first()
    for n in range(4):
        state, _ = jax.jit(train)(state, *batch(n))
    return {name: np.asarray(value) for name, value in state[0].items()}


def _environment(tmp_path: pathlib.Path, **more: object) -> dict[str, str]:
    others = {k: v for k, v in os.environ.items() if k not in (*tools.OF_LAUNCHERS, "RANK")}
    paths = [str(pathlib.Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    more |= {"TMPDIR": tmp_path, "PYTHONPATH": os.pathsep.join(paths)}
    return others | {k: str(v) for k, v in more.items()}


def _run_two(tmp_path: pathlib.Path, by_jax: bool) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    with socket.socket() as found:
        found.bind(("localhost", 0))
        place = f"localhost:{found.getsockname()[1]}"
    ranks = []
    for rank in range(2):
        by_hand: dict[str, object] = {
            "BAECHI_RANKS": 2,
            "BAECHI_RANK": rank,
            "BAECHI_COORDINATOR": place,
            "BAECHI_JOB": tmp_path.name,
        }
        words = [str(tmp_path), str(rank), *([place] if by_jax else [])]
        ranks.append(
            subprocess.Popen(
                [sys.executable, str(program), *words],
                env=_environment(tmp_path, **({} if by_jax else by_hand)),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        )
    said = [rank.communicate(timeout=400)[0] for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0, 0], "\n".join(said)


@pytest.mark.parametrize("by_jax", [False, True], ids=["BAECHI_RANKS", "jax.distributed"])
def test_all_ranks_get_what_one_process_computes(tmp_path: pathlib.Path, by_jax: bool) -> None:
    _run_two(tmp_path, by_jax)
    made, other = (np.load(tmp_path / f"made-{rank}.npz") for rank in range(2))
    for name in made.files:
        np.testing.assert_array_equal(other[name], made[name])
    for name, value in _of_one_process().items():
        np.testing.assert_array_equal(made[name], value, strict=True)
    for name, value in _of_jax().items():
        np.testing.assert_allclose(made[name], value, rtol=1e-4, atol=1e-6)
    # Of the store: the mean of the replicas' gradients is that of the whole batch.
    x, y = batch(0)
    np.testing.assert_allclose(made["w"], 0.2 * x.T @ y / len(x), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(made["value"].mean(), (y**2).mean(), rtol=1e-4)
    assert not list(tmp_path.glob("baechi-*"))


OWN = {"BAECHI_RANKS": "2", "BAECHI_RANK": "0", "BAECHI_COORDINATOR": "localhost:7000"}


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*tools.OF_LAUNCHERS, "RANK"):
        monkeypatch.delenv(name, raising=False)


def test_a_whole_step_in_each_process_is_told(alone: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not of one replica, which has nothing to exchange, nor where nothing was started."""
    options: Any = {"machine": "host:2", "costs": "roofline", "budget": "0"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        baechi.jit(train, replicas=2, **options)(first(), *batch(0))
    for name, value in OWN.items():
        monkeypatch.setenv(name, value)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        baechi.jit(train, **options)(first(), *batch(0))
    words = "replicas is 2, and BAECHI_RANKS has started 2 processes: this one computes all"
    with pytest.warns(UserWarning, match=f"{words}.*; give ranks='launcher'"):
        baechi.jit(train, replicas=2, **options)(first(), *batch(0))
    monkeypatch.delenv("BAECHI_COORDINATOR")
    with pytest.warns(UserWarning, match="several processes seem to be started .BAECHI_COORDINATO"):
        baechi.jit(train, replicas=2, **options)(first(), *batch(0))


def test_what_ranks_do_not_do_is_told(alone: None, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="ranks is 2: give 'launcher'"):
        baechi.jit(train, ranks=2)  # type: ignore[call-overload]
    for option in ({"overlap_steps": True}, {"check": "first"}):
        with pytest.raises(ValueError, match=f"ranks is 'launcher' and {next(iter(option))} given"):
            baechi.jit(train, ranks="launcher", **option)  # type: ignore[call-overload]
    for name, value in OWN.items():
        monkeypatch.setenv(name, value)

    def prints(x: Any) -> Any:
        jax.debug.print("{}", x.sum())
        return 2 * x

    with pytest.raises(CompileError, match="which several ranks do not do yet:\n.*debug"):
        baechi.jit(prints, ranks="launcher")(np.ones(3, np.float32))
    monkeypatch.setenv("BAECHI_COORDINATOR", "node7:7000")
    with pytest.raises(ValueError, match="'train' has ranks='launcher', .* 1 of them on this mach"):
        baechi.jit(train, ranks="launcher")(first(), *batch(0))


def test_alone_it_is_as_any_other(alone: None) -> None:
    step = baechi.jit(train, machine="host:1", costs="roofline", budget="0", ranks="launcher")
    with pytest.raises(RuntimeError, match="no program yet"):
        step.report()
    (params, _), _ = step(first(), *batch(0))
    (expected, _), _ = jax.jit(train)(first(), *batch(0))
    np.testing.assert_allclose(params["in"], expected["in"], rtol=1e-5, atol=1e-6)
    assert set(step.placement.values()) == {"host0"} and "host0" in step.report()


class _Client:
    """As JAX's, of a job whose other process is on another machine."""

    def __init__(self) -> None:
        self.kept = {"baechi/1": "0123 elsewhere 1"}

    def key_value_set(self, name: str, value: str) -> None:
        self.kept[name] = value

    def blocking_key_value_get(self, name: str, milliseconds: int) -> str:
        assert milliseconds == 120_000
        if name not in self.kept:
            raise RuntimeError("DEADLINE_EXCEEDED")
        return self.kept[name]


def test_jax_tells_who_is_where(alone: None, monkeypatch: pytest.MonkeyPatch) -> None:
    state = types.SimpleNamespace(
        client=_Client(), num_processes=2, process_id=0, coordinator_address="node1:65535"
    )
    monkeypatch.setattr(sys.modules["jax._src.distributed"], "global_state", state)
    found = find_launch()
    assert found is not None and found.job.startswith("node1:65535.")
    assert (found.launcher, found.rank, found.ranks, found.here) == ("jax.distributed", 0, 2, 1)
    assert found.place == ("node1", 65534) and find_launch() is found
    # What was set by hand is meant.
    for name, value in OWN.items():
        monkeypatch.setenv(name, value)
    assert find_launch() == Launch("BAECHI_RANKS", 0, 2, 2, "localhost:7000.", ("localhost", 7000))
    monkeypatch.undo()
    state.client, state.num_processes = _Client(), 3
    monkeypatch.setattr(launch, "_jax_state", lambda: state)
    with pytest.raises(ValueError, match="process 2 of jax.distributed's 3 has not come after"):
        find_launch()
