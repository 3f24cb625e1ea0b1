# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Steps run wherever the user's home is, and temporary folders go."""

import contextlib
import glob
import os
import pathlib
import signal
import subprocess
import sys
import time
import warnings

import pytest

import baechi.steps.program
import needs
from baechi.compiling import caches, tools
from baechi.compiling.tools import CompileError

pytestmark = needs.tool("baechi-run")
EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "examples" / "mlp.mlir"


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    monkeypatch.setattr(caches, "_given_up", set())


def compiled(**options):
    """The warnings of compiling twice."""
    options = baechi.steps.program.CompileOptions(machine="host:1", budget="0", **options)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for _ in range(2):
            baechi.steps.program.Program(EXAMPLE.read_text(), options).step()
    said = [w for w in said if w.category is caches.CacheWarning]
    assert all(w.filename == __file__ for w in said)  # the user's line, not one of ours
    return [str(w.message) for w in said]


def test_a_usable_folder_is_used_without_a_word(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "new"))
    assert compiled() == []
    assert (tmp_path / "new" / "baechi" / "profile.json").exists()
    assert list((tmp_path / "new" / "baechi" / "kernels").iterdir())


@pytest.mark.parametrize("odd", ["a file", "no folder", "others' code", "damaged profile"])
def test_an_odd_folder_costs_one_warning(monkeypatch, tmp_path, odd):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "cache" / "baechi"
    if odd == "a file":
        (tmp_path / "cache").write_text("")
    elif odd == "no folder":
        monkeypatch.setenv("XDG_CACHE_HOME", "/proc/nowhere")
    else:
        (folder / "kernels").mkdir(parents=True)
    if odd == "others' code":
        (folder / "kernels").chmod(0o777)
    if odd == "damaged profile":
        (folder / "profile.json").write_text("{")
        (folder / "kernels").chmod(0o700)
    [said] = compiled()
    assert "kept for this process only" in said and "set XDG_CACHE_HOME" in said
    assert os.environ["XDG_CACHE_HOME"] in said
    if odd == "damaged profile":
        assert (folder / "profile.json").read_text() == "{"  # it may hold what cost minutes


def test_a_home_that_is_none_costs_one_warning(monkeypatch):
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", "/dev/null")
    [said] = compiled()
    assert "HOME='/dev/null'" in said


def test_relative_cache_folders_are_ignored(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", "here")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert caches.folder() == tmp_path / ".cache" / "baechi"


def test_a_profile_that_was_asked_for_stays_an_error(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "profile.json").write_text("{")
    with pytest.raises(CompileError, match="profile.json: .*delete the file or give another"):
        compiled(profile=tmp_path / "profile.json")


def test_tools_that_are_not_where_they_are_said_to_be(monkeypatch, tmp_path):
    monkeypatch.setenv("BAECHI_TOOLS", str(tmp_path / "none"))
    with pytest.raises(FileNotFoundError, match="BAECHI_TOOLS is .*no such folder"):
        tools.find("baechi-run")
    monkeypatch.setenv("BAECHI_TOOLS", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="there is no baechi-run in it"):
        tools.find("baechi-run")


PROGRAM = """
import pathlib, sys
from baechi.steps.program import CompileOptions, Program
print("begun", flush=True)
while True:
    Program(pathlib.Path(sys.argv[1]).read_text(), CompileOptions(machine="host:1", budget="0"))
"""


def test_a_process_that_is_ended_leaves_nothing_behind(tmp_path):
    (tmp_path / "temporary").mkdir()
    paths = {"TMPDIR": tmp_path / "temporary", "XDG_CACHE_HOME": tmp_path / "cache"}
    paths["PYTHONPATH"] = os.pathsep.join(sys.path)
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, EXAMPLE],
        env=os.environ | {name: str(path) for name, path in paths.items()},
        stdout=subprocess.PIPE,
    )
    process.stdout.readline()
    for _ in range(1000):  # until there is something to leave behind
        if glob.glob(f"{tmp_path}/temporary/*/model.mlir"):
            break
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == -signal.SIGTERM
    process.stdout.close()
    assert list((tmp_path / "temporary").iterdir()) == []


# Tests that run behind a terminal's back were told to ignore some, and so would the tool.
HEEDING = """
import os, signal, sys
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])
"""


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_tool_that_is_ended_leaves_nothing_behind(ending, tmp_path):
    """In the midst of linking, which is when it has a folder."""
    folder, compiler = tmp_path / "temporary", tmp_path / "slow-compiler"
    folder.mkdir()
    compiler.write_text("#!/bin/sh\nexec sleep 4\n")
    compiler.chmod(0o755)
    command = [tools.find("baechi-run"), EXAMPLE, "--machine=host:1", "--costs=roofline"]
    command += ["--budget=0", "--store=", "--emit=so", f"--output={tmp_path / 'step.so'}"]
    environment = os.environ | {"TMPDIR": str(folder), "CC": str(compiler)}
    process = subprocess.Popen(
        [sys.executable, "-c", HEEDING, *command], env=environment, process_group=0
    )
    try:
        while not os.listdir(folder):
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(ending)
        assert process.wait(60) == -ending
        assert os.listdir(folder) == []
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # the compiler, if it is left
