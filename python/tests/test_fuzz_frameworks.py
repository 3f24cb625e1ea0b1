# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The fuzzer against the frameworks (docs/fuzzing.md): a slice of its programs, and that
it finds what is wrong."""

import collections
import json
import os
import subprocess
import sys

import numpy as np
import pytest

import needs
from frameworks import compare, driver, program
from frameworks.verdict import Verdict

jax = pytest.importorskip("jax")

import baechi  # noqa: E402
from frameworks.of_jax import batch, generate, report, table  # noqa: E402
from frameworks.of_jax import builder as builders  # noqa: E402

needs_tools = needs.tool("baechi-run")


@needs_tools
@pytest.mark.parametrize("first", [16, 64])
def test_jax_programs_are_as_jax_jits(first):
    seeds = range(first, first + 16)
    verdicts = batch.run([generate.generate(seed) for seed in seeds], first // 16)
    found = {s: str(v) for s, v in zip(seeds, verdicts, strict=True) if v.is_finding}
    assert not found
    assert sum(v.kind in ("equal", "rounding") for v in verdicts) > 12


def _wrong_jit(wrong):
    """`baechi.jit` by `jax.jit`, but `wrong` makes the values of the first results' floats."""

    def jit(step, **_):
        def run(*args):
            return jax.tree.map(lambda x: wrong(x) if x.dtype == np.float32 else x, step(*args))

        return jax.jit(run)

    return jit


def test_wrong_results_are_found_and_made_small(monkeypatch):
    monkeypatch.setattr(baechi, "jit", _wrong_jit(lambda x: jax.numpy.where(x == x.max(), -x, x)))
    whole = generate.generate(22)
    (verdict,) = batch.run([whole], 1)
    assert verdict.kind == "wrong" and "elements differ" in verdict.words
    small = report.smallest(whole, verdict, 1, seconds=20)
    assert program.count(small.block) <= 2 < program.count(whole.block)
    script = report.reproduction(small, verdict, 1)
    compile(script, "reproduction", "exec")
    assert small.source in script and "baechi.jit" in script


def test_a_report_is_a_script_that_runs(monkeypatch, capsys):
    """It prints what both give, one after the other."""
    monkeypatch.setattr(baechi, "jit", _wrong_jit(lambda x: x))
    whole = next(p for p in map(generate.generate, range(20)) if p.state)
    exec(report.reproduction(whole, Verdict("wrong", "words"), 0), {})
    lines = capsys.readouterr().out.splitlines()
    assert lines and lines[: len(lines) // 2] == lines[len(lines) // 2 :]


@needs_tools
def test_errors_are_told_by_program(monkeypatch):
    """One program of a batch fails to compile: it is found, and the others run."""
    plain = baechi.jit

    def jit(step, **options):
        def fail_at_42(*args):
            if any("42" in p.block.name for p in held):
                raise RuntimeError("at 42")
            return step(*args)

        return plain(fail_at_42, **options)

    held = []
    steps = batch._step
    monkeypatch.setattr(batch, "_step", lambda ps: held.clear() or held.extend(ps) or steps(ps))
    monkeypatch.setattr(baechi, "jit", jit)
    verdicts = batch.run([generate.generate(seed) for seed in (40, 41, 42, 43)], 0)
    assert [v.kind for v in verdicts[:2] + verdicts[3:]] == ["equal"] * 3
    assert verdicts[2] == Verdict("failed", "RuntimeError: at 42")


def test_the_same_seed_gives_the_same_program():
    code = "from frameworks.of_jax.generate import generate; print(generate(5).source)"
    path = os.pathsep.join(p for p in sys.path if p)
    said = [
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    ]
    assert said[0] == said[1] == generate.generate(5).source + "\n"


def test_every_operation_of_the_table_can_be_made():
    drawn = collections.Counter()
    for operation in table.table():
        for seed in range(40):
            builder = builders.Builder(builders.Root(seed))
            for rank in (1, 2, 2, 3):
                builder.scope.append(builder.argument(builder.shape(rank=rank), "f32"))
            builder.scope.append(builder.argument(builder.shape(rank=2), "i32"))
            builder.scope.append(builder.argument((1, 3), "bool"))
            try:
                operation(builder)
            except builders.NotApplicable:
                continue
            drawn[operation] += 1
            if drawn[operation] == 2:
                break
    assert {op.__name__ for op in table.table() if drawn[op] < 2} == set()


def test_xlas_own_errors_are_told_from_ours(monkeypatch):
    """Where `jax.jit` is wrong, in double precision too, JAX without it gives our result."""
    statement = program.Statement((program.Value("v2", (3,), "f32"),), "{0} * 2", ("a1",))
    block = program.Block(
        "program1", (program.Value("a1", (3,), "f32"),), (statement,), ("v2",), "({0},)"
    )
    whole = generate.Program(1, block, 0)
    right = batch._eager(whole)
    other = [x + 1 for x in right]
    assert batch._verdict(whole, right, right).kind == "equal"
    assert batch._verdict(whole, other, right).kind == "wrong"
    monkeypatch.setattr(batch, "_double", lambda program: (other, [other]))
    found = batch._verdict(whole, right, other)
    assert found.kind == "xla" and not found.is_finding and "without jit" in found.words


def test_what_jax_refuses_is_no_program():
    """It divides by zero where `map` gets what padding made empty."""
    assert generate.generate(2772).block.statements


ONE = np.float32([1.0, 2.0, -100.0])


def test_close_results_are_equal_and_others_are_not():
    near = ONE + np.float32(1e-5)
    assert not compare.differences([ONE], [near], 2.0**-23)
    (found,) = compare.differences([ONE], [ONE + np.float32([0, 1e-3, 0])], 2.0**-23)
    assert "1 of 3 elements differ, at [1]" in str(found)
    assert compare.differences([np.int32([1])], [np.int32([2])], 2.0**-23)
    assert compare.differences([np.float32([1])], [np.int32([1])], 2.0**-23)
    assert compare.differences([np.float32([np.nan])], [np.float32([1])], 2.0**-23)


def test_values_that_cancel_are_not_wrong():
    """A variance of equal elements is the square of a rounding error, and JAX's none."""
    statements = [
        program.Statement((program.Value(name, (3,), "f32"),), text, (source,))
        for name, text, source in (("v2", "{0} * 0.7", "a1"), ("v3", "jnp.var({0})", "v2"))
    ]
    block = program.Block(
        "program1", (program.Value("a1", (3,), "f32"),), tuple(statements), ("v3",), "({0},)"
    )
    whole = generate.Program(1, block, 0, (("a1", "np.ones({count})"),))
    right = [np.float32(0.0)] * batch.CALLS
    assert batch._verdict(whole, [np.float32(1e-16)] * batch.CALLS, right).kind == "unstable"
    assert batch._verdict(whole, [np.float32(1e-12)] * batch.CALLS, right).kind == "wrong"


@pytest.mark.parametrize(
    "mine, exact, near, said",
    [
        (1e-3, 0.0, 0.0, "wrong"),  # the framework is right, and stays so
        (1e-3, 0.0, 5e-3, "rounding"),  # it moves as far by a last digit of its inputs
        (1e-3, 5e-4, 0.0, "rounding"),  # it is as far from the exact result itself
        (1.0, 0.0, 3.0, "unstable"),
        (1.0, 0.0, np.nan, "unstable"),
        (np.nan, 0.0, 0.0, "wrong"),
    ],
)
def test_the_framework_judges_by_its_own_error(mine, exact, near, said):
    ours, theirs = ONE + np.float32([mine, 0, 0]), ONE
    precise = ONE.astype(np.float64) + np.array([exact, 0, 0])
    other = precise + np.array([near, 0, 0])
    assert len(compare.differences([ours], [theirs], 2.0**-23)) == 1
    assert compare.judge(ours, theirs, precise, [other], 2.0**-23) == said


def test_the_journal_goes_on_where_it_ended(tmp_path):
    journal = driver.Journal(tmp_path / "jax.jsonl")
    journal.write(seed=0, programs=16)
    assert journal.began() and journal.next_seed(0) == 0
    entry = {"verdicts": {"equal": 15, "wrong": 1}, "said": [[3, "wrong: "]], "seconds": 30}
    journal.write(seed=0, programs=16, **entry)
    assert not journal.began() and journal.next_seed(0) == 16 and journal.next_seed(100) == 100
    assert "16 programs in 0.5 minutes (32 a minute): 15 equal, 1 wrong" in str(journal.totals())
    assert "1 wrong:  (seeds 3)" in str(journal.totals())


def test_a_crash_is_a_finding_of_its_program(tmp_path, monkeypatch):
    """The worker ends at every batch; its programs are tried one by one, and by `jax.jit`
    alone."""
    journal = driver.Journal(tmp_path / "jax.jsonl")

    def run(command, **_):
        if "--worker" in command:
            journal.write(seed=journal.next_seed(0), programs=2)
            return subprocess.CompletedProcess(command, -11)
        guilty = "--seed=1" in command and "--alone" not in command or "--seed=3" in command
        return subprocess.CompletedProcess(command, -11 if guilty else 0)

    monkeypatch.setattr(subprocess, "run", run)
    totals = driver.supervise("jax", journal, 0, 6, float("inf"))
    assert totals.kinds == {"equal": 3, "crashed": 2, "xla": 1}
    assert totals.seeds["crashed: ends by SIGSEGV"] == [1, 4]
    assert totals.seeds["xla: ends by SIGSEGV"] == [3]
    assert json.loads(journal.file.read_text().splitlines()[-1])["programs"] == 2
