# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the compiler does with modules, within this process or, where that cannot be, by its
programs in processes of their own."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import functools
import importlib
import importlib.util
import os
import pathlib
import re
import sys
import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

from baechi.common import progress, temporary, users
from baechi.common.bytecode import Bytecode, text_of
from baechi.compiling import caches, tools
from baechi.compiling.options import CompileOptions
from baechi.compiling.tools import CompileError, Message

_WAYS = ("in-process", "subprocess")

# What messages call the module, which no user sees.
_MODEL = "model.mlir"

# The compiler's phases, by their first words, as `progress` calls them.
_PHASES = {
    "forming": "form",
    "comparing": "compare",
    "fitting": "fit",
    "compiling": "compile",
    "placing": "place",
    "lowering": "lower",
    "linking": "link",
}
_PROGRESS = re.compile(r"baechi-run: progress: (\w[^\n/]*?)(?: (\d+)/(\d+))?\n")


def emit(
    module: str | Bytecode,
    file: pathlib.Path,
    options: CompileOptions,
    inputs: pathlib.Path | None = None,
) -> list[Message]:
    """Writes the step library of a module; gives what the compiler said beside.

    inputs: an archive of arguments that costs are measured with; None: the module's own.

    BAECHI_COMPILER=subprocess compiles in a process of its own, as does a Python without the
    extension, or one whose tools (BAECHI_TOOLS) are another build's. Ctrl-C and other
    signals' exceptions end a compilation within a second.
    Raises CompileError: no placement fits; OptionError, which is a ValueError, too: the machine is
    none.
    """
    try:
        return _emit(module, file, options, inputs)
    except CompileError as error:
        # The compiler's words for a short form, or for a file.
        if str(error).startswith(("error: machine '", f"error: {options.machine}: ")):
            raise tools.OptionError(str(error), error.messages) from None
        if not caches.is_named_in(error):
            raise
        caches.give_up_for(error)
        return _emit(module, file, options, inputs)


class Transformed(NamedTuple):
    """What passes made of a module, and what they said, as `baechi-opt` writes it."""

    text: str
    said: str


def transform(
    module: str, passes: Sequence[str], form: str = "mlir", name: str = _MODEL
) -> Transformed:
    """Runs passes over a module and gives it in a form.

    passes: each as a textual pipeline has it (`step`).
    form: mlir, or what follows --baechi-to- in baechi-translate's options: graph, machine.
    name: what messages call the module; those of the default go without it.
    Raises CompileError, with what the passes said.
    """
    if not is_in_process():
        return _transform_beside(module, passes, form, name)
    done, said, wrote, text = extension().transform(module.encode(), name, pipeline(passes), form)
    if not done:
        hidden = name if name == _MODEL else None
        raise tools.error_of("baechi-opt", wrote, hidden, [Message(*each) for each in said])
    return Transformed(text, wrote)


def step(name: str, /, **options: object) -> str:
    """A pass with its options, as a textual pipeline has it. Those that are None or empty
    are left out, lists become words with commas."""
    given = {
        option.replace("_", "-"): ",".join(value) if isinstance(value, list) else value
        for option, value in options.items()
        if value not in (None, [])
    }
    # Braces keep values with spaces together, and are taken off.
    return name + ("{" + " ".join(f"{k}={{{v}}}" for k, v in given.items()) + "}") * bool(given)


def pipeline(passes: Sequence[str]) -> str:
    """Passes over a module as `--pass-pipeline` takes them."""
    return f"builtin.module({','.join(passes)})"


def _transform_beside(module: str, passes: Sequence[str], form: str, name: str) -> Transformed:
    with temporary.folder("baechi-opt-") as folder:
        model, made = folder / _MODEL, folder / "made.mlir"
        model.write_text(module)
        flags = [f"--pass-pipeline={pipeline(passes)}", "--mlir-print-debuginfo", "-o", made]
        hidden = model if name == _MODEL else None
        try:
            done = tools.run("baechi-opt", model, *flags, hidden=hidden)
            text = made.read_text()
            if form != "mlir":
                text = tools.run("baechi-translate", made, f"--baechi-to-{form}").stdout
        except CompileError as error:
            named = [
                each._replace(place=each.place.replace(str(model), name)) for each in error.messages
            ]
            raise CompileError(str(error).replace(str(model), name), named) from None
    return Transformed(text.replace(str(model), name), done.stderr.replace(str(model), name))


def is_in_process() -> bool:
    """Whether steps are compiled within this process."""
    way = os.environ.get("BAECHI_COMPILER", _WAYS[0])
    if way not in _WAYS:
        raise ValueError(f"BAECHI_COMPILER is {way!r}: give {' or '.join(_WAYS)}")
    tool = os.path.realpath(tools.find("baechi-run"))  # an error where there is none
    if way == "subprocess" or (module := extension()) is None:
        return False
    # Of the same build or package: BUILD/bin and BUILD/lib/python, or baechi/bin and baechi.
    root = pathlib.Path(tool).parents[1]
    return root in pathlib.Path(os.path.realpath(module.__file__)).parents


def _emit(
    module: str | Bytecode, file: pathlib.Path, options: CompileOptions, inputs: pathlib.Path | None
) -> list[Message]:
    if inputs is None and is_in_process():
        return _within(module, file, options)
    return _beside(text_of(module), file, options, inputs)


# Its symbols are nobody else's, and it looks for its own first: JAX and torch-mlir bring MLIRs of
# other versions.
_FLAGS = os.RTLD_NOW | os.RTLD_LOCAL | os.RTLD_DEEPBIND


@functools.cache
def preload() -> None:
    """Begins to load the compiler's libraries, for who will soon need them and has something else
    to do. What is wrong with them is told when they are needed."""
    if os.environ.get("BAECHI_COMPILER", _WAYS[0]) != _WAYS[0]:
        return
    found = importlib.util.find_spec("baechi._compiler")
    if found is None or found.origin is None or "baechi._compiler" in sys.modules:
        return
    file = found.origin

    def load() -> None:
        with contextlib.suppress(OSError):
            ctypes.CDLL(file, _FLAGS)  # without Python's lock

    with contextlib.suppress(RuntimeError):  # no thread
        threading.Thread(target=load, name="baechi-load").start()


@functools.cache
def extension() -> Any:
    """The compiler, apart from other MLIRs of the process; None without it."""
    flags = sys.getdlopenflags()
    sys.setdlopenflags(_FLAGS)
    try:
        module = importlib.import_module("baechi._compiler")
    except ModuleNotFoundError:  # built without
        return None
    except ImportError as error:
        users.warn(
            f"the compiler cannot be loaded into this process ({error}): each step is compiled "
            "by baechi-run in one of its own; BAECHI_COMPILER=subprocess asks for that"
        )
        return None
    finally:
        sys.setdlopenflags(flags)
    # What a signal has ended for its caller may still be at work.
    atexit.register(module.wait_for_abandoned)
    return module


def _within(module: str | Bytecode, file: pathlib.Path, options: CompileOptions) -> list[Message]:
    if isinstance(module, Bytecode) and module.is_plain:
        model, words = module.code, [f"first-values={module.first_values}"]
    else:
        model, words = text_of(module).encode(), []
    try:
        progressed = _progressed if progress.is_shown() else None
        done, said, wrote = extension().compile(
            model, _MODEL, str(file), [*words, *options.words()], progressed
        )
    except RuntimeError as error:  # no thread
        raise CompileError(str(error)) from None
    messages = [Message(*each) for each in said]
    if not done:
        raise tools.error_of("baechi-run", wrote, _MODEL, messages)
    return messages


def _beside(
    text: str, file: pathlib.Path, options: CompileOptions, inputs: pathlib.Path | None
) -> list[Message]:
    with temporary.folder("baechi-jit-") as folder:
        model = folder / _MODEL
        model.write_text(text)
        flags = ["--emit=so", f"--output={file}", *(f"--{word}" for word in options.words())]
        if inputs is not None:
            flags.append(f"--inputs={inputs}")
        if progress.is_shown():
            flags.append("--progress=lines")
        done = tools.run("baechi-run", model, *flags, hidden=model, hears=hears_progress)
    return tools.messages_of("baechi-run", done.stderr, model)


def hears_progress(line: str) -> bool:
    """Tells of a phase, if a line of a tool's that writes --progress=lines is of one."""
    found = _PROGRESS.fullmatch(line)
    if found is not None:
        _progressed(found[1], int(found[2] or 0), int(found[3] or 0))
    return found is not None


def _progressed(what: str, done: int, total: int) -> None:
    if what == "running steps":
        return  # it is compiled
    progress.phase(_PHASES.get(what.split()[0], "measure"), done, total)
