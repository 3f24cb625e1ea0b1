# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The blocks of the documentation's pages, and running them as a reader would."""

import os
import pathlib
import re
import subprocess
import sys

from baechi.compiling import tools

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"


def blocks(page, language):
    """The texts of a page's blocks of a language, "" for those that name none."""
    return [text for word, text in all_blocks(page) if word == language]


def all_blocks(page):
    """The language and the text of each block of a page."""
    found = re.findall(r"^( *)```(\S*)\n(.*?)^\1```$", (DOCS / page).read_text(), re.S | re.M)
    return [(language, text) for _, language, text in found]


def run_program(text, folder):
    program = folder / "page.py"
    program.write_text(text)
    environment = os.environ | {"PYTHONPATH": str(ROOT / "python")}
    return subprocess.run(
        [sys.executable, program], cwd=folder, env=environment, capture_output=True, text=True
    )


def run_commands(page, folder, skip=(), language="sh", instead=()):
    """Runs a page's commands in a folder, but those that begin with one of skip, and with what is
    small in place of what takes long: pairs of words, each of which must be there."""
    text = "\n".join(blocks(page, language)).replace("\\\n", " ")
    for old, new in instead:
        assert old in text, f"{page} does not say {old}"
        text = text.replace(old, new)
    text = text.replace(".venv/bin/python", sys.executable)
    lines = [line for line in text.splitlines() if not line.startswith(tuple(skip))]
    folders = [str(tools.find("baechi-run").parent), os.path.dirname(sys.executable)]
    return subprocess.run(
        ["bash", "-c", "\n".join(["set -eu", *lines])],
        cwd=folder,
        env=os.environ
        | {
            "PATH": os.pathsep.join([*folders, os.environ["PATH"]]),
            "PYTHONPATH": str(ROOT / "python"),
            "XDG_CACHE_HOME": str(folder / "cache"),
        },
        capture_output=True,
        text=True,
    )
