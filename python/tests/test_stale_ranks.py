# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`baechi.stale_step` of programs that mpirun, torchrun or `BAECHI_RANKS` has started in several
processes: all ranks get what one process does, compared with the mean of JAX's own steps."""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import baechi
from baechi.compiling import tools
from baechi.replicas.arguments import StoreError

# Trains, and writes what this rank has found.
PROGRAM = """
import os, sys
import jax, jax.numpy as jnp
import numpy as np
import baechi

def train(state, x, y):
    (w, key), count = state
    key, mine = jax.random.split(key)
    loss, gradient = jax.value_and_grad(lambda w: jnp.mean((x @ w - y) ** 2))(w)
    return ((w - 0.1 * gradient, key), count + 1), {"loss": loss, "key": mine}

random = np.random.default_rng(0)
truth = random.normal(size=(8, 1)).astype(np.float32)
state = (np.zeros((8, 1), np.float32), jax.random.key(3)), np.int32(0)
staleness, steps = int(sys.argv[2]), int(sys.argv[3])
bandwidth = {"bandwidth": 1e6} if staleness == 3 else {}
with baechi.stale_step(
    train, state, replicas=3, staleness=staleness, costs="roofline", budget="0", checked=True,
    ranks="launcher", **bandwidth,
) as step:
    made = []
    for n in range(steps):
        x = random.normal(size=(12, 8)).astype(np.float32)
        made.append(step(x, x @ truth))
        if n == steps // 2:
            between = step.state()
    made = [each.result() for each in made]
    (w, key), count = step.state()
(closed, _), _ = step.state()
assert np.array_equal(closed, w)
rank = os.environ.get("BAECHI_RANK") or os.environ.get("RANK") or os.environ["OMPI_COMM_WORLD_RANK"]
np.savez(
    f"{sys.argv[1]}/made-{rank}.npz", w=w, count=count, key=jax.random.key_data(key),
    between=between[0][0], losses=np.array([each["loss"] for each in made]),
    keys=np.array([jax.random.key_data(each["key"]) for each in made]),
)
if rank == "0":
    report = step.report()
    assert report.clocks == [steps] * 3, report
    assert len(report.reads_by_staleness) == staleness + 1
    assert sum(report.reads_by_staleness) >= 3 * steps, report
print("done")
"""


def environment(tmp_path: pathlib.Path, **more: object) -> dict[str, str]:
    others = {k: v for k, v in os.environ.items() if k not in (*tools.OF_LAUNCHERS, "RANK")}
    return others | {"TMPDIR": str(tmp_path)} | {k: str(v) for k, v in more.items()}


def by_hand(rank: int, ranks: int, tmp_path: pathlib.Path) -> dict[str, object]:
    return {
        "BAECHI_RANKS": ranks,
        "BAECHI_RANK": rank,
        "BAECHI_COORDINATOR": "localhost:7777",
        "BAECHI_JOB": tmp_path.name,
    }


def start(
    tmp_path: pathlib.Path, text: str, words: tuple[object, ...], variables: dict[str, object]
) -> subprocess.Popen[str]:
    program = tmp_path / "program.py"
    program.write_text(text)
    return subprocess.Popen(
        [sys.executable, str(program), str(tmp_path), *map(str, words)],
        env=environment(tmp_path, **variables),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(ranks: list[subprocess.Popen[str]]) -> list[tuple[int, str, str]]:
    said = [rank.communicate(timeout=400) for rank in ranks]
    return [(rank.returncode, *each) for rank, each in zip(ranks, said, strict=True)]


def _mean_of_jax(steps: int) -> tuple[Any, Any, np.ndarray]:
    """The mean of each replica's own step: the weights half way and at the end, the losses."""

    def train(w: Any, x: Any, y: Any) -> Any:
        loss, gradient = jax.value_and_grad(lambda w: jnp.mean((x @ w - y) ** 2))(w)
        return w - 0.1 * gradient, loss

    mapped = jax.jit(jax.vmap(train, in_axes=(None, 0, 0)))
    random = np.random.default_rng(0)
    truth = random.normal(size=(8, 1)).astype(np.float32)
    w, losses, between = jnp.zeros((8, 1)), [], None
    for n in range(steps):
        x = random.normal(size=(12, 8)).astype(np.float32)
        each, loss = mapped(w, x.reshape(3, 4, 8), (x @ truth).reshape(3, 4, 1))
        w = each.mean(0)
        losses.append(loss)
        between = w if n == steps // 2 else between
    return between, w, np.array(losses)


def _check(tmp_path: pathlib.Path, ranks: int, staleness: int, steps: int) -> None:
    made = [np.load(tmp_path / f"made-{rank}.npz") for rank in range(ranks)]
    for other in made[1:]:
        for name in made[0].files:
            np.testing.assert_array_equal(other[name], made[0][name])
    between, w, losses = _mean_of_jax(steps)
    if staleness == 0:
        np.testing.assert_allclose(made[0]["between"], between, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(made[0]["w"], w, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(made[0]["losses"], losses, rtol=1e-3, atol=1e-5)
    assert made[0]["losses"].shape == (steps, 3)
    assert made[0]["losses"][-1].mean() < 0.1 * losses[0].mean()
    assert made[0]["count"] == steps
    key, drawn = jax.random.key(3), []
    for _ in range(steps):
        key, mine = jax.random.split(key)
        drawn.append([jax.random.key_data(mine)] * 3)
    np.testing.assert_array_equal(made[0]["key"], jax.random.key_data(key))
    np.testing.assert_array_equal(made[0]["keys"], drawn)


@pytest.mark.parametrize("staleness", [0, 2, 3])
def test_all_ranks_train_as_one_process(tmp_path: pathlib.Path, staleness: int) -> None:
    """Two ranks with one replica and two; without staleness the mean of JAX's own steps."""
    words = staleness, 40
    for code, said, error in ended(
        [start(tmp_path, PROGRAM, words, by_hand(rank, 2, tmp_path)) for rank in range(2)]
    ):
        assert code == 0, error
        assert said == "done\n"
    _check(tmp_path, 2, *words)
    assert not list(tmp_path.glob("baechi-stale*"))


def test_ranks_of_several_machines_meet_at_a_port(tmp_path: pathlib.Path) -> None:
    """As torchrun starts one on each of two machines; with a key of theirs."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    variables: dict[str, object] = {
        "WORLD_SIZE": 2,
        "LOCAL_WORLD_SIZE": 1,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": port - 1,
    }
    alone = start(tmp_path, PROGRAM, (1, 4), variables | {"RANK": 0})
    _, said = alone.communicate(timeout=400)
    assert alone.returncode != 0 and "set BAECHI_KEY to the same words for all of them" in said
    variables["BAECHI_KEY"] = "a word of ours"
    for code, _, error in ended(
        [start(tmp_path, PROGRAM, (0, 12), variables | {"RANK": rank}) for rank in range(2)]
    ):
        assert code == 0, error
    _check(tmp_path, 2, 0, 12)


def test_mpirun_starts_them(tmp_path: pathlib.Path) -> None:
    mpirun = shutil.which("mpirun")
    if mpirun is None:
        pytest.skip("there is no mpirun")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    words = [mpirun, "--allow-run-as-root", "--oversubscribe", "-n", "2"]
    done = subprocess.run(
        [*words, sys.executable, str(program), str(tmp_path), "0", "12"],
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=400,
    )
    assert done.returncode == 0, done.stderr
    _check(tmp_path, 2, 0, 12)


# How ranks differ or fail, by a word: each prints what it is told.
WRONG = """
import os, sys, time
import numpy as np
import baechi

what, rank = sys.argv[2], int(os.environ["BAECHI_RANK"])

def train(state, x):
    if what == "replica" and rank == 1 and x[0] > 2:
        raise ZeroDivisionError("of its own")
    if what == "killed" and rank == 1 and x[0] > 2:
        os._exit(9)
    if what == "unsent" and rank == 0 and x[0] > 2:
        return state, np.array([lambda: None])
    if what == "own" and rank == 1 and x[0] > 2:
        return (state[0], state[1] + 1), x
    return (state[0] + x.mean(), state[1]), x

state = np.full(3, rank if what == "state" else 0, np.float32), 7
staleness = -1 if what == "options" else 1
try:
    with baechi.stale_step(
        train, state, replicas=2, staleness=staleness, compiled=False, ranks="launcher", patience=20
    ) as step:
        for n in range(6):
            if what == "raises" and rank == 1 and n == 3:
                raise KeyError("in the loop")
            if what == "order" and rank == 1 and n == 3:
                step.state()
            batch = np.full(2, n + (what == "batch" and rank == 1 and n == 3), np.float32)
            step(batch)
        step.state()
except Exception as error:
    print(f"{type(error).__name__}: {error}")
else:
    print("nothing")
"""


@pytest.mark.parametrize(
    "what, of_first, of_second",
    [
        ("state", "rank 1 makes the step with another state or other options than rank 0", ""),
        ("options", "StoreError: the staleness is -1: give 0", "the staleness is -1: give 0"),
        ("batch", "rank 1 calls the step with other arguments than rank 0: give all", "rank 0"),
        ("order", "calls the step where rank|asks for the state where rank", "do the same, in th"),
        (
            "replica",
            "replica 1, on rank 1, has failed: ZeroDiv|1 is lost: ZeroDivisionError: of its own",
            "ZeroDivisionError: of its own",
        ),
        ("own", r"state\[1\] of type int32 is 7 at replica 0 and [89] at rep", "has to be the"),
        ("unsent", "what rank 0 has made cannot be sent .*: return arrays", "what rank 0 has made"),
        ("raises", "rank 1 has failed: KeyError: 'in the loop'", "KeyError: 'in the loop'"),
        ("killed", "rank 1 has ended, with replica 1|worker 1 is lost: its connection", None),
    ],
)
def test_what_one_rank_does_wrong_all_are_told(
    tmp_path: pathlib.Path, what: str, of_first: str, of_second: str | None
) -> None:
    """By the ranks' names, and what each can do about it."""
    first, second = ended(
        [start(tmp_path, WRONG, (what,), by_hand(rank, 2, tmp_path)) for rank in range(2)]
    )
    assert re.search(of_first, first[1]), (first, second)
    if of_second is not None:
        assert re.search(of_second, second[1]) and second[1] != "nothing\n", (first, second)
    assert not list(tmp_path.glob("baechi-stale*"))


def test_nothing_wrong_is_told_of_what_is_right(tmp_path: pathlib.Path) -> None:
    made = ended(
        [start(tmp_path, WRONG, ("right",), by_hand(rank, 2, tmp_path)) for rank in range(2)]
    )
    assert [said for _, said, _ in made] == ["nothing\n"] * 2, made


def test_what_ranks_cannot_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def step(state: Any, x: Any) -> Any:
        return state + x.mean(), x

    for name in (*tools.OF_LAUNCHERS, "RANK"):
        monkeypatch.delenv(name, raising=False)
    given: dict[str, Any] = {"replicas": 2, "staleness": 1, "compiled": False}
    zeros = np.zeros(2, np.float32)
    with pytest.raises(TypeError, match="ranks is 2: give 'launcher' for the processes"):
        baechi.stale_step(step, zeros, ranks=2, **given)
    # Where nothing has started several, it is one process.
    with baechi.stale_step(step, zeros, ranks="launcher", **given) as trained:
        trained(np.float32([1, 3]))
        assert trained.state().tolist() == [2, 2]
    for name, value in by_hand(0, 3, pathlib.Path("job")).items():
        monkeypatch.setenv(name, str(value))
    with pytest.raises(StoreError, match="3 ranks for 2 replicas: give each one at least a rep"):
        baechi.stale_step(step, zeros, ranks="launcher", **given)
    monkeypatch.setenv("BAECHI_RANKS", "2")
    with pytest.raises(StoreError, match="rank 1 of 2 has not come after 0.2 s: all ranks make"):
        baechi.stale_step(step, zeros, ranks="launcher", patience=0.2, **given)
    monkeypatch.setenv("BAECHI_RANK", "1")
    with pytest.raises(StoreError, match="rank 0 has not made the step after 0.2 s: all ranks"):
        baechi.stale_step(step, zeros, ranks="launcher", patience=0.2, **given)
    for name in tools.OF_LAUNCHERS:
        monkeypatch.delenv(name, raising=False)
    of_srun = {"JOB_ID": 7, "STEP_ID": 0, "STEP_NODELIST": "a,b", "STEP_NUM_NODES": 2, "NTASKS": 2}
    for name, value in (of_srun | {"PROCID": 1, "LOCALID": 0}).items():
        monkeypatch.setenv(f"SLURM_{name}", str(value))
    with pytest.raises(StoreError, match="srun has started 2 ranks on several machines, and does"):
        baechi.stale_step(step, zeros, ranks="launcher", **given)


STOPPED = """
import os, sys
import numpy as np
import baechi

def train(state, x):
    return state + x.mean(), x

try:
    with baechi.stale_step(
        train, np.zeros(3, np.float32), replicas=2, staleness=1, compiled=False, ranks="launcher",
        patience=float(sys.argv[2]),
    ) as step:
        for n in range(10**6):
            step(np.ones(2, np.float32)).result()
            if n == 5:
                print("goes on", flush=True)
except Exception as error:
    print(f"{type(error).__name__}: {error}")
"""


@pytest.mark.parametrize("stopped", [0, 1])
def test_a_rank_that_is_stopped_is_told(tmp_path: pathlib.Path, stopped: int) -> None:
    """Within the ranks' patience, wherever the other one waits for it."""
    ranks = [start(tmp_path, STOPPED, (20,), by_hand(rank, 2, tmp_path)) for rank in range(2)]
    other = ranks[1 - stopped]
    assert other.stdout is not None
    try:
        assert other.stdout.readline() == "goes on\n"
        ranks[stopped].send_signal(signal.SIGSTOP)
        said, errors = other.communicate(timeout=300)
    finally:
        for rank in ranks:
            rank.kill()
            rank.communicate()
    assert re.search(f"StoreError: .*(rank {stopped}|the store|replica {stopped})", said), (
        said,
        errors,
    )
