# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the importer makes of steps: names, updates, errors, semantics."""

import re

import numpy as np
import pytest

import fixtures
import native

jax = pytest.importorskip("jax", reason="JAX is not installed; run scripts/python-env")

import jax.numpy as jnp  # noqa: E402
from jax import lax  # noqa: E402

from baechi import init, models  # noqa: E402
from baechi.importer.common.errors import ImportFailure, UnsupportedOperations  # noqa: E402
from baechi.importer.jax import (  # noqa: E402
    reference,  # noqa: E402
    rules,
    versions,
)
from baechi.importer.jax import step as importer  # noqa: E402
from baechi.importer.jax.pooling import max_pool_gradient  # noqa: E402

PADS = ("SAME", "VALID")
OF_FIXTURE = {name: name.split("_") for name in fixtures.TINY}


@pytest.mark.skipif(jax.__version__ != versions.MODULES, reason="another JAX's modules are others")
@pytest.mark.parametrize("name", fixtures.TINY)
def test_import_is_the_committed_module(name):
    model, preset = OF_FIXTURE[name]
    module = models.load(model)
    imported = importer.import_step(*module.training_step(module.PRESETS[preset]), name=model)
    assert imported.text == fixtures.text(name), "run test/fixtures/regenerate.sh"


def sgd(params, x):
    grads = jax.grad(lambda p: jnp.sum((x @ p["w"]) ** 2))(params)
    return jnp.sum(x), jax.tree.map(lambda p, g: p - g, params, grads)


def weights():
    return {"w": init.Draws().weight(4, 3)}


def test_attributes():
    x = np.zeros((2, 4), np.float32)
    text = importer.import_step(sgd, (weights(), x), donate_argnums=(0,)).text
    header = next(line for line in text.splitlines() if "func.func" in line)
    assert "func.func @step(" in header
    assert 'baechi.name = "params/w", baechi.updated_by = 1 : i64' in header
    assert 'kind = "uniform", low = -5.000000e-01 : f32, seed = 1 : i64' in header
    assert 'kind = "constant", value = 0.000000e+00 : f32}, baechi.name = "x"}' in header
    assert 'tensor<f32> {baechi.name = "result0"}' in header
    assert 'tensor<4x3xf32> {baechi.name = "params/w"}' in header
    for foreign in ("tf.", "jax.", "mhlo.", "stablehlo"):
        assert foreign not in text


def test_unused_arguments_stay():
    imported = importer.import_step(lambda a, b: b + 1, (np.float32(1), np.float32(2)))
    assert [argument.name for argument in imported.signature.arguments] == ["a", "b"]
    assert len(re.findall(r"%arg\d+: tensor", imported.text)) == 2


def test_updates_match_names_before_shapes():
    def swapped(a, b):  # JAX's own aliasing would pair a with the new b
        return {"b": b * 2, "a": a + 1}

    like = init.Draws()
    imported = importer.import_step(swapped, (like.weight(3), like.weight(3)), (0, 1))
    assert imported.signature.results == ["a", "b"]
    assert [argument.updated_by for argument in imported.signature.arguments] == [0, 1]


def test_donated_without_next_value_is_told():
    with pytest.warns(UserWarning, match="not updated in place: params: no result"):
        imported = importer.import_step(lambda params: params.sum(), (init.zeros(3),), (0,))
    assert imported.signature.arguments[0].updated_by is None


@pytest.mark.parametrize(
    "step, updates",
    [
        (lambda state: {"w": state["w"] * 2, "n": state["n"] + 1}, [0, 1]),
        (lambda state: (state,), [0, 1]),
        (lambda state: (state["n"] * 2, [state, 3.0]), [1, 2]),
    ],
)
def test_a_donated_tree_is_found_in_results(step, updates):
    state = {"w": init.zeros(3), "n": init.zeros(2, 2)}
    imported = importer.import_step(step, (state,), (0,))
    assert [argument.updated_by for argument in imported.signature.arguments] == updates
    assert [imported.signature.results[k] for k in updates] == ["state/n", "state/w"]


def test_a_leaf_of_another_type_is_not_updated():
    def step(state):
        return {"w": state["w"] * 2, "n": state["n"].sum()}

    state = {"w": init.zeros(3), "n": init.zeros(2, 2)}
    with pytest.warns(UserWarning, match="not updated in place: state/n: no result"):
        imported = importer.import_step(step, (state,), (0,))
    assert [argument.updated_by for argument in imported.signature.arguments] == [None, 1]


def test_donating_an_argument_that_is_not_there_is_an_error():
    with pytest.raises(ImportFailure, match="the step has 1 arguments"):
        importer.import_step(lambda x: x, (init.zeros(3),), (1,))


def test_symbolic_sizes_of_exported_functions_become_known_ones():
    def wave(w, x):
        return jnp.tanh(x @ w).sum(1) * x.shape[0]

    (batch,) = jax.export.symbolic_shape("batch")
    shapes = jax.ShapeDtypeStruct((3, 2), "float32"), jax.ShapeDtypeStruct((batch, 3), "float32")
    exported = jax.export.export(jax.jit(wave))(*shapes)
    args = np.ones((3, 2), np.float32), np.ones((5, 3), np.float32)
    imported = importer.import_step(exported.call, args)
    assert "?" not in imported.text and "tensor<5x3xf32>" in imported.text
    words = "'x' has the symbolic size 'batch' in dimension 0: .*; give a number"
    with pytest.raises(ImportFailure, match=words):
        importer.import_step(wave, shapes, by_shape=True)


def test_shape_without_value_is_an_error():
    with pytest.raises(ImportFailure, match="'x' has a shape but no value"):
        importer.import_step(lambda x: x, (jax.ShapeDtypeStruct((2,), "float32"),))


def test_scopes_become_names():
    def step(w, x):
        def loss(w):
            with jax.named_scope("decoder"), jax.named_scope("l0"):
                return jnp.sum(jax.nn.relu(x @ w))

        return jax.grad(loss)(w)

    draws = init.Draws()
    text = importer.import_step(step, (draws.weight(4, 3), draws.weight(2, 4))).text
    assert 'loc("decoder/l0/dot_general")' in text
    assert 'loc("backward/decoder/l0/dot_general")' in text
    assert "jvp" not in text and "jit" not in text


def test_unsupported_operations_are_reported_together():
    def step(x):
        with jax.named_scope("encoder"):
            y = jnp.linalg.eigh(x).eigenvalues
        return y, jnp.fft.rfft(x, 67).real

    with pytest.raises(UnsupportedOperations) as caught:
        importer.import_step(step, (init.Draws().weight(8, 8),))
    operations = {operation.operation: operation for operation in caught.value.operations}
    call = next(name for name in operations if name.startswith("stablehlo.custom_call @lapack_"))
    assert "stablehlo.fft" in operations
    assert operations[call].scope.startswith("encoder/")
    assert re.search(r"test_import\.py:\d+:\d+$", operations[call].source)


def test_what_a_pass_stumbles_over_is_an_operation_with_its_line(monkeypatch):
    monkeypatch.delitem(importer.stablehlo._REWRITES, "stablehlo.pad")

    def step(x):  # the conversion inserts nothing after the end
        with jax.named_scope("encoder"):
            return lax.pad(x[:0], 0.0, [(2, 0, 1)])

    with pytest.raises(UnsupportedOperations, match=r"test_import\.py:\d+.*'encoder/pad'"):
        importer.import_step(step, (init.Draws().weight(8),))


@pytest.mark.parametrize("version", ["0.8.2", "0.12.0", "0.12.0.dev20261101", "1.0"])
def test_other_versions_of_jax_are_refused(version):
    with pytest.raises(ImportError, match=f"this is JAX {version}, and .*jax>=0.9,<0.12'"):
        versions.check(version)


@pytest.mark.parametrize("version", ["0.9.0", "0.9.2", "0.10.0", "0.11.2", "0.11.3.dev1"])
def test_tested_versions_of_jax_are_taken(version):
    versions.check(version)


def test_a_rule_is_not_asked_about_parameters_that_it_does_not_know(monkeypatch):
    """A later JAX may say more than the rule reads: JAX's own is used, and refused."""

    def sort(*operands, dimension, num_keys):
        raise AssertionError("asked")

    monkeypatch.setitem(rules._REPLACEMENTS, lax.sort_p, sort)
    with pytest.raises(UnsupportedOperations, match="stablehlo.sort"):
        importer.import_step(jnp.sort, (init.Draws().weight(8),))


def test_types_without_code_are_reported_with_the_operations():
    def step(x):
        narrow = x.astype(jnp.float8_e4m3fn).astype(jnp.float32)
        return jnp.linalg.eigh(x).eigenvalues, jnp.real(jnp.log(x * 1j)), narrow

    with pytest.raises(UnsupportedOperations) as caught:
        importer.import_step(step, (init.Draws().weight(8, 8),))
    assert [operation.operation.split(" @")[0] for operation in caught.value.operations] == [
        "stablehlo.convert of f8E4M3FN",
        "stablehlo.convert of complex<f32>",
        "stablehlo.custom_call",
    ]
    assert all("test_import.py" in operation.source for operation in caught.value.operations)


@pytest.mark.parametrize("rows", [12, 5000])
def test_the_gradient_of_a_look_up_touches_its_rows_alone(rows):
    def step(table, places):
        return jax.grad(lambda t: jnp.sum(jnp.take(t, places, axis=0, mode="clip") ** 2))(table)

    draws = init.Draws()
    arguments = draws.weight(rows, 16), draws.integers(7, high=rows)
    text = importer.import_step(step, arguments).text
    assert "scf.for" in text
    assert f"tensor<7x{rows}xf32>" not in text, "a one-hot matrix"
    without_loops = importer.import_step(step, arguments, loops=False).text
    assert "scf.for" not in without_loops and f"tensor<7x{rows}xf32>" in without_loops


@pytest.mark.parametrize(
    "update",
    [
        lambda x: x.at[1:3].set(0.5),
        lambda x: x.at[..., 1::2].add(x[..., ::2]),
        lambda x: x.at[4:0:-2, 5].multiply(2.0),
        lambda x: jax.grad(lambda x: jnp.sum(x[::2, 1::3] ** 2))(x),
    ],
)
def test_a_scatter_to_known_places_is_no_loop(update):
    text = importer.import_step(update, (init.Draws().weight(6, 8),)).text
    assert "tensor.insert_slice" in text and "scf.for" not in text


def check(step, args, tmp_path):
    """Compiles an imported step and compares it with JAX."""
    imported = importer.import_step(step, args)
    expected = next(iter(reference.run(step, imported.signature, 1)))
    call = native.compile_step(imported.text, tmp_path)
    for actual, value in zip(call(imported.signature.initial_values(), expected), expected):
        native.assert_close(actual, value)


def gradient(f):
    """The gradient by the first argument of a loss that weighs all elements."""
    return jax.grad(lambda x, *rest: jnp.sum(jnp.sin(f(x, *rest))))


def max_pool(x, window=(1, 3, 3, 1), strides=(1, 2, 2, 1), padding="SAME"):
    return lax.reduce_window(x, -jnp.inf, lax.max, window, strides, padding)


# Overlapping, apart, touching, of every stride; equal elements, of which the first counts.
POOLS = [
    ((2, 9, 9, 3), (1, 3, 3, 1), (1, 2, 2, 1), "VALID"),
    ((2, 9, 8, 3), (1, 3, 3, 1), (1, 2, 2, 1), "SAME"),
    ((1, 7, 7, 2), (1, 2, 2, 1), (1, 2, 2, 1), "VALID"),
    ((1, 8, 8, 2), (1, 3, 3, 1), (1, 1, 1, 1), "SAME"),
    ((1, 11, 8, 2), (1, 5, 2, 1), (1, 3, 2, 1), "SAME"),
    ((3, 10), (1, 2), (1, 3), "VALID"),
    ((2, 9, 9, 3), (1, 3, 3, 1), (1, 2, 2, 1), ((0, 0), (1, 1), (1, 1), (0, 0))),
]


@pytest.mark.parametrize("shape, window, strides, padding", POOLS)
def test_the_gradient_of_pools(shape, window, strides, padding):
    random = np.random.default_rng(0)
    x = random.integers(0, 4, shape).astype(np.float32)
    x[random.random(shape) < 0.3] = -np.inf  # as much as padding has
    x[random.random(shape) < 0.1] = np.nan
    y, gradient_of = jax.vjp(lambda x: max_pool(x, window, strides, padding), x)
    given = random.normal(size=y.shape).astype(np.float32)
    sides = lax.padtype_to_pads(shape, window, strides, padding) if padding in PADS else padding
    ours = jax.jit(lambda g, x: max_pool_gradient(g, x, window, strides, sides))(given, x)
    np.testing.assert_allclose(ours, gradient_of(jnp.asarray(given))[0], rtol=1e-5, atol=1e-6)


def loop(x):
    return lax.while_loop(lambda s: s[0] < 5, lambda s: (s[0] + 1, s[1] * 1.5), (0, x))[1]


def scan(x):
    return lax.scan(lambda carry, row: (carry * 0.5 + jnp.tanh(row), carry), x[0], x)


def branch(x, i):
    return lax.switch(i[0], [jnp.sin, jnp.cos, jnp.tanh], x)


draws = init.Draws()
KEY = np.uint32([1, 2**31 + 7])
TABLE = draws.uniform(1500, 6, low=-2.0, high=2.0)
ROWS = draws.integers(4, 3, low=-2, high=1502)  # some are out of range
MATRIX = draws.uniform(5, 6, low=-2.0, high=2.0)
IMAGE = draws.uniform(2, 9, 9, 3, low=-1.0, high=1.0)
SEMANTICS = {
    "embedding gradient": (gradient(lambda t, i: t[i]), (MATRIX, draws.integers(2, 7, high=5))),
    "embedding gradient, one index": (gradient(lambda t, i: t[i[0]]), (MATRIX, np.int32([3]))),
    "gradient of a large table": (
        gradient(lambda t, i: jnp.take(t, i, axis=0, mode="clip")), (TABLE, ROWS)
    ),
    "add to rows": (
        lambda t, i, u: t.at[i].add(u), (TABLE, ROWS, draws.uniform(4, 3, 6, low=-1.0, high=1.0))
    ),
    "add to one row": (lambda t, i: t.at[i[0]].add(1.0), (TABLE, np.int32([3]))),
    "set elements": (lambda v, i: v.at[i].set(0.5), (draws.uniform(9, low=0.0, high=1.0), ROWS)),
    "largest of rows": (lambda t, i: t.at[i].max(0.5), (TABLE, ROWS)),
    "rows out of range, clipped": (
        lambda t, i: t.at[i + 2].add(1.0, mode="clip"), (MATRIX, draws.integers(7, high=5))
    ),
    "unsigned rows": (lambda t, i: t.at[i].set(0.5), (MATRIX, np.uint32([1, 2**32 - 1, 4]))),
    "a function of elements": (lambda x, i: x.at[i].apply(jnp.sin), (MATRIX, np.int32([1, 1]))),
    "windows": (  # the second is not all inside
        lambda x, i, u: lax.scatter_add(
            x, i, u, lax.ScatterDimensionNumbers((1, 2), (), (1, 0)), mode="drop"),
        (MATRIX, np.int32([[1, 0], [4, 1]]), draws.uniform(2, 2, 3, low=-1.0, high=1.0)),
    ),
    "a slice and its gradient": (gradient(lambda x: x.at[1:3, 4].multiply(x[2, ::5])), (MATRIX,)),
    "slices, turned": (lambda x: x.at[:, 4:0:-2].set(x[::-1, :2]), (MATRIX,)),
    "slices of the last axis": (gradient(lambda x: x[..., ::2] * x[..., 1::2]), (MATRIX,)),
    "a slice that is not inside": (
        lambda x, u: lax.scatter(x, np.int32([4]), u, lax.ScatterDimensionNumbers((0, 1), (), (0,)),
                                 mode="drop"),
        (MATRIX, draws.uniform(2, 6, low=-1.0, high=1.0)),
    ),
    "elements at pairs": (lambda x, i: x.at[i, i + 1].add(2.0), (MATRIX, np.int32([0, 3, 3]))),
    "columns": (gradient(lambda x, i: x[:, i]), (MATRIX, np.int32([5, 0, 5]))),
    "elements of each row": (
        jax.vmap(lambda row, i: row.at[i].set(0.0)), (MATRIX, np.int32([0, 5, -1, 9, 2]))
    ),
    "windows of each row": (
        jax.vmap(lambda row, i: lax.dynamic_update_slice(row, jnp.ones(2), (i,))),
        (MATRIX, np.int32([0, 5, -1, 9, 2])),
    ),
    "gradient of many picked": (
        gradient(lambda x, i: jnp.take_along_axis(x, i, axis=-1)),
        (MATRIX, draws.integers(5, 11, high=6)),
    ),
    "picking gradient": (
        gradient(lambda x, i: jnp.take_along_axis(x, i, axis=-1)),
        (MATRIX, draws.integers(5, 2, high=6)),
    ),
    "max pool gradient": (gradient(max_pool), (IMAGE,)),
    "min pool gradient": (
        gradient(lambda x: lax.reduce_window(x, jnp.inf, lax.min, (1, 2, 2, 1), (1, 2, 2, 1),
                                             "SAME")),
        (IMAGE,),
    ),
    "padding of nothing": (lambda x: lax.pad(x[:0], 1.5, [(2, 1, 1), (0, 1, 0)]), (MATRIX,)),
    "sort": (lambda x: (jnp.sort(x, axis=0), jnp.argsort(-x)), (MATRIX,)),
    "sort by two keys": (lambda i, x: lax.sort((i, -i, x), num_keys=2), (ROWS, ROWS)),
    "sort gradient": (gradient(lambda x: jnp.sort(x) * jnp.arange(6.0)), (MATRIX,)),
    "median": (lambda x: jnp.median(x, axis=1), (MATRIX,)),
    "permutation": (lambda key: jax.random.permutation(key, 37), (KEY,)),
    "top k": (lambda x: lax.top_k(x, 3), (MATRIX,)),
    "concatenate": (lambda x: jnp.concatenate([x, x * 2, x], axis=1), (MATRIX,)),
    "concatenate booleans": (lambda x: jnp.concatenate([x > 0, x < 1]).sum(), (MATRIX,)),
    "while": (loop, (MATRIX,)),
    "scan": (scan, (MATRIX,)),
    "scan gradient": (gradient(lambda x: scan(x)[1]), (MATRIX,)),
    "switch": (branch, (MATRIX, np.int32([1]))),
    "switch out of range": (branch, (MATRIX, np.int32([7]))),
    "dropout": (
        lambda key, x: jnp.where(jax.random.bernoulli(key, 0.5, x.shape), x, 0.0),
        (np.uint32([1, 2]), MATRIX),
    ),
    "random keys": (lambda key: jax.random.split(jax.random.fold_in(key, 3), 5), (KEY,)),
    "normal numbers": (lambda key: jax.random.normal(key, (5, 3)), (KEY,)),
    "numbers of many keys": (
        lambda key: jax.vmap(lambda k: jax.random.uniform(k, (4,)))(jax.random.split(key, 3)),
        (KEY,),
    ),
    "concatenate unsigned": (
        lambda a: jnp.concatenate([a, a + 1]).astype(jnp.float32), (np.uint32([1, 2**31 + 5]),)
    ),
    "optimization barrier": (lambda x: lax.optimization_barrier(x) + 1, (MATRIX,)),
    "convolution gradient": (
        gradient(lambda w, x: lax.conv_general_dilated(
            x, w, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))),
        (draws.weight(3, 3, 3, 4), IMAGE),
    ),
}  # fmt: skip


@native.needs_tools
@pytest.mark.parametrize("case", SEMANTICS)
def test_semantics(case, tmp_path):
    check(*SEMANTICS[case], tmp_path)


@native.needs_tools
def test_another_configuration_of_a_model(tmp_path):
    module = models.load("transformer")
    config = module.Config(
        hidden=8, heads=2, layers=1, sequence=4, batch=1, vocabulary=6, optimizer="adam"
    )
    step, args, _ = module.training_step(config)
    check(step, args, tmp_path)
