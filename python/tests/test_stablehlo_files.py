# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Files of StableHLO become modules that compute what JAX does, or are told by their place."""

from __future__ import annotations

import pathlib
import re
import subprocess
from typing import Any

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import baechi
import needs
from baechi.commands import import_model
from baechi.compiling import tools
from baechi.importer.common.errors import ImportFailure
from baechi.importer.jax import hlo_file


def _step(params: Any, x: Any, rows: Any) -> Any:
    """A loop, a sort, a look-up and its gradient, and a function of CHLO."""

    def loss(params: Any) -> Any:
        hidden = jnp.sort(jnp.tanh(x @ params["w"]), axis=-1) + params["table"][rows]
        last, sums = lax.scan(lambda c, t: (c * 0.9 + t, c.sum()), hidden[0], hidden)
        return (lax.erf(sums) * last.mean()).sum()

    value, gradient = jax.value_and_grad(loss)(params)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradient), value


def _arguments() -> tuple[Any, ...]:
    draw = np.random.default_rng(1)
    w, table, x = (draw.normal(size=s).astype(np.float32) for s in ((6, 8), (9, 8), (5, 6)))
    return {"w": w, "table": table}, x, np.array([3, 0, 3, 8, 1], np.int32)


def _written(form: str, folder: pathlib.Path) -> pathlib.Path:
    step = jax.jit(_step, donate_argnums=0)
    if form == "artifact":
        file = folder / "step.mlirbc"
        file.write_bytes(jax.export.export(step)(*_arguments()).mlir_module_serialized)
        return file
    file = folder / "step.mlir"
    file.write_text(step.lower(*_arguments()).as_text(debug_info=form == "named"))
    return file


def _run(module: pathlib.Path, arguments: list[Any], folder: pathlib.Path) -> list[np.ndarray]:
    np.savez(folder / "in.npz", **{f"arg{i}": each for i, each in enumerate(arguments)})
    options = ["--machine=host:2", "--costs=roofline", "--steps=1", "--budget=0"]
    files = [f"--inputs={folder}/in.npz", f"--outputs={folder}/out.npz"]
    tool = tools.find("baechi-run")
    subprocess.run([tool, str(module), *options, *files], check=True, capture_output=True)
    with np.load(folder / "out.npz") as found:
        return [found[f"out{i}"] for i in range(len(found.files))]


@needs.tool("baechi-run")
@pytest.mark.parametrize("form", ["plain", "named", "artifact"])
def test_a_file_computes_what_jax_does(form: str, tmp_path: pathlib.Path) -> None:
    file, module = _written(form, tmp_path), tmp_path / "linalg.mlir"
    assert import_model.main([str(file), "-o", str(module)]) == 0
    arguments = _arguments()
    found = _run(module, jax.tree.leaves(arguments), tmp_path)
    expected = jax.tree.leaves(jax.jit(_step)(*arguments))
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=2e-6)


@needs.tool("baechi-run")
@pytest.mark.parametrize("direction", ["GE", "GT", "LE", "LT"])
def test_gradients_of_pools_go_to_the_element_that_is_selected(
    direction: str, tmp_path: pathlib.Path
) -> None:
    """Of equal ones and of NaN, too: as the specification (select_and_scatter) has it."""
    draw = np.random.default_rng(3)
    x = draw.integers(0, 2, (6, 8)).astype(np.float32)
    x[4, 3], x[0, 6:] = np.nan, np.nan
    source = np.arange(1, 13, dtype=np.float32).reshape(3, 4)
    file, module = tmp_path / "pool.mlir", tmp_path / "linalg.mlir"
    file.write_text(_POOL.replace("GE", direction))
    assert import_model.main([str(file), "-o", str(module)]) == 0
    holds = {"GE": np.greater_equal, "GT": np.greater, "LE": np.less_equal, "LT": np.less}
    expected = np.zeros_like(x)
    for row, column in np.ndindex(source.shape):
        window = [(2 * row + i, 2 * column + j) for i, j in np.ndindex(2, 2)]
        best = window[0]
        for place in window[1:]:
            best = best if holds[direction](x[best], x[place]) else place
        expected[best] = source[row, column]
    (found,) = _run(module, [x, source], tmp_path)
    np.testing.assert_array_equal(found, expected)


_POOL = """
func.func public @main(%x: tensor<6x8xf32>, %source: tensor<3x4xf32>) -> tensor<6x8xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = "stablehlo.select_and_scatter"(%x, %source, %zero) <{
      window_dimensions = array<i64: 2, 2>, window_strides = array<i64: 2, 2>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %1 = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
  }, {
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %1 = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %1 : tensor<f32>
  }) : (tensor<6x8xf32>, tensor<3x4xf32>, tensor<f32>) -> tensor<6x8xf32>
  return %0 : tensor<6x8xf32>
}
"""


def test_exported_gradients_of_pools_are_jax_s() -> None:
    def step(x: Any) -> Any:
        pooled = lax.reduce_window(x, -jnp.inf, lax.max, (2, 2), (2, 2), "VALID")
        return (pooled * jnp.arange(1.0, 13).reshape(3, 4)).sum()

    x = np.maximum(np.random.default_rng(4).integers(-2, 2, (6, 8)), 0).astype(np.float32)
    exported = jax.export.export(jax.jit(jax.grad(step)))(x)
    ours = baechi.jit(exported.call, machine="host:1", costs="roofline", budget=0)(x)
    np.testing.assert_array_equal(ours, exported.call(x))


def test_names_and_updates_are_jax_s(tmp_path: pathlib.Path) -> None:
    imported = hlo_file.import_file(str(_written("named", tmp_path)), "step")
    assert [each.name for each in imported.arguments] == ["params/table", "params/w", "x", "rows"]
    assert [each.updated_by for each in imported.arguments] == [0, 1, None, None]
    assert imported.results == ["result/0/table", "result/0/w", "result/1"]
    plain = hlo_file.import_file(str(_written("plain", tmp_path)), "step")
    assert [each.name for each in plain.arguments] == ["arg0", "arg1", "arg2", "arg3"]
    header = next(line for line in imported.text.splitlines() if "func.func @step(" in line)
    for foreign in ("tf.", "jax.", "mhlo."):
        assert foreign not in header


_ADD = "%0 = stablehlo.add %a, %a : {0}\n    return %0 : {0}"


def _module(body: str, type_: str, head: str = "", name: str = "main") -> str:
    function = f"  func.func @{name}(%a: {type_}) -> {type_} {{\n    {body.format(type_)}\n  }}\n"
    return f"module @m {head} {{\n{function}}}\n"


_CALL = "%0 = stablehlo.custom_call @mine(%a) : ({0}) -> {0}\n    return %0 : {0}"
_REFUSED = {
    "sizes": (_module(_ADD, "tensor<?x4xf32>"), "'arg0' has unknown sizes: tensor<?x4xf32>"),
    "token": (
        _module("return %a : {0}", "!stablehlo.token"),
        "'arg0' is no tensor: !stablehlo.token",
    ),
    "bytes": (_module(_ADD, "tensor<4xf8E4M3FN>"), "'arg0' has elements of f8E4M3FN"),
    "replicas": (
        _module(_ADD, "tensor<4xf32>", "attributes {mhlo.num_replicas = 2 : i32}"),
        "mhlo.num_replicas is 2",
    ),
    "call": (_module(_CALL, "tensor<4xf32>"), "m.mlir:3:10: stablehlo.custom_call @mine\n"),
    "result": (
        "func.func @main(%a: tensor<4xf32>) -> tensor<?xf32> {\n"
        "  %0 = tensor.cast %a : tensor<4xf32> to tensor<?xf32>\n"
        "  return %0 : tensor<?xf32>\n}",
        "result 0 has unknown sizes: tensor<?xf32>|tensor.cast",
    ),
    "syntax": (_module("return %b : {0}", "tensor<4xf32>"), "m.mlir:3:12: use of undeclared SSA"),
    "unknown": (
        _module('%0 = "mine.add"(%a) : ({0}) -> {0}\n    return %0 : {0}', "tensor<4xf32>"),
        "m.mlir:3:20: operation being parsed with an unregistered dialect",
    ),
    "none": ("module {}", "found none"),
    "declared": ("func.func public @main(tensor<4xf32>)", "has no body|visibility"),
    "several": (
        "".join(
            f"func.func @{name}(%a: tensor<f32>) -> tensor<f32> {{ return %a : tensor<f32> }}\n"
            for name in ("one", "two")
        ),
        "found @one, @two",
    ),
    "aliased": (
        "func.func @main(%a: tensor<f32> {tf.aliasing_output = 0 : i32}, "
        "%b: tensor<f32> {tf.aliasing_output = 0 : i32}) -> tensor<f32> "
        "{ return %a : tensor<f32> }",
        "two arguments have tf.aliasing_output = 0",
    ),
}


@pytest.mark.parametrize(
    ("aliased", "told"),
    [
        ('"a"', 'tf.aliasing_output is no number: "a"'),
        ("7 : i32", "'arg0' has tf.aliasing_output = 7, and there are 2 results"),
        ("-1 : i32", "'arg0' has tf.aliasing_output = -1"),
        ("1 : i32", "'arg0' is tensor<f32>, and result 1, .* tensor<2xf32>"),
    ],
)
def test_a_next_value_is_a_result_of_its_type(
    aliased: str, told: str, tmp_path: pathlib.Path
) -> None:
    file = tmp_path / "m.mlir"
    file.write_text(
        f"func.func @main(%a: tensor<f32> {{tf.aliasing_output = {aliased}}}, %b: tensor<2xf32>) "
        "-> (tensor<f32>, tensor<2xf32>) { return %a, %b : tensor<f32>, tensor<2xf32> }"
    )
    with pytest.raises(ImportFailure, match=told):
        hlo_file.import_file(str(file), "m")


@pytest.mark.parametrize("case", _REFUSED)
def test_what_is_no_step_is_refused(case: str, tmp_path: pathlib.Path) -> None:
    text, told = _REFUSED[case]
    file = tmp_path / "m.mlir"
    file.write_text(text)
    with pytest.raises(ImportFailure, match="|".join(map(re.escape, told.split("|")))):
        hlo_file.import_file(str(file), "m")


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"\xff\xfe\x00", "neither text nor MLIR bytecode"),
        (b"ML\xefR\x0dStableHLO_v1.0.0\x00broken", "not a portable artifact of StableHLO"),
        (b"ML\xefR\x01broken", "not a module of StableHLO"),
        (b"func.func @f(%x: tensor<4xf32>) { linalg.fill }", "baechi-run takes it as it is"),
    ],
)
def test_damaged_files_are_refused(data: bytes, told: str, tmp_path: pathlib.Path) -> None:
    file = tmp_path / "m.mlirbc"
    file.write_bytes(data)
    with pytest.raises(ImportFailure, match=told):
        hlo_file.import_file(str(file), "m")


def test_a_missing_file_is_told(tmp_path: pathlib.Path, capsys: Any) -> None:
    assert import_model.main([str(tmp_path / "none.mlir"), "-o", "-"]) == 1
    assert "none.mlir: no such file" in capsys.readouterr().err
    assert import_model.main(["m.mlir", "--preset=small", "-o", "-"]) == 1
    assert "not for files of StableHLO" in capsys.readouterr().err
