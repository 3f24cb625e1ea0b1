# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reductions by every operation of MLIR's that frameworks or people write, against NumPy's."""

import subprocess

import numpy as np
import pytest

import needs
from baechi.compiling import tools

# Lengths around those of vectors and of unrolled loops.
SHAPES = [((n,), 0) for n in (1, 3, 5, 8, 11, 13, 17, 37)]
SHAPES += [((11, 1), 0), ((17, 2), 0), ((1, 17), 1), ((2, 11), 1), ((3, 37), 1)]
FLOATS = {
    "addf": (np.add, "0.0"),
    "mulf": (np.multiply, "1.0"),
    "maximumf": (np.maximum, "0xFF800000"),
    "minimumf": (np.minimum, "0x7F800000"),
    "maxnumf": (np.fmax, "0xFF800000"),
    "minnumf": (np.fmin, "0x7F800000"),
}
INTEGERS = {
    "addi": (np.add, 0),
    "muli": (np.multiply, 1),
    "maxsi": (np.maximum, -(2**31)),
    "minsi": (np.minimum, 2**31 - 1),
    "andi": (np.bitwise_and, -1),
    "ori": (np.bitwise_or, 0),
    "xori": (np.bitwise_xor, 0),
}


def program(name: str, element: str, start) -> str:
    """A step that reduces each of SHAPES."""
    arguments, results, values, body = [], [], [], ""
    for number, (shape, axis) in enumerate(SHAPES):
        whole = f"tensor<{'x'.join(map(str, shape))}x{element}>"
        left = [size for dim, size in enumerate(shape) if dim != axis]
        result = f"tensor<{'x'.join([*map(str, left), element])}>"
        body += f"""
  %e{number} = tensor.empty() : {result}
  %f{number} = linalg.fill ins(%start : {element}) outs(%e{number} : {result}) -> {result}
  %r{number} = linalg.reduce ins(%x{number} : {whole}) outs(%f{number} : {result})
    dimensions = [{axis}] (%a: {element}, %b: {element}) {{
      %c = arith.{name} %b, %a : {element}
      linalg.yield %c : {element}
    }}"""
        arguments.append(f"%x{number}: {whole}")
        results.append(result)
        values.append(f"%r{number}")
    return f"""func.func @step({", ".join(arguments)}) -> ({", ".join(results)}) {{
  %start = arith.constant {start} : {element}{body}
  return {", ".join(values)} : {", ".join(results)}
}}
"""


def numbers(name: str, shape) -> np.ndarray:
    """Drawn, with the extreme at the very end."""
    draw = np.random.default_rng(sum(shape))
    if name in INTEGERS:
        drawn = draw.integers(-(2**31), 2**31 - 1, shape).astype(np.int32)
        drawn.flat[-1] = -(2**31) if name == "minsi" else 2**31 - 1
        return drawn
    drawn = draw.standard_normal(shape).astype(np.float32)
    drawn.flat[-1] = 9 if name.startswith("max") else -9
    if "num" in name and drawn.size > 1:
        drawn.flat[drawn.size // 2 - 1] = np.nan
    return drawn


@needs.tool("baechi-run")
@pytest.mark.parametrize("name", [*FLOATS, *INTEGERS])
def test_reductions_equal_numpys(name, tmp_path):
    combine, start = (FLOATS | INTEGERS)[name]
    element = "f32" if name in FLOATS else "i32"
    inputs = [numbers(name, shape) for shape, _ in SHAPES]
    model, outputs = tmp_path / "model.mlir", tmp_path / "outputs.npz"
    model.write_text(program(name, element, start))
    np.savez(tmp_path / "inputs.npz", **{f"arg{i}": each for i, each in enumerate(inputs)})
    command = [tools.find("baechi-run"), model, "--machine=host:1", "--costs=roofline"]
    command += [f"--inputs={tmp_path / 'inputs.npz'}", f"--outputs={outputs}", "--steps=1"]
    subprocess.run([*map(str, command), "--budget=0"], check=True, capture_output=True)
    found = np.load(outputs)
    for number, ((_, axis), each) in enumerate(zip(SHAPES, inputs, strict=True)):
        wanted = combine.reduce(each, axis, dtype=each.dtype)
        if element == "i32":
            np.testing.assert_array_equal(found[f"out{number}"], wanted)
        else:
            np.testing.assert_allclose(found[f"out{number}"], wanted, rtol=1e-5, atol=1e-6)
