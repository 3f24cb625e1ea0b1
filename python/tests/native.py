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


def missing_tools() -> list[str]:
    return [tool for tool in TOOLS if shutil.which(tool) is None]


def compile_step(module: pathlib.Path, folder: pathlib.Path) -> ctypes.CDLL:
    """Compiles the module's @step to a shared object in `folder`."""
    source, lowered, ir, library = (
        folder / (module.stem + end) for end in (".mlir", ".llvm.mlir", ".ll", ".so")
    )
    # Every argument has an initial value; none may be overwritten.
    kept = "bufferization.writable = false, baechi.init = "
    source.write_text(module.read_text().replace("baechi.init = ", kept))
    _run("mlir-opt-22", source, *_BUFFERIZE, *_LOWER, "-o", lowered)
    _run("mlir-translate-22", "--mlir-to-llvmir", lowered, "-o", ir)
    # Symbolic: glibc exports a function `step` of its own (of <regexp.h>).
    flags = ["-O1", "-Wno-override-module", "-shared", "-fPIC", "-Wl,-Bsymbolic"]
    # The runner utilities hold MLIR's copy of strided buffers.
    folder = _run("llvm-config-22", "--libdir").strip()
    libraries = ["-lm", f"-L{folder}", f"-Wl,-rpath,{folder}", "-lmlir_c_runner_utils"]
    _run("clang-22", *flags, ir, "-o", library, *libraries)
    return ctypes.CDLL(str(library))


def call_step(library: ctypes.CDLL, inputs: list[np.ndarray], outputs: list[np.ndarray]):
    """Runs @step once; it fills `outputs`."""
    descriptors = [_descriptor(array) for array in [*inputs, *outputs]]
    library._mlir_ciface_step(*map(ctypes.byref, descriptors))


def _run(*command) -> str:
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
