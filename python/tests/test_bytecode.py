# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Modules that go to the compiler as MLIR's bytecode: the programs of their text."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import baechi
import needs
from baechi import init
from baechi.common.bytecode import Bytecode, text_of
from baechi.compiling import compiler
from baechi.compiling.tools import CompileError
from baechi.importer.jax.step import import_step
from baechi.models import configuration
from baechi.steps.program import CompileOptions, Program

pytestmark = needs.tool("baechi-run")
OPTIONS = CompileOptions(machine="host:2@64MiB", budget="0", costs="roofline")


def step(params, key, x):
    noise = jax.random.uniform(jax.random.wrap_key_data(key), x.shape)
    h = jnp.tanh((x + noise) @ params["w"])
    return {"w": params["w"] - 0.1 * x.T @ h}, jnp.sum(jnp.cumsum(h, axis=1))


ARGUMENTS = (
    {"w": init.Draws(seed=1).weight(16, 16)},
    jax.ShapeDtypeStruct((2,), np.uint32),
    np.full((4, 16), 0.5, np.float32),
)


def imported(*, first=ARGUMENTS[0]):
    return import_step(step, (first, *ARGUMENTS[1:]), (0,), by_shape=True)


def test_the_text_has_all_that_goes_beside_the_bytecode():
    text = imported().text
    assert text.count("baechi.init = {") == 3
    assert 'baechi.init = {high = 2.500000e-01 : f32, kind = "uniform"' in text
    assert 'loc("dot_general")' in text
    # First values are no part of the bytecode.
    other = imported(first={"w": init.zeros(16, 16)})
    assert other.module.code == imported().module.code
    assert other.text != text and "value = 0.000000e+00 : f32" in other.text
    assert text_of(text) == text == text_of(imported().module)


@pytest.mark.parametrize("model", ["gnmt", "moe"])
def test_programs_are_those_of_the_text(model):
    made = import_step(*configuration.training_step(model, "tiny"))
    assert made.module.is_plain
    of_code, of_text = (Program(module, OPTIONS) for module in (made.module, made.text))
    assert of_code.library.program == of_text.library.program
    assert of_code.placement() == of_text.placement()


def test_a_step_computes_what_jax_does():
    key, x = np.array([3, 5], np.uint32), np.linspace(-1, 1, 64, dtype=np.float32).reshape(4, 16)
    params = {"w": np.float32(np.cos(np.arange(256)).reshape(16, 16))}
    found = baechi.jit(step, machine="host:2", costs="roofline")(params, key, x)
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6),
        found,
        jax.jit(step)(params, key, x),
    )


def test_what_other_dialects_have_a_part_in_goes_as_text(monkeypatch, tmp_path):
    given = []

    class Compiler:
        def compile(self, model, name, file, options, progress):
            given.append((model, options))
            return True, [], ""

    monkeypatch.setattr(compiler, "extension", Compiler)
    monkeypatch.setattr(compiler, "is_in_process", lambda: True)
    for is_plain in (True, False):
        module = Bytecode(b"code", "[{}]", is_plain, lambda code, first: f"{code!r} {first}")
        compiler.emit(module, tmp_path / "step.so", OPTIONS)
    (code, words), (text, others) = given
    assert code == b"code" and words == ["first-values=[{}]", *others]
    assert text == b"b'code' [{}]"


def test_first_values_of_other_arguments(tmp_path):
    module = dataclasses.replace(imported().module, first_values="[]")
    words = "the number of function arguments, got 0, but expected 3"
    with pytest.raises(CompileError, match=words):
        compiler.emit(module, tmp_path / "step.so", OPTIONS)
