# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles an imported module with LLVM's own tools and calls it.

Independent of Baechi's compiler: mlir-opt, mlir-translate and clang only.
"""

from __future__ import annotations

import ctypes
import pathlib
import shutil
import subprocess

import numpy as np
import pytest

TOOLS = ("mlir-opt-22", "mlir-translate-22", "clang-22", "llvm-config-22")

_BUFFERIZE = [
    "--eliminate-empty-tensors",
    "--one-shot-bufferize=bufferize-function-boundaries "
    "function-boundary-type-conversion=identity-layout-map allow-return-allocs-from-loops",
    "--buffer-results-to-out-params=hoist-static-allocs modify-public-functions",
    "--canonicalize",
    "--cse",
]
_LOWER = [
    "--buffer-deallocation-pipeline",
    "--convert-bufferization-to-memref",
    "--convert-linalg-to-loops",
    "--llvm-request-c-wrappers",
    "--expand-strided-metadata",
    "--lower-affine",
    "--convert-scf-to-cf",
    "--convert-math-to-llvm",
    "--convert-math-to-libm",
    "--convert-arith-to-llvm",
    "--convert-index-to-llvm",
    "--finalize-memref-to-llvm",
    "--convert-func-to-llvm",
    "--convert-cf-to-llvm",
    "--reconcile-unrealized-casts",
]


_MISSING = [tool for tool in TOOLS if shutil.which(tool) is None]
needs_tools = pytest.mark.skipif(bool(_MISSING), reason=f"not installed: {', '.join(_MISSING)}")


def compile_step(text: str, folder: pathlib.Path):
    """Compiles a module's @step in `folder`. Returns a function of the inputs
    and of arrays like the outputs, which returns the outputs."""
    source, lowered, ir, library = (
        folder / name for name in ("step.mlir", "step.llvm.mlir", "step.ll", "step.so")
    )
    # Every argument has an initial value; none may be overwritten.
    kept = "bufferization.writable = false, baechi.init = "
    source.write_text(text.replace("baechi.init = ", kept))
    run("mlir-opt-22", source, *_BUFFERIZE, *_LOWER, "-o", lowered)
    run("mlir-translate-22", "--mlir-to-llvmir", lowered, "-o", ir)
    # Symbolic: glibc exports a function `step` of its own (of <regexp.h>).
    flags = ["-O1", "-Wno-override-module", "-shared", "-fPIC", "-Wl,-Bsymbolic"]
    # The runner utilities hold MLIR's copy of strided buffers.
    path = run("llvm-config-22", "--libdir").strip()
    libraries = ["-lm", f"-L{path}", f"-Wl,-rpath,{path}", "-lmlir_c_runner_utils"]
    run("clang-22", *flags, ir, "-o", library, *libraries)
    entry = ctypes.CDLL(str(library))._mlir_ciface_step

    def call(inputs, like):
        outputs = [np.zeros_like(value) for value in like]
        descriptors = [_descriptor(np.asarray(array)) for array in [*inputs, *outputs]]
        entry(*map(ctypes.byref, descriptors))
        return outputs

    return call


def assert_close(actual, expected, name="result", tolerance=1e-4, floor=1e-6):
    """Within `tolerance` of the tensor's largest element, or of `floor` where
    that is larger: the scale of what a small tensor is a difference of."""
    expected = np.asarray(expected, np.float64)
    scale = max(float(np.abs(expected).max(initial=0.0)), floor)
    error = float(np.abs(np.asarray(actual, np.float64) - expected).max(initial=0.0))
    assert error <= tolerance * scale, f"{name}: error {error} at scale {scale}"


def run(*command) -> str:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    assert done.returncode == 0, f"{command[0]} failed:\n{done.stderr[:2000]}"
    return done.stdout


def _descriptor(array: np.ndarray) -> ctypes.Structure:
    """MLIR's memref descriptor of a contiguous array."""
    assert array.flags.c_contiguous
    fields = [
        ("allocated", ctypes.c_void_p),
        ("aligned", ctypes.c_void_p),
        ("offset", ctypes.c_int64),
    ]
    if array.ndim:
        extents = ctypes.c_int64 * array.ndim
        fields += [("sizes", extents), ("strides", extents)]
    kind = type("MemRef", (ctypes.Structure,), {"_fields_": fields})
    descriptor = kind(array.ctypes.data, array.ctypes.data, 0)
    for i in range(array.ndim):
        descriptor.sizes[i] = array.shape[i]
        descriptor.strides[i] = array.strides[i] // array.itemsize
    return descriptor
