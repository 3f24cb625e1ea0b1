"""The results of run-step.test's functions of one x, as NumPy's file holds them: 8 floats."""

import array
import sys
import zipfile


def result(name):
    with zipfile.ZipFile(f"{sys.argv[1]}/{name}.npz") as file:
        return array.array("f", file.read("out0.npy")[-32:]).tolist()


def squares(values):
    # In double precision a product of floats is exact: rounded once, as the step does.
    return array.array("f", [value * value for value in values]).tolist()


twice = result("twice")
assert any(twice), twice
assert result("squared") == squares([value / 2 for value in twice])
assert result("private") == twice
assert result("calls") == squares(twice)
assert result("indirect") == twice
