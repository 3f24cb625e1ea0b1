# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops of programs that mpirun, torchrun or srun has started in several processes."""

import hashlib
import itertools
import os
import pathlib
import shutil
import subprocess
import sys
import threading

import numpy as np
import pytest

import baechi
from baechi.common.launch import Launch, find_launch
from baechi.compiling import tools
from baechi.loops import applications, data
from baechi.steps import launched

PROGRAM = """
import hashlib, os, sys
import numpy as np
import baechi
from baechi.loops import applications, data

ratings = data.ratings(2_000, 300, 100)
loop = baechi.foreach(applications.factorise, machine="host:2", workers=3, ranks="launcher")
factors = applications.factors(ratings, 8)
if "differ" in sys.argv:
    factors = [factor + int(os.environ["BAECHI_RANK"]) for factor in factors]
first = loop(ratings, *factors, passes=2)
again = loop(ratings, *first)
made = hashlib.sha256(b"".join(factor.tobytes() for factor in (*first, *again)))
assert "host1" in loop.report()
if "outside" in sys.argv:
    def count(i, value, counts):
        counts[value] += 1
    values = np.array([0, 1, 99, 2], np.int32)
    entries = baechi.Entries((np.arange(4),), values)
    baechi.foreach(count, machine="host:2", ranks="launcher")(entries, np.zeros(5, np.int32))
sys.stdout.write(f"made {made.hexdigest()}\\n")
"""

DIFFERS = """
import os
import numpy as np
import baechi
from baechi.compiling.tools import CompileError

def double(i, value, x, y):
    y[i] = 2 * x[i]

loop = baechi.foreach(double, machine="host:2", workers=2, ranks="launcher")
entries = baechi.Entries((np.arange(8),), np.zeros(8, np.float32))
x, y = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
try:
    loop(entries, x + int(os.environ["BAECHI_RANK"]), y)
except CompileError as error:
    print(str(error).splitlines()[0])
print(loop(entries, x, y).tolist())
"""

FAILS = """
import os, pathlib, sys, time
import numpy as np
import baechi
from baechi.compiling.tools import CompileError
from baechi.steps import launched, ranks

def full(*given):
    raise OSError(28, "No space left on device")

def double(i, value, x, y):
    y[i] = 2 * x[i]

loop = baechi.foreach(double, machine="host:2", workers=2, ranks="launcher")
entries = baechi.Entries((np.arange(8),), np.zeros(8, np.float32))
given = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
first = loop(entries, *given)
rank, told = os.environ["BAECHI_RANK"], pathlib.Path(os.environ["TMPDIR"]) / "told"
write_inputs, write = ranks.write_inputs, launched._write
if rank == "0":
    ranks.write_inputs = full
    if "unsaid" in sys.argv:
        launched._write = full
try:
    loop(entries, *given)
except (CompileError, OSError) as error:
    print(str(error).splitlines()[0])
ranks.write_inputs, launched._write = write_inputs, write
if rank == "1":
    told.touch()
for _ in range(300):  # rank 0 lives until rank 1 knows
    if not told.exists():
        time.sleep(0.1)
again = loop(entries, *given)
print(np.array_equal(first, again) and again.tolist())
"""


def expected():
    ratings = data.ratings(2_000, 300, 100)
    loop = baechi.foreach(applications.factorise, machine="host:1", workers=3)
    first = loop(ratings, *applications.factors(ratings, 8), passes=2)
    again = loop(ratings, *first)
    made = hashlib.sha256(b"".join(factor.tobytes() for factor in (*first, *again)))
    return f"made {made.hexdigest()}\n"


def environment(tmp_path: pathlib.Path, **more: object) -> dict[str, str]:
    others = {k: v for k, v in os.environ.items() if k not in tools.OF_LAUNCHERS}
    return others | {"TMPDIR": str(tmp_path)} | {k: str(v) for k, v in more.items()}


def run_two(tmp_path, *words, text=PROGRAM):
    """What two ranks say, and how they end."""
    program = tmp_path / "program.py"
    program.write_text(text)
    ranks = [
        subprocess.Popen(
            [sys.executable, str(program), *words],
            env=environment(
                tmp_path,
                BAECHI_RANKS=2,
                BAECHI_RANK=rank,
                BAECHI_COORDINATOR="localhost:7777",
                BAECHI_JOB=tmp_path.name,
            ),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    said = [rank.communicate(timeout=300) for rank in ranks]
    return [(rank.returncode, *each) for rank, each in zip(ranks, said, strict=True)]


def left_in(folder: pathlib.Path) -> list[str]:
    return sorted(each.name for each in folder.glob("baechi-laun*"))


def test_all_ranks_get_the_result(tmp_path):
    """That of one process, bit for bit, in calls that follow each other."""
    want = expected()
    for code, said, error in run_two(tmp_path):
        assert code == 0, error
        assert said == want
    assert left_in(tmp_path) == []


def test_ranks_that_give_others_arrays_are_told(tmp_path):
    """All ranks, before anything runs."""
    for code, said, error in run_two(tmp_path, "differ"):
        assert code != 0 and said == ""
        assert "rank 1 calls the loop with another body, other entries, arrays or passes" in error
    assert left_in(tmp_path) == []


def test_ranks_go_on_after_one_gave_others_arrays(tmp_path):
    for code, lines, error in run_two(tmp_path, text=DIFFERS):
        assert code == 0, error
        refused, again = lines.splitlines()
        assert "rank 1 calls the loop with another body" in refused
        assert again == "[0.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 14.0]"
    assert left_in(tmp_path) == []


def test_errors_are_all_ranks(tmp_path):
    """A position that the array does not have."""
    for code, _, error in run_two(tmp_path, "outside"):
        assert code != 0
        assert "dimension 0 of 'counts' is read at 99 by entry 2" in error


@pytest.mark.parametrize(
    "words, told",
    [
        ([], "No space left on device"),
        (["unsaid"], "rank 1: rank 0 has given the loop up, for the error that it says"),
    ],
)
def test_a_call_that_rank_0_cannot_make_is_told(tmp_path, words, told):
    """At once, also where it cannot say why. The next call starts others."""
    said = run_two(tmp_path, *words, text=FAILS)
    for (code, lines, error), expected in zip(said, ("No space left", told), strict=True):
        assert code == 0, error
        failed, again = lines.splitlines()
        assert expected in failed
        assert again == "[0.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 14.0]"
    assert left_in(tmp_path) == []


def test_a_folder_goes_while_another_rank_writes_into_it(tmp_path):
    """Else that rank would wait there for an answer, and rank 0 for it."""

    def write(folder):
        for number in itertools.count():
            try:
                launched._write(folder / f"asked-{number}.json", {})
            except FileNotFoundError:
                return

    for number in range(40):
        folder = tmp_path / f"launched-{number}"
        folder.mkdir()
        for name in range(20):
            (folder / f"in-{name}").touch()
        rank = threading.Thread(target=write, args=(folder,), daemon=True)
        rank.start()
        launched._remove(tmp_path / "board", folder)
        rank.join(30)
        assert not rank.is_alive()
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(shutil.which("mpirun") is None, reason="there is no mpirun")
def test_mpirun(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    words = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2"]
    done = subprocess.run(
        [*words, sys.executable, str(program)],
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    # Their words may be mixed.
    assert done.stdout.count(expected().split()[1]) == 2


OPEN_MPI = {
    "OMPI_COMM_WORLD_SIZE": "3",
    "OMPI_COMM_WORLD_RANK": "1",
    "OMPI_COMM_WORLD_LOCAL_SIZE": "3",
    "PMIX_NAMESPACE": "12",
}
TORCHRUN = {
    "RANK": "0",
    "WORLD_SIZE": "2",
    "LOCAL_WORLD_SIZE": "1",
    "MASTER_ADDR": "node1",
    "MASTER_PORT": "29500",
}
SRUN = {
    "SLURM_JOB_ID": "7",
    "SLURM_STEP_ID": "0",
    "SLURM_STEP_NODELIST": "node1",
    "SLURM_STEP_NUM_NODES": "1",
    "SLURM_NTASKS": "2",
    "SLURM_PROCID": "1",
    "SLURM_LOCALID": "1",
}
MPICH = {"PMI_SIZE": "2", "PMI_RANK": "1", "MPI_LOCALNRANKS": "2"}


def test_launchers_are_known():
    assert find_launch({}) is None
    assert find_launch(OPEN_MPI) == Launch("mpirun", 1, 3, 3, "12")
    assert find_launch(TORCHRUN) == Launch("torchrun", 0, 2, 1, "node1.29500..", ("node1", 29501))
    assert find_launch(SRUN) == Launch("srun", 1, 2, 2, "7.0")
    assert find_launch(SRUN | {"SLURM_STEP_NUM_NODES": "2"}).here == 1
    assert find_launch(MPICH) == Launch("mpirun", 1, 2, 2, str(os.getppid()))
    # A batch script runs once.
    assert find_launch({k: v for k, v in SRUN.items() if k != "SLURM_LOCALID"}) is None
    assert find_launch(TORCHRUN | {"WORLD_SIZE": "1"}) is None
    with pytest.raises(ValueError, match="OMPI_COMM_WORLD_SIZE is 'many', not a number"):
        find_launch(OPEN_MPI | {"OMPI_COMM_WORLD_SIZE": "many"})
    with pytest.raises(ValueError, match="mpirun says that this is rank 3 of 3"):
        find_launch(OPEN_MPI | {"OMPI_COMM_WORLD_RANK": "3"})


OWN = {"BAECHI_RANKS": "2", "BAECHI_RANK": "1", "BAECHI_COORDINATOR": "localhost:7000"}


def test_variables_that_are_set_by_hand():
    assert find_launch(OWN) == Launch(
        "BAECHI_RANKS", 1, 2, 2, "localhost:7000.", ("localhost", 7000)
    )
    for missing in OWN:
        rest = {name: value for name, value in OWN.items() if name != missing}
        with pytest.raises(ValueError, match=f"^{missing} is not set: .* go together"):
            find_launch(rest | ({"BAECHI_RANKS": ""} if missing == "BAECHI_RANKS" else {}))
    # The place of rank 0 alone is for ranks that a launcher has started.
    place = {"BAECHI_COORDINATOR": "[fe80::1]:7000"}
    assert find_launch(place) is None
    assert find_launch(OPEN_MPI | place).place == ("fe80::1", 7000)
    for wrong in ("fe80::1:7000", ":7000", "[]:7000", "a b:7000", "node1", "node1:0"):
        with pytest.raises(ValueError, match="not host:port"):
            find_launch(OWN | {"BAECHI_COORDINATOR": wrong})
    by_hand = {name: value for name, value in TORCHRUN.items() if name != "LOCAL_WORLD_SIZE"}
    with pytest.raises(ValueError, match="LOCAL_WORLD_SIZE is not set"):
        find_launch(by_hand)
    assert find_launch(by_hand | {"WORLD_SIZE": "1"}) is None
    with pytest.raises(ValueError, match="MASTER_PORT is '70000', not a port"):
        find_launch(TORCHRUN | {"MASTER_PORT": "70000"})
    with pytest.raises(ValueError, match="RANK is '1_0', not a number"):
        find_launch(TORCHRUN | {"RANK": "1_0"})


@pytest.mark.parametrize(
    "variables, options, words",
    [
        (OPEN_MPI, {"machine": "host:2"}, "for the 2 devices of 'host:2': give each one at least"),
        (TORCHRUN, {}, "1 of them on this machine: .* start all on one machine"),
        (
            MPICH,
            {"staleness": 1, "buffered": ["weights"]},
            "with a staleness workers share one store; give the number of processes",
        ),
    ],
)
def test_what_ranks_cannot_is_told(monkeypatch, variables, options, words):
    for name in tools.OF_LAUNCHERS:
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ValueError, match=words):
        baechi.foreach(applications.regress, ranks="launcher", **options)


def test_alone_it_is_one_process(monkeypatch):
    for name in (*tools.OF_LAUNCHERS, "RANK"):
        monkeypatch.delenv(name, raising=False)

    def double(i, value, x):
        x[i] = 2 * value

    entries = baechi.Entries((np.arange(5),), np.arange(5, dtype=np.float32))
    made = baechi.foreach(double, ranks="launcher")(entries, np.zeros(5, np.float32))
    assert made.tolist() == [0, 2, 4, 6, 8]
