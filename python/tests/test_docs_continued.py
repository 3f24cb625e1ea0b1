# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Blocks of pages that go on from a reader's own program or files, with some in their place."""

import shutil

import pytest

from pages import ROOT, blocks, run_commands, run_program

_JAX = """
import baechi, jax, jax.numpy as jnp

def model_loss(params, batch):
    x, y = batch
    return ((jnp.tanh(x @ params["w1"]) @ params["w2"] - y) ** 2).mean()

def train(params, batch):
    loss, grads = jax.value_and_grad(model_loss)(params, batch)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), loss

infer = model_loss
params = {"w1": jnp.full((16, 32), 0.1), "w2": jnp.full((32, 1), 0.1)}
batch = jnp.ones((8, 16)), jnp.zeros((8, 1))
batches = [batch] * 3
"""

_TORCH = """
import torch
from torch.nn import Linear, ReLU, Sequential

def Model():
    return Sequential(Linear(16, 32), ReLU(), Linear(32, 4))

sample = torch.ones(8, 16)
batches = [(sample, torch.arange(8) % 4)] * 2

class accelerate:
    dispatch_model = staticmethod(lambda model, device_map: device_map.keys() and model)
"""

_ONNX = """
import numpy, onnx
from onnx import TensorProto, helper

shape = ["batch", 4]
onnx.save(
    helper.make_model(
        helper.make_graph(
            [helper.make_node("Relu", ["x"], ["y"])],
            "relu",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
        ),
        opset_imports=[helper.make_opsetid("", 17)],
        ir_version=8,
    ),
    "model.onnx",
)
x = numpy.ones((8, 4), numpy.float32)
"""

_GRAPH = """{
  "format": "baechi-graph", "version": 1,
  "ops": [{"id": 0, "name": "a", "time_ns": 1000, "outputs": [64]},
          {"id": 1, "name": "b", "time_ns": 1000}],
  "edges": [{"from": 0, "output": 0, "to": 1}]
}"""


@pytest.mark.parametrize(
    ("page", "needs", "before", "after"),
    [
        ("checking.md", "jax", _JAX, ""),
        ("host-calls.md", "jax", _JAX, "assert step(jnp.ones((4, 4))).shape == (4, 4)"),
        ("jit.md", "jax", _JAX, "assert loss.shape == ()"),
        ("splitting.md", "jax", _JAX, ""),
        ("torch.md", "torch_mlir", _TORCH, ""),
    ],
)
def test_python_that_goes_on_runs(page, needs, before, after, tmp_path):
    pytest.importorskip(needs)
    done = run_program("\n".join([before, *blocks(page, "python"), after]), tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "page", ["kernel-store.md", "placement.md", "step-library.md", "translate.md"]
)
def test_commands_that_go_on_run(page, tmp_path):
    for folder in ("data", "examples", "scripts", "test"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    (tmp_path / "build").symlink_to(ROOT / "build")
    for name in ("model.mlir", "changed.mlir"):
        shutil.copy(ROOT / "examples" / "mlp.mlir", tmp_path / name)
    (tmp_path / "graph.json").write_text(_GRAPH)
    shutil.copy(ROOT / "data" / "graphs" / "machine_4x8GiB.json", tmp_path / "machine.json")
    drawn = "baechi-translate placed.mlir --baechi-to-dot"  # by Graphviz
    done = run_commands(page, tmp_path, skip=() if shutil.which("dot") else [drawn])
    assert done.returncode == 0, done.stderr


def test_the_page_on_onnx_runs(tmp_path):
    pytest.importorskip("onnx")
    text = "\n".join([_ONNX, *blocks("onnx.md", "python"), "assert (y == x).all()"])
    done = run_program(text, tmp_path)
    assert done.returncode == 0, done.stderr
    done = run_commands("onnx.md", tmp_path)
    assert done.returncode == 0, done.stderr
