# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs torch-mlir's passes in a process of its own.

On some operations that it does not know torch-mlir ends its process instead of
reporting an error, and that must not be the user's. The process reads a JSON
object a line from its standard input, `{"module": text, "pipelines": [...]}`,
and answers each with a line, `{"text": ..., "problems": [...]}`; it ends at an empty
line, as a fork of the user's may keep its input open. It may be started before there
is anything to lower: it needs a while to begin.
"""

from __future__ import annotations

import atexit
import contextlib
import dataclasses
import json
import os
import pathlib
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence

FROM_TORCH = (
    "builtin.module(func.func(torch-match-quantized-custom-ops),"
    "torchdynamo-export-to-torch-backend-pipeline)",
    "builtin.module(torch-backend-to-linalg-on-tensors-backend-pipeline)",
)
_CLEAN_UP = "builtin.module(canonicalize)"
# What a module may hold; all else is an operation without a lowering.
_DIALECTS = {"builtin", "func", "linalg", "tensor", "arith", "math", "scf"}


@dataclasses.dataclass(frozen=True)
class Lowered:
    text: str
    problems: list[str]  # none: the module is all linalg and its like


def lower(modules: Sequence[str], pipelines: Sequence[str] = FROM_TORCH) -> list[Lowered]:
    """Lowers modules of torch-mlir's dialect, each by itself."""
    results: list[Lowered] = []
    while len(results) < len(modules):
        waiting = modules[len(results) :]
        lines = [json.dumps({"module": text, "pipelines": list(pipelines)}) for text in waiting]
        with _taken() or _started() as process:
            try:
                answers, told = process.communicate("\n".join(lines) + "\n\n")
            except BaseException:
                process.kill()
                raise
        results += [Lowered(**json.loads(line)) for line in answers.splitlines()]
        if len(results) < len(modules):
            # The process ended at this one: a signal's first line, an exception's last.
            said = told.strip().splitlines() or [f"signal {-process.returncode}"]
            ended = said[-1 if said[0].startswith("Traceback") else 0]
            results.append(Lowered("", [f"torch-mlir ended with: {ended}"]))
    return results


# The process that waits for the next `lower`, and whose child it is: not that of a fork.
_waiting: tuple[subprocess.Popen[str], int] | None = None
_turn = threading.Lock()


def prepare() -> None:
    """Begins to start the process of the next `lower`, for who has something else to do
    before it. It ends with this one."""
    global _waiting
    process = _taken() or _started()
    with _turn:
        if _waiting is None:
            _waiting = process, os.getpid()
            return
    _end(process)  # another thread's is there


def drop() -> None:
    """There is nothing to lower."""
    if (process := _taken()) is not None:
        _end(process)


atexit.register(drop)


def _end(process: subprocess.Popen[str]) -> None:
    with process:
        process.kill()


def _taken() -> subprocess.Popen[str] | None:
    """The process that waits, if it is there and lives."""
    global _waiting
    with _turn:
        waiting, _waiting = _waiting, None
    if waiting is None or waiting[1] != os.getpid():
        return None
    if waiting[0].poll() is None:
        return waiting[0]
    _end(waiting[0])
    return None


def _started() -> subprocess.Popen[str]:
    root = pathlib.Path(__file__).resolve().parents[3]
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", _PROGRAM, str(root)]
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


_PROGRAM = (
    "import sys; sys.path.append(sys.argv[1]); "
    "from baechi.importer.torch.passes import serve; serve(sys.stdin, sys.stdout)"
)


# Of all memory, what the process may take: on some operations the passes never end but grow.
_MEMORY_SHARE = 0.5


def serve(requests, answers) -> None:
    """The process: answers every line of `requests`."""
    # Ctrl-C is for the process that waits for this one, and that ends it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    limit = int(memory * _MEMORY_SHARE)
    resource.setrlimit(resource.RLIMIT_DATA, (limit if most < 0 else min(limit, most), most))
    _load()
    for line in requests:
        if not line.strip():
            break
        request = json.loads(line)
        answer = _run(request["module"], request["pipelines"])
        print(json.dumps(dataclasses.asdict(answer)), file=answers, flush=True)


def _load() -> None:
    """What takes a while, before anything is asked. What is wrong with it is told then."""
    with contextlib.suppress(ImportError, MemoryError):
        import baechi.importer.common.module
        import baechi.importer.torch.rewrites  # noqa: F401


def _run(text: str, pipelines: Sequence[str]) -> Lowered:
    from torch_mlir import ir
    from torch_mlir.dialects import torch as torch_dialect
    from torch_mlir.passmanager import PassManager

    from baechi.importer.common.module import walk
    from baechi.importer.torch import rewrites

    context = ir.Context()
    torch_dialect.register_dialect(context)
    problems: list[str] = []

    def check(operation):
        if operation.name.split(".")[0] not in _DIALECTS:
            problems.append(f"{location_name(ir, operation.location)}: {operation.name} is left")

    with context, ir.Location.unknown():
        try:
            module = ir.Module.parse(text)
            for pipeline in pipelines:
                PassManager.parse(pipeline).run(module.operation)
            rewrites.rewrite(module)
            PassManager.parse(_CLEAN_UP).run(module.operation)
        except (ir.MLIRError, RuntimeError) as error:
            return Lowered("", [str(error)])
        walk(ir, module, check)
        return Lowered(module.operation.get_asm(enable_debug_info=True), problems)


def location_name(ir, location) -> str:
    """The name that an operation's location carries, empty where there is none."""
    if isinstance(location, ir.NameLoc):
        return location.name_str
    if isinstance(location, ir.CallSiteLoc):
        return location_name(ir, location.callee) or location_name(ir, location.caller)
    if isinstance(location, ir.FusedLoc):
        return next(filter(None, (location_name(ir, part) for part in location.locations)), "")
    return ""
