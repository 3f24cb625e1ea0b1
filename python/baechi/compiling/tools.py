# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The compiler's programs: where they are, and how they are called."""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Sequence
from typing import NamedTuple, NoReturn

from baechi.common import temporary


class Message(NamedTuple):
    """One message of the compiler."""

    severity: str  # error, warning, remark or note, which belongs to what is before it
    place: str  # file:line:column or a name; empty where there is none
    text: str


class CompileError(RuntimeError):
    """The compiler refused its input; the text is its own.

    messages: the same, each by itself, with what else it said.
    """

    def __init__(self, text: str, messages: Sequence[Message] = ()):
        super().__init__(text)
        self.messages = tuple(messages)


class OptionError(CompileError, ValueError):
    """An option that no step could be compiled with, which the compiler has found: as wrong as
    one that Python finds, which is a ValueError."""


def find(name: str) -> pathlib.Path:
    """A program in BAECHI_TOOLS where that is set, else in the installed package, in this
    checkout's build, or on the PATH."""
    if asked := os.environ.get("BAECHI_TOOLS"):
        if (file := pathlib.Path(asked) / name).exists():
            return file
        reason = f"there is no {name} in it" if os.path.isdir(asked) else "there is no such folder"
        raise FileNotFoundError(
            f"BAECHI_TOOLS is {asked!r}, but {reason}: name the folder that holds baechi-run, or "
            "unset the variable"
        )
    here = pathlib.Path(__file__).resolve()
    package, checkout = here.parents[1] / "bin", here.parents[3] / "build" / "release" / "bin"
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
_MESSAGE = re.compile(
    r"(?:(?P<place>\S.*?): )?(?P<severity>error|warning|remark|note): (?P<text>.*)"
)


# Who started this process with others of its kind did not start its tools so (Launch.cpp).
OF_LAUNCHERS = (
    *("BAECHI_RANKS", "BAECHI_RANK", "BAECHI_COORDINATOR"),
    *("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MPI_LOCALNRANKS", "WORLD_SIZE", "SLURM_NTASKS"),
)


def run(
    name: str,
    *arguments: object,
    hidden: pathlib.Path | None = None,
    hears: Callable[[str], bool] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Runs a tool to its end. Raises CompileError with what it said, without its name
    and the places in `hidden`, a file that the user does not see. hears: takes each line of
    the standard error as it comes; True: it is none of the tool's words."""
    command = [str(word) for word in (find(name), *arguments)]
    with temporary.folder("baechi-tool-") as folder:
        # What a tool that is stopped leaves behind goes with the folder.
        environment = {k: v for k, v in os.environ.items() if k not in OF_LAUNCHERS}
        environment["TMPDIR"] = str(folder)
        done = _listen(command, environment, hears or (lambda line: False))
    if done.returncode < 0:
        done.stderr += f"it was ended by {signal.Signals(-done.returncode).name}\n"
    if done.returncode != 0:
        raise error_of(name, done.stderr, hidden, messages_of(name, done.stderr, hidden))
    return done


def error_of(
    name: str, said: str, hidden: object, messages: Sequence[Message] = ()
) -> CompileError:
    """What a tool said, without its name and the places in `hidden`."""
    place = _ours(name, hidden)
    lines = [place.sub("", line) for line in said.splitlines()]
    errors = [i for i, line in enumerate(lines) if "error:" in line]
    # What belongs to an error stands below it: what is missing, and who needs it.
    told = [line for line in lines[errors[0] :] if not _ASIDE.match(line)] if errors else []
    return CompileError("\n".join(told) or f"{name} failed:\n{said[-2000:]}", messages)


def messages_of(name: str, said: str, hidden: object) -> list[Message]:
    """The messages in what a tool said."""
    ours = _ours(name, hidden)
    found = (_MESSAGE.match(ours.sub("", line)) for line in said.splitlines())
    return [Message(each["severity"], each["place"] or "", each["text"]) for each in found if each]


def _ours(name: str, hidden: object) -> re.Pattern[str]:
    return re.compile(rf"^(?:{name}|<unknown>|{re.escape(str(hidden))})(?::\d+)*: ")


def _listen(
    command: list[str], environment: dict[str, str], hears: Callable[[str], bool]
) -> subprocess.CompletedProcess[str]:
    pipe = subprocess.PIPE
    said: list[str] = []
    # A file takes whatever is written while the other output is read.
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as output,
        subprocess.Popen(
            command, stdout=output, stderr=pipe, text=True, errors="replace", env=environment
        ) as process,
    ):
        try:
            assert process.stderr is not None
            said += [line for line in process.stderr if not hears(line)]
        except BaseException:  # nobody waits for it any more
            process.kill()
            raise
        process.wait()
        output.seek(0)
        return subprocess.CompletedProcess(
            command, process.returncode, output.read(), "".join(said)
        )
