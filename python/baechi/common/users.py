# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The user's own lines: where a warning points, and where a callback has raised.

All else on the stack is this package, a framework around it, or what Python itself puts between.
"""

from __future__ import annotations

import os
import re
import sys
import traceback
import types
import warnings

_OTHERS = {
    "baechi",
    "jax",
    "jaxlib",
    "torch",
    "functorch",
    "contextlib",
    "functools",
    "threading",
    "concurrent",
    "importlib",
    "runpy",
}
# A callback's traceback within the text of an error that crossed XLA.
_TRACEBACK = "Traceback (most recent call last):\n"
_FRAME = re.compile(r'^  File "(?P<file>[^"]+)", line (?P<line>\d+).*\n(?:    .*\n)*', re.M)


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """A warning that points at the user's line, however deep it is given."""
    level, frame = 2, sys._getframe(1)
    while not _is_users(frame) and frame.f_back is not None:
        level, frame = level + 1, frame.f_back
    # Called by nobody but ourselves: where it is given.
    warnings.warn(message, category, stacklevel=level if _is_users(frame) else 2)


def told(error: BaseException) -> str:
    """`ValueError: negative: -3 (model.py:31)`: an error's text, and the user's line that raised
    it, also where a framework has made a text of both."""
    before, found, text = str(error).partition(_TRACEBACK)
    frames = list(_FRAME.finditer(text)) if found else []
    if frames:
        own = text[frames[-1].end() :].strip().partition("\n\n")[0]
        places = [(frame["file"], frame["line"]) for frame in frames]
        return _placed(own, [place for place in places if not _is_framework(place[0])])
    return _placed(f"{type(error).__name__}: {error}", _places(error))


def raised_at(error: BaseException) -> str:
    """`model.py:31`: the user's line that raised an error."""
    places = _places(error)
    return ":".join(places[-1]) if places else "unknown"


def _places(error: BaseException) -> list[tuple[str, str]]:
    steps = traceback.walk_tb(error.__traceback__)
    return [(f.f_code.co_filename, str(line)) for f, line in steps if _is_users(f)]


def _placed(text: str, places: list[tuple[str, str]]) -> str:
    return f"{text} ({':'.join(places[-1])})" if places else text


def _is_users(frame: types.FrameType) -> bool:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0] not in _OTHERS


def _is_framework(file: str) -> bool:
    packages = (sys.modules.get(name) for name in _OTHERS)
    folders = [folder for package in packages for folder in getattr(package, "__path__", ())]
    return any(file.startswith(folder + os.sep) for folder in folders)
