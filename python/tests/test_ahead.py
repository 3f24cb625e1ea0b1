# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Steps that are compiled before they are called, saved and loaded, as jax.jit's have them."""

import dataclasses
import hashlib
import json
import os
import platform
import random
import subprocess
import sys
import typing

import numpy as np
import pytest

import needs

jax = pytest.importorskip("jax")
import baechi  # noqa: E402
from baechi.jax import trees  # noqa: E402
from baechi.steps.library_file import StepError  # noqa: E402
from jax_support import assert_close, jit  # noqa: E402

pytestmark = needs.tool("baechi-run")


class Moments(typing.NamedTuple):
    mean: typing.Any
    count: typing.Any


@dataclasses.dataclass
class State:
    weights: typing.Any
    depth: int


jax.tree_util.register_dataclass(State, ["weights"], ["depth"])


def train(state, batch, scale, *, rate=0.1):
    params, moments = state

    def loss(params):
        hidden = jax.numpy.tanh(batch["x"] @ params.weights["in"])
        return scale * ((hidden @ params.weights["out"] - batch["y"]) ** 2).mean()

    value, gradients = jax.value_and_grad(loss)(params)
    after = jax.tree.map(lambda p, g: p - rate * g, params, gradients)
    mean = 0.9 * moments.mean + 0.1 * batch["x"].mean(0)
    half = batch["x"].astype("bfloat16")
    told = {"loss": value, "half": half, "big": value > 1}
    return (after, Moments(mean, moments.count + 1)), told


def arguments():
    draw = np.random.default_rng(0).standard_normal
    weights = {"in": draw((8, 16)), "out": draw((16, 4))}
    weights = {name: jax.numpy.asarray(value, "float32") for name, value in weights.items()}
    batch = {"x": draw((32, 8)), "y": draw((32, 4))}
    batch = {name: jax.numpy.asarray(value, "float32") for name, value in batch.items()}
    moments = Moments(jax.numpy.zeros(8), jax.numpy.uint32(0))
    return (State(weights, 2), moments), batch


def step():
    return jit(train, donate_argnums=0, static_argnames="scale")


@pytest.fixture(scope="module")
def compiled():
    return step().lower(*arguments(), 2.0).compile()


@pytest.fixture(scope="module")
def saved(compiled, tmp_path_factory):
    return compiled.save(tmp_path_factory.mktemp("saved") / "train.step")


def three_steps(step, *static):
    state, batch = arguments()
    told = []
    for _ in range(3):
        state, out = step(state, batch, *static)
        told.append(jax.tree.map(np.asarray, out))
    return jax.tree.map(np.asarray, (state, told))


def assert_equal(actual, expected):
    assert jax.tree.structure(actual) == jax.tree.structure(expected)
    for a, e in zip(jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True):
        assert a.dtype == e.dtype and a.tobytes() == e.tobytes()


def test_a_compiled_step_computes_what_jax_s_does(compiled):
    theirs = jax.jit(train, static_argnames="scale").lower(*arguments(), 2.0).compile()
    assert_close(three_steps(compiled), three_steps(theirs))


def test_it_is_lowered_by_shapes_alone(compiled):
    shapes = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), arguments())
    lowered = step().lower(*shapes, 2.0)
    assert "not compiled" in repr(lowered) and "func.func @step" in lowered.as_text()
    theirs = jax.jit(train, static_argnames="scale").lower(*shapes, 2.0)
    assert lowered.out_tree == theirs.out_tree == lowered.compile().out_tree
    assert jax.tree.map(lambda x: (x.shape, x.dtype), lowered.out_info) == jax.tree.map(
        lambda x: (x.shape, x.dtype), theirs.out_info
    )
    assert lowered.donate_argnums == (0,)
    assert_equal(three_steps(lowered.compile()), three_steps(compiled))
    with pytest.raises(baechi.importer.common.errors.ImportFailure, match="shape but no value"):
        step()(*shapes, 2.0)


def test_names_are_known_before_anything_is_compiled():
    names = step().lower(*arguments(), 2.0).names()
    assert {"state/0/weights/in", "batch/x"} <= set(names)
    assert any(name.startswith("backward/") for name in names) or "transpose" in " ".join(names)
    pinned = jit(train, static_argnames="scale", pin={names[-1]: "host1", "batch/*": "host0"})
    placement = pinned.lower(*arguments(), 2.0).compile().placement
    assert placement[names[-1]] == "host1" and placement["batch/x"] == "host0"
    assert set(placement) == set(names)


def test_what_it_was_not_compiled_for_is_refused_by_name(compiled):
    state, batch = arguments()
    for call, words in (
        (lambda: compiled(state), "'batch' is missing"),
        (lambda: compiled(state, batch, 2.0), "'scale' is static, always 2.0"),
        (lambda: compiled(state, batch, scale=3.0), "'scale' is static, always 2.0"),
        (lambda: compiled(state, batch, batch=batch), "'batch' of 'train' is given twice"),
        (lambda: compiled(state, batch, more=1), "not for 'more'"),
        (lambda: compiled(state, {"x": batch["x"]}), r"'batch' .* compiled as \{'x': \*, 'y'"),
        (lambda: compiled(state, {**batch, "y": 1.0}), r"'batch/y' .* float32\[32,4\], not for"),
        (lambda: compiled(state, {**batch, "y": "no"}), "'batch/y' of 'train' is no array"),
        (lambda: jax.jit(compiled)(state, batch), "not within jax.jit"),
    ):
        with pytest.raises(TypeError, match=words):
            call()


def test_random_keys_go_in_and_out(tmp_path):
    def draw(key, shape):
        key, used = jax.random.split(key)
        return key, jax.random.normal(used, shape.shape)

    key = jax.random.key(3)
    shape = jax.ShapeDtypeStruct(key.shape, key.dtype)
    ours = jit(draw).lower(shape, jax.numpy.zeros(5)).compile()
    loaded = baechi.load_step(ours.save(tmp_path / "draw.step"))
    for compiled in (ours, loaded):
        next_key, numbers = compiled(key, jax.numpy.zeros(5))
        theirs, expected = jax.jit(draw)(key, jax.numpy.zeros(5))
        assert (jax.random.key_data(next_key) == jax.random.key_data(theirs)).all()
        assert_close(numbers, expected)
        with pytest.raises(TypeError, match="key of 'threefry2x32', not for plain numbers"):
            compiled(jax.random.key_data(key), jax.numpy.zeros(5))


def test_checked_calls_are_checked_when_compiled_ahead(monkeypatch):
    compiled = jit(lambda x: x * 2, check="first").lower(jax.numpy.ones(3)).compile()
    monkeypatch.setattr(compiled._program.library, "result", lambda i: np.zeros(3, np.float32))
    with pytest.raises(baechi.CheckError):
        compiled(jax.numpy.ones(3))


@pytest.mark.parametrize("is_quick", [False, True])
def test_results_are_in_their_own_memory_without_a_copy(is_quick, monkeypatch):
    from baechi.jax import quick
    from baechi.steps import library

    places = []

    def own_memory(shape, kind, make=library.own_memory):
        value = make(shape, kind)
        places.append(value.ctypes.data)
        return value

    for module in (quick, library):
        monkeypatch.setattr(module, "own_memory", own_memory)
    double = jit(lambda x: (x * 2, x.astype("bfloat16"))).lower(jax.numpy.ones(10000)).compile()
    if not is_quick:
        double._quick = None
    first = double(jax.numpy.full(10000, 3.0))
    assert [array.unsafe_buffer_pointer() for array in first] == places
    assert np.from_dlpack(first[0]).ctypes.data == places[0]
    second = double(jax.numpy.full(10000, 4.0))
    assert (first[0] == 6).all() and (second[0] == 8).all() and (first[1] == 3).all()


LOAD = """
import sys, jax, numpy as np
import baechi, test_ahead
loaded = baechi.load_step(sys.argv[1])
leaves = jax.tree.leaves(test_ahead.three_steps(loaded))
np.savez(sys.argv[2], *(np.frombuffer(leaf.tobytes(), np.uint8) for leaf in leaves))
"""


def test_another_process_loads_it_and_traces_nothing(compiled, saved, tmp_path):
    found = tmp_path / "found.npz"
    path = os.pathsep.join(sys.path)
    subprocess.run(
        [sys.executable, "-c", LOAD, saved, found],
        check=True,
        env=os.environ | {"PYTHONPATH": path, "BAECHI_TOOLS": str(tmp_path)},
    )
    theirs = list(np.load(found).values())
    for mine, other in zip(jax.tree.leaves(three_steps(compiled)), theirs, strict=True):
        assert mine.tobytes() == other.tobytes()


def test_a_loaded_step_tells_of_itself(compiled, saved):
    loaded = baechi.load_step(saved)
    assert loaded.placement == compiled.placement and "host1" in loaded.report()
    assert repr(loaded) == repr(compiled) == "<'train' compiled for host0, host1>"
    again = baechi.load_step(loaded.save(saved.with_name("again.step")))
    assert_equal(three_steps(again), three_steps(compiled))
    assert saved.read_bytes() == saved.with_name("again.step").read_bytes()
    for ask in (loaded.as_text, loaded.explain):
        with pytest.raises(RuntimeError, match="loaded from a file"):
            ask()


def edited(saved, change):
    """The file with a changed description, and the hash of it."""
    first, rest = saved.read_bytes().split(b"\n", 1)
    words = first.split()
    description = json.loads(rest[: int(words[2])])
    code = rest[int(words[2]) :]
    described = json.dumps(change(description) or description).encode()
    digest = hashlib.sha256(described + code).hexdigest()
    first = f"baechi-step {words[1].decode()} {len(described)} {len(code)} {digest}\n".encode()
    return first + described + code


def change(**fields):
    return lambda description: description.update(fields)


def change_row(rows, index, **fields):
    return lambda description: description[rows][index].update(fields)


@pytest.mark.parametrize(
    "made, words",
    [
        (change(architecture="aarch64"), f"on aarch64, and this is .*{platform.machine()}"),
        (change(system="Plan9"), "compiled for Plan9"),
        (change(x64=True), "x64 mode"),
        (change(tree=["test_ahead:Missing", None, []]), "import the module that defines it"),
        (change(tree=["os:system", None, ["*"]]), "does not have"),
        (change(tree=["tuple", None, ["*"]]), "other numbers of arrays"),
        (change(values=["a"]), "another number of arguments"),
        (change(arguments=[]), "no description of a step"),
        (change(static=3), "no description of a step"),
        (change_row("arguments", 0, shape=[1, 2]), "no description|another step"),
        (change_row("arguments", 3, shape=[9]), "no description|another step"),
        (change_row("arguments", 0, shape=[-1]), "is no shape"),
        (change_row("arguments", 0, type="complex64"), "unknown type 'complex64'"),
        (change_row("arguments", 0, updated_by=99), "no description"),
        (change_row("results", 0, generator="dice"), "no description"),
        (change_row("results", -1, shape=[5]), "of another step than its code"),
        (lambda description: [description], "no description"),
    ],
)
def test_files_that_do_not_fit_are_refused(saved, tmp_path, made, words):
    file = tmp_path / "other.step"
    file.write_bytes(edited(saved, made))
    with pytest.raises(StepError, match=words) as refused:
        baechi.load_step(file)
    assert str(refused.value).startswith(f"{file}: ")


def test_damaged_and_strange_files_are_refused(saved, tmp_path):
    file = tmp_path / "damaged.step"
    content = saved.read_bytes()
    draw = random.Random(0)
    for _ in range(60):
        damaged = bytearray(content)
        damaged[draw.randrange(len(damaged))] ^= 1 << draw.randrange(8)
        cut = content[: draw.randrange(len(content))]
        for bad in (bytes(damaged), cut):
            file.write_bytes(bad)
            with pytest.raises(StepError):
                baechi.load_step(file)
    for bad, words in (
        (b"", "no saved step"),
        (b"\x80\x04" + content, "no saved step"),
        (content.replace(b"baechi-step 2", b"baechi-step 1", 1), "of version 1, and this"),
        (content + b"more", "cut short or damaged"),
    ):
        file.write_bytes(bad)
        with pytest.raises(StepError, match=words):
            baechi.load_step(file)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    missing = tmp_path / "missing"
    for strange, words in ((pipe, "regular"), (tmp_path, "regular|direct"), (missing, "No such")):
        with pytest.raises(StepError, match=words):
            baechi.load_step(strange)


def test_files_that_others_may_change_are_refused(saved, tmp_path):
    file = tmp_path / "open.step"
    file.write_bytes(saved.read_bytes())
    for mode in (0o666, 0o664):
        file.chmod(mode)
        with pytest.raises(StepError, match="others may write it .* chmod go-w"):
            baechi.load_step(file)
    file.chmod(0o600)
    baechi.load_step(file)
    if os.geteuid() == 0:
        os.chown(file, 12345, 12345)
        with pytest.raises(StepError, match="belongs to another user"):
            baechi.load_step(file)


def test_structures_that_no_file_holds_are_refused_when_saved(tmp_path):
    twice = jax.tree_util.Partial(np.multiply, 2.0)
    file = tmp_path / "call.step"
    compiled = jit(lambda p, x: p.args[0] * x).lower(twice, jax.numpy.ones(2)).compile()
    with pytest.raises(ValueError, match="the arguments have a Partial"):
        compiled.save(file)
    assert os.listdir(tmp_path) == []
    with pytest.raises(OSError):
        jit(lambda x: x + 1).lower(1.0).compile().save(tmp_path / "no" / "folder.step")


def test_structures_are_the_same_as_data():
    for example in (
        (),
        {"b": [1, None], "a": {}},
        {3: 1, 1: (2,)},
        Moments(1, {"x": State([1, 2], 5)}),
        {(1, "a"): 2},
    ):
        tree = jax.tree.structure(example)
        assert trees.from_data(json.loads(json.dumps(trees.to_data(tree, "it")))) == tree
    for hostile in (
        ["test_ahead:State", ["tuple", [2]], []],
        ["test_ahead:State", ["tuple", []], ["*"]],
        ["test_ahead:Moments", ["fields", ["mean"]], ["*"]],
        ["dict", ["list", ["a", "a"]], ["*", "*"]],
        ["dict", ["list", ["a"]], []],
        ["*"],
        {},
        ["builtins:int", None, []],
    ):
        with pytest.raises((ValueError, TypeError)):
            trees.from_data(hostile)
