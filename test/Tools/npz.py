# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reads and writes .npz archives with the standard library alone."""

import ast
import math
import struct
import zipfile
from typing import NamedTuple

FORMATS = {
    "f2": "e",
    "f4": "f",
    "f8": "d",
    "b1": "?",
    "i1": "b",
    "u1": "B",
    "i2": "h",
    "u2": "H",
    "i4": "i",
    "u4": "I",
    "i8": "q",
    "u8": "Q",
}


def form(descr, shape):
    """The format, as struct has it, of an array's elements."""
    order = ">" if descr[0] == ">" else "<"
    return f"{order}{math.prod(shape)}{FORMATS[descr[1:]]}"


class Array(NamedTuple):
    """An array as a .npy file has it; two are equal bit for bit."""

    descr: str
    shape: tuple
    data: bytes

    @property
    def values(self):
        """The elements in C's order."""
        return struct.unpack(form(self.descr, self.shape), self.data)


def make_array(descr, shape, values):
    """An array of rounded values."""
    return Array(descr, shape, struct.pack(form(descr, shape), *values))


def parse_npy(data):
    """The array of a .npy file."""
    if data[:6] != b"\x93NUMPY":
        raise ValueError("not an .npy file")
    size, begin = ("<H", 10) if data[6] == 1 else ("<I", 12)
    (length,) = struct.unpack_from(size, data, 8)
    header = ast.literal_eval(data[begin : begin + length].decode("latin1"))
    if header["fortran_order"] and len(header["shape"]) > 1:
        raise ValueError("not in C order")
    return Array(header["descr"], header["shape"], data[begin + length :])


def write_npy(array):
    """A .npy file of version 1.0."""
    header = f"{{'descr': '{array.descr}', 'fortran_order': False, 'shape': {array.shape}, }}"
    # The elements begin at a multiple of 64 bytes.
    header += " " * (-(10 + len(header) + 1) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + array.data


def load(path):
    """The arrays of an archive, by name."""
    with zipfile.ZipFile(path) as archive:
        return {
            name.removesuffix(".npy"): parse_npy(archive.read(name)) for name in archive.namelist()
        }


def save(path, **arrays):
    with zipfile.ZipFile(path, "w") as archive:
        for name, array in arrays.items():
            archive.writestr(f"{name}.npy", write_npy(array))
