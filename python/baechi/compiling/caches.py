# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where measured and compiled kernels are kept between processes.

A folder that cannot be used costs time, not the step: what is kept is then kept
for this process alone, and one warning says so and names the variable to set.
"""

from __future__ import annotations

import functools
import hashlib
import os
import pathlib
import stat
import tempfile

from baechi.common import users


class CacheWarning(UserWarning):
    """Nothing is kept for the next process; the message says why, and the mend."""


# The user's folders that a warning was given for.
_given_up: set[pathlib.Path] = set()


def folder() -> pathlib.Path:
    """This user's folder of measured and of compiled kernels, made where it is missing;
    one of this process alone where that cannot be, after a CacheWarning."""
    try:
        chosen = _chosen()
    except (OSError, RuntimeError) as error:  # no home
        return give_up(pathlib.Path(os.devnull), str(error))
    if chosen in _given_up:
        return _temporary()
    try:
        chosen.mkdir(parents=True, exist_ok=True, mode=0o700)
        _check(chosen)
    except OSError as error:
        return give_up(chosen, error.strerror or str(error))
    return chosen


def give_up(chosen: pathlib.Path, reason: str) -> pathlib.Path:
    """Says once that `chosen` is not used, and why; the folder to use instead."""
    if chosen not in _given_up:
        _given_up.add(chosen)
        variable = "XDG_CACHE_HOME" if os.environ.get("XDG_CACHE_HOME") else "HOME"
        users.warn(
            f"measured and compiled kernels are kept for this process only, as {chosen} cannot "
            f"be used: {reason}; mend it, or set XDG_CACHE_HOME to a folder of your own (now "
            f"{variable}={os.environ.get(variable, '')!r})",
            CacheWarning,
        )
    return _temporary()


def of_this_process(text: str, suffix: str) -> pathlib.Path:
    """A file of `text` that goes with this process; the same one for the same text."""
    name = hashlib.sha256(text.encode()).hexdigest() + suffix
    path = _temporary() / name
    if not path.exists():
        path.write_text(text)
    return path


def is_named_in(error: BaseException) -> bool:
    """Whether an error is about what the user's folder holds: a damaged profile, code that
    others may have changed."""
    try:
        return str(_chosen()) in str(error)
    except (OSError, RuntimeError):
        return False


def give_up_for(error: BaseException) -> pathlib.Path:
    """As `give_up`, for what `is_named_in` an error."""
    return give_up(_chosen(), str(error).removeprefix("error: "))


def _chosen() -> pathlib.Path:
    base = os.environ.get("XDG_CACHE_HOME", "")
    # The specification has relative ones ignored.
    if not os.path.isabs(base):
        base = str(pathlib.Path.home() / ".cache")
    return pathlib.Path(base) / "baechi"


def _check(chosen: pathlib.Path) -> None:
    """Raises OSError where files cannot be made, or others could put code."""
    if not os.access(chosen, os.W_OK | os.X_OK):
        raise PermissionError(0, "files cannot be made in it")
    kernels = chosen / "kernels"
    if kernels.exists():
        state = kernels.stat()
        if state.st_uid != os.geteuid() or state.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise PermissionError(0, f"{kernels} holds code, but others own or may write it")


@functools.cache
def _of_this_process() -> tempfile.TemporaryDirectory[str]:
    """Held for as long as the process runs, at whose end the folder goes."""
    return tempfile.TemporaryDirectory(prefix="baechi-cache-")


def _temporary() -> pathlib.Path:
    return pathlib.Path(_of_this_process().name)
