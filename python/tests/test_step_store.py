# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Steps and modules that were compiled before are found again: these, and no others."""

from __future__ import annotations

import dataclasses
import json
import pathlib
import zlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import baechi
import needs
import replan_support as support
from baechi.compiling import compiler
from baechi.compiling.kept import kept_bytes
from baechi.importer.jax import kept
from baechi.importer.jax import step as importing
from baechi.steps.program import CompileOptions, Program

pytestmark = needs.tool("baechi-run")
EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "examples" / "mlp.mlir"
OPTIONS = CompileOptions(machine="host:2@64MiB", budget="0", costs="roofline", verbose=True)


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "baechi"


@pytest.fixture
def compiles(monkeypatch):
    """Whether a program was compiled, not found."""
    phases = []
    monkeypatch.setattr(compiler, "_progressed", lambda what, *_: phases.append(what))

    def compiles(text=None, options=OPTIONS):
        phases.clear()
        program = Program(EXAMPLE.read_text() if text is None else text, options)
        program.step()
        return "forming kernels" in phases

    return compiles


def test_the_same_step_is_found(compiles):
    assert compiles()
    assert not compiles()


@pytest.mark.parametrize(
    "changed",
    [
        {"machine": "host:3@64MiB"},
        {"machine": "host:2@65MiB"},
        {"placer": "round-robin"},
        {"budget": "1e"},
        {"transfers": "copy"},
        {"pin": {"*": "host1"}},
        {"objective": "period"},
    ],
)
def test_other_options_compile_again(compiles, changed):
    assert compiles()
    assert compiles(options=dataclasses.replace(OPTIONS, **changed))
    assert not compiles()


def test_another_program_compiles_again(compiles):
    assert compiles()
    assert compiles(EXAMPLE.read_text().replace("linalg.sub", "linalg.add"))
    assert not compiles()


def test_files_that_options_name_are_part_of_it(compiles, tmp_path):
    expert = tmp_path / "rules.expert"
    expert.write_text(".* = host0\n")
    options = dataclasses.replace(OPTIONS, placer="expert", expert=expert)
    assert compiles(options=options)
    assert not compiles(options=options)
    expert.write_text(".* = host1\n")
    assert compiles(options=options)
    program = Program(EXAMPLE.read_text(), options)
    assert set(program.placement().values()) == {"host1"}


def test_a_damaged_one_compiles_again(compiles, cache):
    assert compiles()
    largest = max((cache / "kernels").glob("llvmcache-*"), key=lambda file: file.stat().st_size)
    content = bytearray(largest.read_bytes())
    content[len(content) // 2] ^= 1
    largest.write_bytes(content)
    assert compiles()
    assert not compiles()


@pytest.fixture
def measured(compiles, tmp_path):
    """Options of costs that are measured, of a machine whose links are known, and what the profile
    has of the example, none of it disturbed."""
    options = support.options(tmp_path) | {"verbose": True, "replan": "never"}
    options = CompileOptions(**options)
    return options, settled(compiles, options)


def settled(compiles, options):
    """What the profile has once a step is found in the store."""
    compiles(options=options)
    written = json.loads(options.profile_file().read_text())
    for row in written["rows"]:  # would be measured again
        row.pop("disturbed", None)
        row.pop("step_disturbed", None)
    options.profile_file().write_text(json.dumps(written))
    compiles(options=options)
    assert not compiles(options=options)
    return written


def test_other_rows_of_its_kernels_compile_again(compiles, measured):
    options, written = measured
    profile = options.profile_file()
    other = dict(written["rows"][0], hash="0" * 32, kernel="of_another_program")
    profile.write_text(json.dumps(written | {"rows": [*written["rows"], other]}))
    assert not compiles(options=options)
    next(row for row in written["rows"] if "step_ns" in row)["step_ns"] += 1000
    profile.write_text(json.dumps(written))
    assert compiles(options=options)
    assert not compiles(options=options)
    assert compiles(options=dataclasses.replace(options, measure="all"))


def test_a_choice_that_is_taken_back_compiles_again(compiles, measured):
    options = dataclasses.replace(measured[0], splits="none")
    written = settled(compiles, options)
    options.profile_file().write_text(json.dumps(written | {"choices": []}))
    assert compiles(options=options)


@pytest.fixture
def imports(monkeypatch):
    """How many modules were made of StableHLO."""
    made, to_linalg = [], importing.to_linalg

    def counted(module):
        made.append(module)
        to_linalg(module)

    monkeypatch.setattr(importing, "to_linalg", counted)
    return made


def jitted(step):
    return baechi.jit(step, machine="host:1@64MiB", budget="0", costs="roofline")


def scaled(factor):
    def step(params, x):
        return {name: p - factor * (x @ p) for name, p in params.items()}

    return step


def test_modules_are_found_and_others_made(imports):
    x = np.arange(16, dtype=np.float32).reshape(4, 4) / 7
    params = {"w": x.T + 1}
    calls = [
        (0.5, params, x, 1),
        (0.5, params, x, 1),
        (0.5, {"w": x + 2}, -x, 1),  # other values
        (0.25, params, x, 2),  # another program
        (0.5, {"v": x.T + 1}, x, 3),  # other names
        (0.5, {"w": x.T[:, :2] + 1}, x, 4),  # other shapes
        (0.5, {"w": jnp.bfloat16(x.T + 1)}, x, 5),  # other types
        (0.25, params, x, 5),
    ]
    for factor, params, x, count in calls:
        found = jitted(scaled(factor))(params, x)
        assert len(imports) == count
        expected = jax.jit(scaled(factor))(params, x)
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5), found, expected)


def test_large_modules_are_kept_unless_they_stay_large(monkeypatch):
    code = b"linalg.generic \xff " * 1_000_000
    assert zlib.decompress(kept._compressed(code)) == code
    monkeypatch.setattr(kept, "_MOST_BYTES", 1 << 10)
    assert kept._compressed(code) is None


def test_what_is_donated_is_part_of_it(imports):
    x = np.ones((4, 4), np.float32)
    for donated, count in [((), 1), ((0,), 2), ((0,), 2)]:
        step = baechi.jit(
            lambda a, b: a + b, machine="host:1", costs="roofline", donate_argnums=donated
        )
        np.testing.assert_array_equal(np.asarray(step(x, x)), 2 * x)
        assert len(imports) == count


def test_kept_modules_begin_with_the_values_of_the_call(imports):
    """Steps are measured with them: a loop of so many turns may be one of a thousand million."""

    def step(count, x):
        return jax.lax.fori_loop(0, count, lambda _, x: jnp.tanh(x), x)

    x = np.ones((4, 4), np.float32)
    for count, made in ((10**9, 1), (3, 0), (4, 0)):
        imports.clear()
        given = importing.import_step(step, (np.int32(count), x), store=kept_bytes())
        assert len(imports) == made
        assert f"value = {np.float32(count):.6e} : f32" in given.text
        assert given.text == importing.import_step(step, (np.int32(count), x)).text


def test_what_arguments_begin_with_is_no_part_of_a_step(compiles):
    text = EXAMPLE.read_text()
    assert "baechi.init = {" in text and compiles()
    assert not compiles(text.replace("seed = 1 ", "seed = 11 "))
    assert compiles(text.replace('baechi.name = "x"', 'baechi.name = "y"'))


def test_lowered_steps_begin_with_their_own_values(imports):
    x = np.ones((4, 4), np.float32)
    for value in (1.0, 2.0):
        lowered = jitted(scaled(0.5)).lower({"w": x * value}, x)
        assert f"value = {value:.6e} : f32" in lowered.as_text()
    assert len(imports) == 2
