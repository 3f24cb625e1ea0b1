# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs the GPU code of kernels on the host and notes each byte that it touches."""

from __future__ import annotations

import functools
import os
import pathlib
import re
import shutil
import subprocess

from accesses.outline import host_functions
from baechi.compiling import tools

_ROOT = pathlib.Path(__file__).resolve().parents[2]
_LLVM = pathlib.Path("/usr/lib/llvm-22/bin")
_NEEDED = ("mlir-opt", "mlir-translate", "opt", "clang++")
_SECONDS = 600
_TO_LLVM = [
    "--expand-strided-metadata",
    "--lower-affine",
    "--convert-scf-to-cf",
    "--convert-math-to-llvm",
    "--convert-math-to-libm",
    "--convert-math-to-funcs",
    "--arith-expand=include-bf16=true",
    "--convert-arith-to-llvm",
    "--finalize-memref-to-llvm",
    "--convert-func-to-llvm=use-bare-ptr-memref-call-conv=true",
    "--convert-cf-to-llvm",
    "--convert-index-to-llvm",
    "--reconcile-unrealized-casts",
]


class Refused(Exception):
    """A kernel could not be lowered or run."""


def available() -> str:
    """Why nothing can be watched here; empty if it can."""
    for name in _NEEDED:
        if not (_LLVM / name).exists():
            return f"no {_LLVM / name}; scripts/install-packages installs it"
    roots = [os.environ.get(name) for name in ("CUDA_HOME", "CUDA_PATH", "CUDA_ROOT")]
    folders = [pathlib.Path(root) / "bin" for root in [*roots, "/usr/local/cuda"] if root]
    if not shutil.which("ptxas") and not any((folder / "ptxas").exists() for folder in folders):
        return "no ptxas: export CUDA_HOME=$(scripts/cuda-toolkit)"
    return ""


def _tool(words: list[object], text: str | None = None) -> str:
    done = subprocess.run(
        list(map(str, words)), input=text, capture_output=True, text=True, timeout=_SECONDS
    )
    if done.returncode != 0:
        said = " ".join(done.stderr.strip().splitlines()[:3])
        raise Refused(f"{pathlib.Path(str(words[0])).name} ends with {done.returncode}: {said}")
    return done.stdout


def kernels_of(formed: str) -> str:
    """The kernels of a module after --baechi-form-kernels that GPUs may have, without what calls
    them."""
    kept: list[str] = []
    lines = formed.split("\n")
    at = 0
    while at < len(lines):
        if not (head := re.match(r"(\s*)func\.func ", lines[at])):
            at += 1
            continue
        end = at
        while not lines[end].startswith(head[1] + "}"):
            end += 1
        body = lines[at : end + 1]
        # Tables of constants have no GPU code.
        if "baechi.kernel" in body[0] and not any("arith.constant dense" in line for line in body):
            kept += body
        at = end + 1
    maps = [line for line in lines if line.startswith("#")]
    return "\n".join([*maps, *kept, ""])


def _kernel_code(kernels: str, folder: pathlib.Path) -> pathlib.Path:
    """Code of one thread of each launch, which tells what it touches."""
    launches = _tool(
        [tools.find("baechi-opt"), "--baechi-lower-cuda-kernels=stage=launches"], kernels
    )
    outlined = _tool([_LLVM / "mlir-opt", "--gpu-kernel-outlining"], launches)
    lowered = _tool([_LLVM / "mlir-opt", *_TO_LLVM], host_functions(outlined))
    plain = _tool([_LLVM / "mlir-translate", "--mlir-to-llvmir"], lowered)
    marked = re.sub(r"^(define void @K_.*) \{$", r"\1 sanitize_thread {", plain, flags=re.M)
    file = folder / "kernels.ll"
    file.write_text(_tool([_LLVM / "opt", "-passes=function(tsan)", "-S"], marked))
    return file


def _host_code(kernels: str, folder: pathlib.Path) -> tuple[pathlib.Path, dict[str, int]]:
    """The host functions of the kernels, which launch them, and how many pointers each takes."""
    code = _tool([tools.find("baechi-opt"), "--baechi-lower-cuda-kernels=chips=sm_90"], kernels)
    functions = re.findall(r'llvm\.func (?:private )?@"?([^"(\s]+__cuda)"?\(([^)]*)\)', code)
    code = code.replace("llvm.func private", "llvm.func")
    # What only Baechi's own dialect reads.
    code = re.sub(r" attributes \{[^}]*\} \{\n", " {\n", code)
    file = folder / "host.ll"
    file.write_text(_tool([_LLVM / "mlir-translate", "--mlir-to-llvmir"], code))
    return file, {name: given.count("!llvm.ptr") for name, given in functions}


@functools.cache
def _watcher(folder: pathlib.Path) -> pathlib.Path:
    program = folder / "watch"
    sources = [
        _ROOT / "fuzz/accesses/Watch.cpp",
        _ROOT / "runtime/drivers/cuda/CudaAccesses.cpp",
    ]
    includes = [f"-I{_ROOT / name}" for name in ("include", "runtime")]
    words = [_LLVM / "clang++", "-std=c++20", "-O2", "-rdynamic", *includes, *sources]
    _tool([*words, "-ldl", "-o", program])
    return program


# What the compiler's own library has for bfloat16, which not all have.
_ROUNDING = """
float __truncsfbf2(float x) { return x; }
float __truncdfbf2(double x) { return (float)x; }
"""


def watch(kernels: str, folder: pathlib.Path) -> str:
    """What launches of the kernels touch and do not declare, a line each that begins with BAD,
    and how many there were in a last line. Raises Refused."""
    kernel_code, (host_code, pointers) = _kernel_code(kernels, folder), _host_code(kernels, folder)
    rounding, library = folder / "rounding.c", folder / "kernels.so"
    rounding.write_text(_ROUNDING)
    made = [_LLVM / "clang", "-w", "-O1", "-fPIC", "-shared", kernel_code, host_code, rounding]
    _tool([*made, "-lm", "-o", library])
    functions = [f"{name}={count}" for name, count in pointers.items()]
    said = subprocess.run(
        [str(_watcher(folder)), str(library), *functions],
        capture_output=True,
        text=True,
        timeout=_SECONDS,
    )
    if said.returncode not in (0, 1):
        raise Refused(f"the kernels' code ends with {said.returncode}: {said.stderr[:500]}")
    return said.stdout
