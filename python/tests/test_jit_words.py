# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What `baechi.jit` says of options, arguments and results that it cannot take."""

import re

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import baechi  # noqa: E402
import needs  # noqa: E402
from jax_support import jit  # noqa: E402

pytestmark = needs.tool("baechi-run")
X = jax.numpy.ones(3)


def step(p, x):
    return {"y": p["w"] @ x, "n": x.sum()}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"costs": "mesured"}, "costs is 'mesured': did you mean 'measured'?"),
        ({"measure": "some"}, "measure is 'some': give 'auto'"),
        ({"cuda_math": "fp64"}, "known: fp32, tf32, bf16, fp16"),
        ({"cuda_convolutions": "cudn"}, "cuda_convolutions is 'cudn': did you mean 'cudnn'?"),
        ({"budget": "fast"}, "budget is 'fast': give 'auto', '0'"),
        ({"pin": ["a"]}, "pin is a list: give a dictionary of patterns to devices"),
        ({"placer": "expert"}, "placer is 'expert', which follows rules: give expert={"),
        ({"pin": {"a": 1}}, "pin has 'a': 1: give a dictionary"),
    ],
)
def test_options_are_refused_where_they_are_given(options, message):
    with pytest.raises((TypeError, ValueError), match=re.escape(message)):
        baechi.jit(step, **options)


def test_a_placer_that_does_not_exist_is_refused_at_once():
    pytest.importorskip("baechi._placement")
    with pytest.raises(ValueError, match="placer is 'mstc': did you mean 'msct'[?] known: "):
        baechi.jit(step, placer="mstc")


@pytest.mark.parametrize(
    ("machine", "message"),
    [
        ("host2", "did you mean 'host:2'?"),
        ("gpu:2", "did you mean 'cuda:2'?"),
        ("host:2@1gb", "'1gb' is not a size (such as 512MiB, 1.5GiB, 2GB)"),
    ],
)
def test_machines_are_guessed(machine, message):
    with pytest.raises(baechi.compiling.tools.CompileError, match=re.escape(message)):
        jit(step, machine=machine)({"w": np.ones((2, 3))}, X)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (({"w": "wide"}, X), "argument p['w'] is no array but 'wide' of type 'str': give an array"),
        (({"w": X}, object()), "argument x is no array but <object"),
        (({"w": X}, np.sin), "give an array or a number, or name the argument in static_argnames"),
        (({"w": X, "f": np.sin}, X), "a number, or let the step have it from around it"),
        (
            ({"w": np.ma.masked_array(X, X > 0)}, X),
            "argument p['w'] is a masked array: give p['w'].filled(number)",
        ),
        (({"w": X}, X, X), "takes 2 positional arguments but 3 were given"),
    ],
)
def test_arguments_that_are_no_arrays_are_named(arguments, message):
    with pytest.raises(TypeError, match=re.escape(message)):
        jit(step)(*arguments)


def test_masked_arrays_are_refused_by_later_calls():
    doubled = jit(lambda x: 2 * x)
    doubled(X)
    with pytest.raises(TypeError, match="argument x is a masked array"):
        doubled(np.ma.masked_array(X, X > 0))
    with pytest.raises(TypeError, match="argument 'x' of .* is no array"):
        doubled.lower(X).compile()(np.ma.masked_array(X, X > 0))


def test_arrays_of_an_unknown_library_are_named():
    class Tensor:
        shape, dtype = X.shape, "quarter precision"

    with pytest.raises(TypeError, match="argument x is no array but .* of type 'Tensor'"):
        jit(lambda x: 2 * x)(Tensor())


def test_a_text_in_a_list_is_named():
    with pytest.raises(TypeError, match=re.escape("argument p['w'][1] is no array but 'q'")):
        jit(lambda p: p["w"][0])({"w": [X, "q"]})


def test_errors_of_tracing_tell_the_arguments():
    with pytest.raises(TypeError, match="contracting dimensions") as raised:
        jit(step)({"w": np.ones((2, 3))}, np.ones(4, np.float32))
    assert "called as step(p['w']: float64[2,3], x: float32[4])" in raised.value.__notes__
    with pytest.raises(Exception) as raised:  # swapped
        jit(step)(X, {"w": np.ones((2, 3))})
    assert "called as step(p: float32[3], x['w']: float64[2,3])" in raised.value.__notes__


def test_results_that_are_no_arrays_are_named():
    with pytest.raises(TypeError, match=re.escape("result['a'][1] is no array but 'b' of type")):
        jit(lambda x: {"a": [x, "b"]})(X)


def test_a_step_says_what_it_is():
    compiled = jit(step, machine="host:1")
    assert repr(compiled) == "<baechi.jit of step on host:1: not compiled yet>"
    compiled({"w": np.ones((2, 3))}, X)
    assert repr(compiled) == "<baechi.jit of step on host:1: 1 program compiled>"
