# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Convolutions by cuDNN and the gradients of their filters, on the fake library
(unittests/Runtime/FakeCuda), from the model to the results: those of JAX."""

import dataclasses
import os
import subprocess

import numpy as np
import pytest

import needs
from baechi.compiling import tools

pytestmark = needs.tool("baechi-run")
jax = pytest.importorskip("jax")


@dataclasses.dataclass(frozen=True)
class Shape:
    """Images [batch, groups, channels, height, width], filters [groups, kinds, channels, ...]."""

    batch: int = 2
    groups: int = 1
    channels: int = 4
    kinds: int = 6
    image: tuple[int, int] = (9, 11)
    window: tuple[int, int] = (3, 2)
    steps: tuple[int, int] = (1, 1)
    dilations: tuple[int, int] = (1, 1)

    def places(self):
        return tuple(
            (i - (w - 1) * d - 1) // s + 1
            for i, w, s, d in zip(self.image, self.window, self.steps, self.dilations, strict=True)
        )

    def of(self, what):
        """The shape of images x, filters w or results y."""
        if what == "x":
            return (self.batch, self.groups, self.channels, *self.image)
        if what == "w":
            return (self.groups, self.kinds, self.channels, *self.window)
        return (self.batch, self.groups, self.kinds, *self.places())


SHAPES = {
    "plain": Shape(),
    "steps": Shape(steps=(2, 3)),
    "dilations": Shape(dilations=(2, 3)),
    "both": Shape(steps=(2, 1), dilations=(1, 2)),
    "groups": Shape(groups=2, channels=3, kinds=2),
    "row": Shape(window=(1, 5)),
}


def step_of(shape, filters):
    """A step that is one convolution, or the gradient of its filters."""
    (p, q), (r, t) = shape.steps, shape.dilations
    maps = {
        "x": f"(n, g, c, p * {p} + r * {r}, q * {q} + s * {t})",
        "w": "(g, k, c, r, s)",
        "y": "(n, g, k, p, q)",
    }
    second, result = ("y", "w") if filters else ("w", "y")
    loops = "n, g, k, p, q, c, r, s"
    kinds = ", ".join(
        '"parallel"' if loop in maps[result].strip("()").split(", ") else '"reduction"'
        for loop in loops.split(", ")
    )
    order = ", ".join(f"affine_map<({loops}) -> {maps[k]}>" for k in ("x", second, result))
    types = {k: f"tensor<{'x'.join(map(str, shape.of(k)))}xf32>" for k in "xwy"}
    return f"""
func.func @step(%x: {types["x"]}, %b: {types[second]}) -> {types[result]} {{
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : {types[result]}
  %f = linalg.fill ins(%zero : f32) outs(%e : {types[result]}) -> {types[result]}
  %r = linalg.generic {{indexing_maps = [{order}], iterator_types = [{kinds}]}}
      ins(%x, %b : {types["x"]}, {types[second]}) outs(%f : {types[result]}) {{
  ^bb0(%a: f32, %c: f32, %o: f32):
    %p = arith.mulf %a, %c : f32
    %s = arith.addf %o, %p : f32
    linalg.yield %s : f32
  }} -> {types[result]}
  return %r : {types[result]}
}}
"""


def expected_of(shape, filters, x, b):
    """By JAX, with the groups as it has them."""

    def convolve(filters):
        flat = filters.reshape(-1, *filters.shape[2:])
        y = jax.lax.conv_general_dilated(
            x.reshape(shape.batch, -1, *shape.image),
            flat,
            shape.steps,
            "VALID",
            rhs_dilation=shape.dilations,
            feature_group_count=shape.groups,
            precision="highest",
        )
        # Groups one after the other, as the program has its results.
        return y.reshape(shape.of("y"))

    if not filters:
        return convolve(b)
    return jax.vjp(convolve, np.zeros(shape.of("w"), np.float32))[1](b)[0]


@pytest.mark.parametrize("filters", [False, True], ids=["forward", "filters"])
@pytest.mark.parametrize("name", SHAPES)
def test_as_jax_convolves(tmp_path, name, filters):
    run = tools.find("baechi-run")
    fake = os.path.join(os.path.dirname(run), "../lib/libBaechiFakeCuda.so")
    if not os.path.exists(fake):
        pytest.skip(f"{fake} is not built")
    shape = SHAPES[name]
    (tmp_path / "step.mlir").write_text(step_of(shape, filters))
    rng = np.random.default_rng(1)
    x, b = (
        rng.standard_normal(shape.of(k)).astype(np.float32) for k in ("x", "y" if filters else "w")
    )
    np.savez(tmp_path / "in.npz", arg0=x, arg1=b)
    variables = ("BAECHI_CUDA_LIBRARY", "BAECHI_CUBLASLT_LIBRARY", "BAECHI_CUDNN_LIBRARY")
    said = subprocess.run(
        [
            run,
            tmp_path / "step.mlir",
            "--machine=cuda:1@1MiB",
            "--cuda-convolutions=cudnn",
            "--costs=roofline",
            f"--inputs={tmp_path}/in.npz",
            f"--outputs={tmp_path}/out.npz",
            "--steps=3",
            "--check-single=false",
        ],
        env=os.environ | dict.fromkeys(variables, fake),
        capture_output=True,
        text=True,
    )
    assert said.returncode == 0, said.stderr
    got = np.load(tmp_path / "out.npz")["out0"]
    np.testing.assert_allclose(got, expected_of(shape, filters, x, b), rtol=0, atol=3e-5)
