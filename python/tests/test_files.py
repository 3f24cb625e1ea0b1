# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Files appear whole or not at all."""

import os
import threading

import pytest

from baechi.common import files


def test_replaces_a_file_whole(tmp_path):
    file = tmp_path / "file"
    files.write(file, b"old")
    link = tmp_path / "link"
    link.symlink_to(file)
    files.write(link, b"new")
    assert link.is_symlink()
    assert file.read_bytes() == b"new"
    assert len(list(tmp_path.iterdir())) == 2


def test_is_not_writable_by_everybody(tmp_path):
    before = os.umask(0)
    try:
        files.write(tmp_path / "file", b"")
    finally:
        os.umask(before)
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o644


def test_leaves_nothing_behind(tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError):
        files.write(tmp_path / "no" / "file", b"")

    def refuse(*_):
        raise OSError("no renaming today")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(OSError, match="no renaming today"):
        files.write(tmp_path / "file", b"")
    assert list(tmp_path.iterdir()) == []


def test_pipes_are_written_directly(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    got = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    files.write(pipe, b"through")
    reader.join()
    assert got == [b"through"]
