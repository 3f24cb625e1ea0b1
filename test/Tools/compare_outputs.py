"""Compares the outputs of two .npz archives: compare_outputs.py ACTUAL EXPECTED.

Every array out0, out1, ... of EXPECTED must be in ACTUAL, with the same shape
and within 1e-4 of its largest element, or of 1e-4 where that is larger: what
batch normalization hides from the loss has gradients of rounding errors alone.
Standard library only.
"""

import re
import sys

import npz

TOLERANCE = 1e-4
FLOOR = 1e-4


def outputs(path):
    return {
        name: (array.shape, array.values)
        for name, array in npz.load(path).items()
        if re.fullmatch(r"out\d+", name)
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
