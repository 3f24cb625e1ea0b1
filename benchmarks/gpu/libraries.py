#!/usr/bin/env python3
# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Says which Python this is and what it has, which of NVIDIA's libraries the loader finds, and
which lie in Python's and the toolkit's folders, where the runtime looks as well
(runtime/core/FindLibrary.cpp)."""

import ctypes
import importlib.metadata
import os
import pathlib
import sys

NAMES = [
    "libcuda.so.1",
    "libcublasLt.so.13",
    "libcublasLt.so.12",
    "libnccl.so.2",
    "libcudnn.so.9",
]


def folders():
    for site in sys.path:
        yield from sorted(pathlib.Path(site).glob("nvidia/*/lib"))
    for variable in ("CUDA_HOME", "CUDA_PATH", "CUDA_ROOT"):
        if os.environ.get(variable):
            yield pathlib.Path(os.environ[variable]) / "lib64"
    yield pathlib.Path("/usr/local/cuda/lib64")


def where(name):
    try:
        ctypes.CDLL(name)
        return "by the loader"
    except OSError:
        pass
    found = [str(folder) for folder in folders() if (folder / name).exists()]
    return found[0] if found else "none"


def version(module):
    try:
        return importlib.metadata.version(module)
    except importlib.metadata.PackageNotFoundError:
        return "none"


print(f"{'python':18} {sys.version.split()[0]} in {sys.prefix}")
for module in ("numpy", "ml_dtypes", "torch", "jax"):
    print(f"{module:18} {version(module)}")
for name in NAMES:
    print(f"{name:18} {where(name)}")
