# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Positions that data tell: baechi-run refuses those that arrays do not have."""

import subprocess

import numpy as np
import pytest

import needs
from baechi.compiling import tools

pytestmark = needs.tool("baechi-run")

MODEL = """
// Positions that data tell: as keys, behind a branch, of a row of another
// array's (as sparse matrices have them), and of an array that the step makes.
func.func @keys(%a: memref<23xf32> {baechi.name = "a"},
                %k: memref<60xi32> {baechi.name = "k"},
                %b: memref<60xf32> {baechi.name = "b"}) {
  affine.for %n = 0 to 60 {
    %i = affine.load %k[%n] : memref<60xi32>
    %p = arith.index_cast %i : i32 to index
    %v = memref.load %a[%p] : memref<23xf32>
    affine.store %v, %b[%n] : memref<60xf32>
  }
  return
}

func.func @branch(%a: memref<23xf32> {baechi.name = "a"},
                  %k: memref<60xi32> {baechi.name = "k"},
                  %b: memref<60xf32> {baechi.name = "b"}) {
  %zero = arith.constant 0 : i32
  affine.for %n = 0 to 60 {
    %i = affine.load %k[%n] : memref<60xi32>
    %has = arith.cmpi sge, %i, %zero : i32
    scf.if %has {
      %p = arith.index_cast %i : i32 to index
      %v = memref.load %a[%p] : memref<23xf32>
      memref.store %v, %b[%n] : memref<60xf32>
    }
  }
  return
}

func.func @rows(%a: memref<23xf32> {baechi.name = "a"},
                %k: memref<60xi32> {baechi.name = "k"},
                %b: memref<12xf32> {baechi.name = "b"}) {
  affine.for %r = 0 to 12 {
    affine.for %e = 0 to 5 {
      %i = affine.load %k[%r * 5 + %e] : memref<60xi32>
      %p = arith.index_cast %i : i32 to index
      %v = memref.load %a[%p] : memref<23xf32>
      %s = affine.load %b[%r] : memref<12xf32>
      %t = arith.addf %s, %v : f32
      affine.store %t, %b[%r] : memref<12xf32>
    }
  }
  return
}

func.func @made(%a: memref<23xf32> {baechi.name = "a"},
                %k: memref<60xi32> {baechi.name = "k"},
                %b: memref<60xf32> {baechi.name = "b"}) {
  %c3 = arith.constant 3 : i32
  %own = memref.alloc() : memref<60xi32>
  affine.for %n = 0 to 60 {
    %i = affine.load %k[%n] : memref<60xi32>
    %j = arith.addi %i, %c3 : i32
    affine.store %j, %own[%n] : memref<60xi32>
  }
  affine.for %n = 0 to 60 {
    %i = affine.load %own[%n] : memref<60xi32>
    %j = arith.subi %i, %c3 : i32
    %p = arith.index_cast %j : i32 to index
    %v = memref.load %a[%p] : memref<23xf32>
    affine.store %v, %b[%n] : memref<60xf32>
  }
  return
}

// Not in blocks: a serial loop on one device.
func.func @serial(%a: memref<23xf32> {baechi.name = "a"},
                  %k: memref<60xi32> {baechi.name = "k"},
                  %b: memref<60xf32> {baechi.name = "b"}) {
  affine.for %n = 1 to 60 {
    %i = affine.load %k[%n] : memref<60xi32>
    %p = arith.index_cast %i : i32 to index
    %v = memref.load %a[%p] : memref<23xf32>
    %s = affine.load %b[%n - 1] : memref<60xf32>
    %t = arith.addf %s, %v : f32
    affine.store %t, %b[%n] : memref<60xf32>
  }
  return
}

// Keys have a range of their own.
func.func @declared(%a: memref<23xf32> {baechi.name = "a"},
                    %k: memref<60xi32> {baechi.name = "k"}) {
  baechi.foreach unordered (%i = %k : memref<60xi32> in 2 to 20) arrays(%in = %a : memref<23xf32>) {
    %v = memref.load %in[%i] : memref<23xf32>
    %w = arith.addf %v, %v : f32
    memref.store %w, %in[%i] : memref<23xf32>
    baechi.yield
  }
  return
}
"""
IN_BLOCKS = ["--machine=host:2", "--loops=unordered+serial"]
ON_ONE = ["--machine=host:1", "--loops=ordered+serial", "--workers=1"]
READS = "entry {n} reads position {position} of dimension 0 of 'a', which has 0 to 22"
PLACES = {
    "keys": "entry {n} has key {position} in 'k', whose keys are from 0 up to 23",
    "branch": READS,
    "rows": READS.replace("{n}", "({row}, {column})"),
    "made": READS,
    "serial": READS,
    "declared": "entry {n} has key {position} in 'k', whose keys are from 2 up to 20",
}
RANDOM = np.random.default_rng(0)
A = RANDOM.normal(size=23).astype(np.float32)
INSIDE = RANDOM.integers(2, 20, 60).astype(np.int32)


def run(path, step, k, *options):
    """The outputs of one step, or the errors that it was refused with."""
    (path / "model.mlir").write_text(MODEL)
    command = [tools.find("baechi-run"), str(path / "model.mlir"), f"--step={step}", "--steps=1"]
    command += ["--costs=roofline", "--budget=0", f"--outputs={path / 'out.npz'}", *options]
    if k is not None:
        arrays = {"a": A, "k": k}
        if step != "declared":
            arrays["b"] = np.zeros(12 if step == "rows" else 60, np.float32)
        np.savez(path / "in.npz", **arrays)
        command.append(f"--inputs={path / 'in.npz'}")
    done = subprocess.run(command, capture_output=True, text=True)
    errors = [line for line in done.stderr.splitlines() if "error:" in line]
    assert done.returncode == bool(errors), done
    if errors:
        return errors
    with np.load(path / "out.npz") as outputs:
        return dict(outputs)


def expected(step, k):
    """What NumPy computes."""
    if step == "declared":
        made = A.copy()
        for i in k:
            made[i] += made[i]
        return made
    read = np.where(k < 0, np.float32(0), A[np.maximum(k, 0)])
    if step == "serial":
        read[0] = 0  # which the loop does not write
        for n in range(1, 60):
            read[n] += read[n - 1]
    if step != "rows":
        return read
    made = np.zeros(12, np.float32)
    for entry, value in enumerate(read):
        made[entry // 5] += value
    return made


@pytest.mark.parametrize("options", [IN_BLOCKS, ON_ONE], ids=["blocks", "one"])
@pytest.mark.parametrize("step", list(PLACES))
def test_outside_is_refused(step, options, tmp_path):
    outputs = run(tmp_path, step, INSIDE, *options)
    assert list(outputs) == ["out0"]
    np.testing.assert_array_equal(outputs["out0"], expected(step, INSIDE))
    for position in (-3, 23, 1_000_000):
        k = INSIDE.copy()
        k[[41, 50]] = position
        found = run(tmp_path, step, k, *options)
        if step == "branch" and position < 0:
            np.testing.assert_array_equal(found["out0"], expected(step, k))
            continue
        assert len(found) == 1
        assert PLACES[step].format(n=41, row=8, column=1, position=position) in found[0]


def test_values_of_its_own(tmp_path):
    """Zeros, which integers without a value are, are refused as any others are."""
    (error,) = run(tmp_path, "declared", None, *ON_ONE)
    assert "entry 0 has key 0 in 'k', whose keys are from 2 up to 20" in error
