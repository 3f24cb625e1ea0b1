"""Compares the outputs of two .npz archives: compare_outputs.py ACTUAL EXPECTED.

Every array out0, out1, ... of EXPECTED must be in ACTUAL, with the same shape
and within 1e-4 of its largest element, or of 1e-4 where that is larger: what
batch normalization hides from the loss has gradients of rounding errors alone.
Standard library only.
"""

import ast
import math
import re
import struct
import sys
import zipfile

TOLERANCE = 1e-4
FLOOR = 1e-4
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


def parse_npy(data):
    """The shape and the elements of a .npy file."""
    if data[:6] != b"\x93NUMPY":
        raise ValueError("not an .npy file")
    size, begin = ("<H", 10) if data[6] == 1 else ("<I", 12)
    (length,) = struct.unpack_from(size, data, 8)
    header = ast.literal_eval(data[begin : begin + length].decode("latin1"))
    if header["fortran_order"] and len(header["shape"]) > 1:
        raise ValueError("not in C order")
    descr = header["descr"]
    order = ">" if descr[0] == ">" else "<"
    count = math.prod(header["shape"])
    form = f"{order}{count}{FORMATS[descr[1:]]}"
    return header["shape"], struct.unpack_from(form, data, begin + length)


def outputs(path):
    with zipfile.ZipFile(path) as archive:
        return {
            name[: -len(".npy")]: parse_npy(archive.read(name))
            for name in archive.namelist()
            if re.fullmatch(r"out\d+\.npy", name)
        }


def difference(actual, expected):
    """What is wrong with an array, or None."""
    if actual is None:
        return "is missing"
    (shape, values), (expected_shape, expected_values) = actual, expected
    if shape != expected_shape:
        return f"has shape {shape}, not {expected_shape}"
    limit = TOLERANCE * max(FLOOR, max(map(abs, expected_values), default=0.0))
    for index, (a, b) in enumerate(zip(values, expected_values)):
        if not abs(a - b) <= limit:  # a NaN is no agreement
            return f"has {a} at {index}, not {b}"
    return None


def main():
    actual, expected = outputs(sys.argv[1]), outputs(sys.argv[2])
    if not expected:
        sys.exit(f"{sys.argv[2]}: no outputs")
    wrong = 0
    for name, array in expected.items():
        if problem := difference(actual.get(name), array):
            print(f"{name} {problem}")
            wrong += 1
    if wrong:
        sys.exit(1)
    print(f"{len(expected)} outputs agree")


if __name__ == "__main__":
    main()
