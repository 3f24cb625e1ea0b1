# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The importer's command line: files written and errors reported."""

import json
import lzma
import pathlib

import numpy as np
import pytest

from baechi.commands import import_model as cli


def errors(capsys, *argv) -> str:
    """What a run that must fail reports."""
    assert cli.main([*argv, "-o", "-"]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: ")
    return captured.err


@pytest.fixture
def needs_jax():
    pytest.importorskip("jax", reason="JAX is not installed; run scripts/python-env")


def test_unknown_model_lists_the_known(capsys):
    message = errors(capsys, "vgg")
    assert "unknown model 'vgg'; known: mlp, " in message


def test_bad_setting(capsys):
    assert "--set layers: expected KEY=VALUE" in errors(capsys, "mlp", "--set", "layers")


def test_bad_steps(capsys):
    assert "at least one step" in errors(capsys, "mlp", "--steps=0")


def test_unknown_preset(capsys, needs_jax):
    message = errors(capsys, "mlp", "--preset=huge")
    assert "mlp has no preset 'huge'; known: tiny, small" in message


@pytest.mark.parametrize(
    "setting, message",
    [
        ("depth=3", "--set depth: mlp has only inputs, hidden,"),
        ("layers=two", "--set layers=two: expected an integer"),
        ("layers=0", "--set layers=0: expected a positive number"),
        ("dropout=-0.5", "--set dropout=-0.5: expected a number, 0 or more"),
        ("dropout=1", "dropout=1.0: expected 0 or more and less than 1"),
        ("optimizer=adagrad", "unknown optimizer 'adagrad'; known: sgd, adam"),
    ],
)
def test_wrong_setting(capsys, needs_jax, setting, message):
    assert message in errors(capsys, "mlp", "--set", setting)


def test_wrong_heads(capsys, needs_jax):
    assert "hidden=16 is not a multiple" in errors(capsys, "transformer", "--set", "heads=3")


def test_own_step_that_is_not_there(capsys, needs_jax, tmp_path):
    assert "no such file" in errors(capsys, f"{tmp_path}/model.py:make")
    file = tmp_path / "model.py"
    file.write_text("x = 1\n")
    assert "has no function 'make'" in errors(capsys, f"{file}:make")
    file.write_text("def make(n): return 3\n")
    assert "missing a required argument: 'n'" in errors(capsys, f"{file}:make")
    file.write_text("def make(): return 3\n")
    assert "must return (step, example_args, donate_argnums)" in errors(capsys, f"{file}:make")
    assert "--preset is for the models" in errors(capsys, f"{file}:make", "--preset=tiny")


def test_output_folder_that_is_not_there(capsys, needs_jax, tmp_path):
    assert cli.main(["mlp", "-o", f"{tmp_path}/no/mlp.mlir"]) == 1
    assert "No such file or directory" in capsys.readouterr().err


def test_unsupported_operation_of_an_own_step(capsys, needs_jax, tmp_path):
    file = tmp_path / "spectrum.py"
    file.write_text(
        "import jax.numpy as jnp\n"
        "def make(n=4):\n"
        "    return (lambda x: jnp.fft.fft(x).real), (jnp.arange(n) * 0.5,), ()\n"
    )
    message = errors(capsys, f"{file}:make", "--set", "n=67")
    assert f"{file}:3:" in message
    assert "stablehlo.fft" in message


def test_own_step_with_references(needs_jax, tmp_path):
    source = tmp_path / "model.py"
    source.write_text(
        "from baechi import init\n"
        "def make(rows=2):\n"
        "    step = lambda w, x: {'loss': (x @ w).sum(), 'w': w - 0.5}\n"
        "    draws = init.Draws(seed=5)\n"
        "    return step, (draws.weight(3, 2), draws.weight(rows, 3)), 0\n"
    )
    module, arrays, summary = (tmp_path / name for name in ("m.mlir.xz", "r.npz", "r.json"))
    argv = [f"{source}:make", "--set", "rows=4", "-o", str(module), "--steps", "3"]
    assert cli.main([*argv, "--reference", str(arrays), "--reference", str(summary)]) == 0

    assert "tensor<4x3xf32>" in lzma.decompress(module.read_bytes()).decode()
    stored = np.load(arrays)
    assert set(stored) == {"arg0", "arg1", "out0", "out1"}
    assert np.allclose(stored["out1"], stored["arg0"] - 0.5)
    assert float(stored["out0"]) == pytest.approx((stored["arg1"] @ stored["arg0"]).sum(), rel=1e-5)

    told = json.loads(summary.read_text())
    assert told["losses"][0] == pytest.approx(float(stored["out0"]))
    assert len(told["losses"]) == told["steps"] == 3
    row = told["results"][1]
    assert (row["name"], row["type"], row["shape"]) == ("w", "float32", [3, 2])
    assert row["first"] == pytest.approx((stored["arg0"] - 1.5).ravel()[:4].tolist())


def test_wrong_reference_suffix(capsys):
    assert "r.txt: a reference file ends in" in errors(capsys, "mlp", "--reference", "r.txt")


def test_the_example_of_the_documentation_trains(needs_jax, tmp_path):
    page = pathlib.Path(__file__).resolve().parents[2] / "docs" / "import.md"
    example = page.read_text().split("```python\n")[1].split("```")[0]
    source, summary = tmp_path / "my_model.py", tmp_path / "r.json"
    source.write_text(example)
    argv = [f"{source}:make", "-o", f"{tmp_path}/m.mlir", "--reference", str(summary)]
    assert cli.main([*argv, "--set", "width=8"]) == 0
    losses = json.loads(summary.read_text())["losses"]
    assert losses[-1] < losses[0]
