# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a program gives after each lowering.

The reference is upstream's: bufferization that copies before every write, so that it decides
nothing about aliases, linalg to scalar loops, and the CPU runner."""

from __future__ import annotations

import dataclasses
import functools
import math
import pathlib
import subprocess
from collections.abc import Callable

import numpy as np

from baechi.compiling import tools
from lowerings.program import Program

_LLVM = pathlib.Path("/usr/lib/llvm-22")
_LIBRARIES = ("libmlir_runner_utils.so", "libmlir_c_runner_utils.so")
_PASSES = [
    "--one-shot-bufferize=bufferize-function-boundaries "
    "allow-return-allocs-from-loops function-boundary-type-conversion=identity-layout-map",
    "--convert-linalg-to-loops",
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
    "--convert-ub-to-llvm",
    "--reconcile-unrealized-casts",
]
_DTYPES = {"f32": np.float32, "f64": np.float64, "i32": np.int32}
_PRINTERS = {"f32": "printMemrefF32", "f64": "printMemrefF64", "i32": "printMemrefI32"}
_SECONDS = 120
# A cut that was asked for and cannot be, which is no error of a lowering.
_NOT_CUT = "asks to be cut along dimension"


class Refused(Exception):
    """A lowering ended with an error, or did not end."""


@dataclasses.dataclass(frozen=True)
class Finding:
    stage: str
    what: str


def available() -> str:
    """Why there is no reference here; empty if there is."""
    needed = [_LLVM / "bin/mlir-opt", _LLVM / "bin/mlir-runner"]
    needed += [_LLVM / "lib" / name for name in _LIBRARIES]
    missing = [str(path) for path in needed if not path.exists()]
    return f"no {missing[0]}; scripts/install-packages installs it" if missing else ""


def inputs(program: Program, seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    values = []
    for v in program.body.arguments:
        if v.dtype == "i32":
            values.append(rng.integers(-3, 4, v.shape).astype(np.int32))
        else:
            # Few digits, so that text holds them exactly.
            values.append((rng.integers(-16, 17, v.shape) / 8).astype(_DTYPES[v.dtype]))
    return [np.asarray(value) for value in values]


def _tool(words: list[object], text: str | None = None) -> str:
    try:
        done = subprocess.run(
            [str(word) for word in words],
            input=text,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
        )
    except subprocess.TimeoutExpired as error:
        raise Refused(f"{words[0]} takes more than {_SECONDS} s") from error
    if done.returncode != 0:
        said = done.stderr.strip().splitlines()
        why = f"ends with {done.returncode}" if done.returncode < 0 else ""
        raise Refused(f"{pathlib.Path(str(words[0])).name} {why}: {' '.join(said[:2])}")
    return done.stdout


def _main(program: Program, values: list[np.ndarray]) -> str:
    """A function that calls the step and prints its results."""
    lines = ["func.func @main() {"]
    for i, (v, value) in enumerate(zip(program.body.arguments, values, strict=True)):
        data = str(value.tolist()) if value.size else ""
        lines.append(f"%x{i} = arith.constant dense<{data}> : {v.type}")
    results = program.body.yields
    given = ", ".join(f"%x{i}" for i in range(len(values)))
    types = ", ".join(v.type for v in program.body.arguments)
    made = ", ".join(v.type for v in results)
    lines.append(f"%r:{len(results)} = call @step({given}) : ({types}) -> ({made})")
    for i, v in enumerate(results):
        buffer = v.type.replace("tensor", "memref", 1)
        lines += [
            f"%b{i} = bufferization.to_buffer %r#{i} : {v.type} to {buffer}",
            f"%u{i} = memref.cast %b{i} : {buffer} to memref<*x{v.dtype}>",
            f"call @{_PRINTERS[v.dtype]}(%u{i}) : (memref<*x{v.dtype}>) -> ()",
        ]
    lines += ["return", "}"]
    for dtype, name in _PRINTERS.items():
        lines.append(
            f"func.func private @{name}(memref<*x{dtype}>) attributes {{llvm.emit_c_interface}}"
        )
    return "\n".join(lines)


def _interpret(program: Program, functions: str, values: list[np.ndarray]) -> list[np.ndarray]:
    """What upstream's loops give for `functions`, which have @step."""
    code = _tool([_LLVM / "bin/mlir-opt", *_PASSES], functions + "\n" + _main(program, values))
    shared = ",".join(str(_LLVM / "lib" / name) for name in _LIBRARIES)
    words = [_LLVM / "bin/mlir-runner", "-e", "main", "--entry-point-result=void", "-O0"]
    printed = _tool([*words, f"--shared-libs={shared}"], code)
    blocks = printed.split("Unranked Memref")[1:]
    found = []
    for block, v in zip(blocks, program.body.yields, strict=True):
        data = block.split("data =", 1)[1].replace("[", " ").replace("]", " ")
        numbers = [float(word) for word in data.replace(",", " ").split()]
        # Upstream prints a first element where there is none, too.
        found.append(np.array(numbers[: math.prod(v.shape)]).reshape(v.shape))
    return found


def _formed(program: Program, options: str) -> str:
    """The functions of the step after --baechi-form-kernels."""
    text = _tool([tools.find("baechi-opt"), f"--baechi-form-kernels{options}"], program.text(False))
    start, end = text.index("module {") + len("module {"), text.rindex("}")
    return text[: start - len("module {")] + text[start:end]


def run(
    program: Program, values: list[np.ndarray], folder: pathlib.Path, options: list[str]
) -> list[np.ndarray]:
    model, given, made = (folder / name for name in ("m.mlir", "in.npz", "out.npz"))
    model.write_text(program.text(False))
    np.savez(given, **{f"arg{i}": value for i, value in enumerate(values)})
    _tool(
        [tools.find("baechi-run"), model, f"--inputs={given}", f"--outputs={made}"]
        + ["--steps=1", "--costs=roofline", "--budget=0", "--check-single=false", *options]
    )
    with np.load(made) as arrays:
        return [arrays[f"out{i}"] for i in range(len(arrays.files))]


def differ(found: list[np.ndarray], expected: list[np.ndarray]) -> str:
    for i, (a, e) in enumerate(zip(found, expected, strict=True)):
        # Six digits are printed.
        if a.shape != e.shape or not np.allclose(a, e, rtol=2e-4, atol=2e-4, equal_nan=True):
            return f"result {i} is {a.ravel()[:8]}, not {e.ravel()[:8]}"
    return ""


def _wish(program: Program, seed: int, pieces: int) -> str:
    """A cut of one argument into another number of pieces than the rest is cut into, so that
    the two meet; empty where none has rows enough."""
    number = 2 if pieces != 2 else 3
    found = [
        i
        for i, v in enumerate(program.body.arguments)
        if v.shape and v.shape[0] >= number and v.size
    ]
    return f"--split=arg{found[seed % len(found)]}=0:{number}" if found else ""


def judge(program: Program, seed: int, folder: pathlib.Path) -> Finding | None:
    """The first lowering that gives something else than upstream's, or nothing."""
    values = inputs(program, seed)
    expected = _interpret(program, program.text(True), values)
    stages: dict[str, Callable[[], list[np.ndarray]]] = {
        "form-kernels": lambda: _interpret(program, _formed(program, ""), values),
        "form-kernels without row loops": lambda: _interpret(
            program, _formed(program, "=row-loops=false"), values
        ),
        "host kernels": lambda: run(program, values, folder, ["--machine=host:1"]),
        "several devices": lambda: run(
            program, values, folder, ["--machine=host:2", "--placer=round-robin"]
        ),
    }
    pieces = 2 + seed % 3
    for devices in (1, 2, 4):
        options = [f"--machine=host:{devices}", f"--splits=forced:{pieces}"]
        if devices > 1:
            options.append("--placer=round-robin")
        stages[f"pieces on {devices}"] = functools.partial(run, program, values, folder, options)
    if wish := _wish(program, seed, pieces):
        options = ["--machine=host:2", "--placer=round-robin", f"--splits=forced:{pieces}", wish]
        stages["pieces of two numbers"] = functools.partial(run, program, values, folder, options)
    for name, stage in stages.items():
        try:
            wrong = differ(stage(), expected)
        except Refused as refusal:
            wrong = "" if _NOT_CUT in str(refusal) else str(refusal)
        if wrong:
            return Finding(name, wrong)
    return None
