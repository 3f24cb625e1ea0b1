# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The compiler's programs: where they are, and how they are called."""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig
from typing import NoReturn

from baechi import temporary


class CompileError(RuntimeError):
    """A tool refused its input; the message is the tool's own."""


def find(name: str) -> pathlib.Path:
    """A program in BAECHI_TOOLS where that is set, else in the installed package, in this checkout's build, or on
    the PATH."""
    if asked := os.environ.get("BAECHI_TOOLS"):
        if (file := pathlib.Path(asked) / name).exists():
            return file
        reason = f"there is no {name} in it" if os.path.isdir(asked) else "there is no such folder"
        raise FileNotFoundError(
            f"BAECHI_TOOLS is {asked!r}, but {reason}: name the folder that holds baechi-run, or "
            "unset the variable"
        )
    here = pathlib.Path(__file__).resolve()
    package, checkout = here.parent / "bin", here.parents[2] / "build" / "release" / "bin"
    for folder in (package, checkout):
        if (file := folder / name).exists():
            return file
    if found := shutil.which(name, path=_path_without_ours()):
        return pathlib.Path(found)
    raise FileNotFoundError(
        f"{name} is neither in {package}, nor in {checkout}, nor on the PATH: build it with "
        "scripts/build release, or set BAECHI_TOOLS to the folder that holds it"
    )


def _path_without_ours() -> str:
    """The PATH without the folder of this Python's commands: those of the same names there
    are `main`."""
    ours = os.path.realpath(sysconfig.get_path("scripts"))
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return os.pathsep.join(each for each in folders if os.path.realpath(each) != ours)


def main() -> NoReturn:
    """The commands `baechi-run` and so on of an installed package: becomes the program."""
    name = pathlib.Path(sys.argv[0]).name
    try:
        program = str(find(name))
        os.execv(program, [name, *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"{name}: error: {error}")


# Other messages of the tools, and the marks below lines of source.
_ASIDE = re.compile(r"^(\S+: )?(warning|note|remark):|^\s*\^|^$")


def run(
    name: str, *arguments: object, hidden: pathlib.Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Runs a tool to its end. Raises CompileError with what it said, without its name
    and the places in `hidden`, a file that the user does not see."""
    command = [str(word) for word in (find(name), *arguments)]
    with temporary.folder("baechi-tool-") as folder:
        # What a tool that is stopped leaves behind goes with the folder.
        environment = os.environ | {"TMPDIR": str(folder)}
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        place = re.compile(rf"^(?:{name}|<unknown>|{re.escape(str(hidden))})(?::\d+)*: ")
        lines = [place.sub("", line) for line in done.stderr.splitlines()]
        errors = [i for i, line in enumerate(lines) if "error:" in line]
        # What belongs to an error stands below it: what is missing, and who needs it.
        told = [line for line in lines[errors[0] :] if not _ASIDE.match(line)] if errors else []
        raise CompileError("\n".join(told) or f"{name} failed:\n{done.stderr[-2000:]}")
    return done
