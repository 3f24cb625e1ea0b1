# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Inputs of run-staleness.test, and what NumPy says of its results.

stale_step.py make INPUTS.npz REPLICAS
stale_step.py check INPUTS.npz OUTPUTS.npz STEPS    the mean of the replicas' own states
stale_step.py near INPUTS.npz OUTPUTS.npz STEPS     the truth that all of them look for
"""

import sys

import numpy as np


def make(path: str, replicas: int) -> None:
    random = np.random.default_rng(0)
    x = random.normal(size=(4 * replicas, 8)).astype(np.float32)
    truth = random.normal(size=8).astype(np.float32)
    np.savez(path, x=x, y=x @ truth, w=np.zeros(8, np.float32))


def check(inputs: str, outputs: str, steps: int) -> None:
    given, found = np.load(inputs), np.load(outputs)
    w, x, y = given["w"], given["x"].reshape(-1, 4, 8), given["y"].reshape(-1, 4)
    losses = []
    for _ in range(steps):
        errors = np.einsum("rni,i->rn", x, w) - y
        losses = (errors**2).sum(1)
        w = w - 0.015625 * np.einsum("rn,rni->ri", errors, x).mean(0)
    np.testing.assert_allclose(found["out0"], w, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found["out2"], losses, rtol=1e-3, atol=1e-5)
    assert found["out1"] == steps and found["out1"].dtype == np.int32
    print("equals NumPy's mean")


def near(inputs: str, outputs: str, steps: int) -> None:
    given, found = np.load(inputs), np.load(outputs)
    truth = np.linalg.lstsq(given["x"], given["y"], rcond=None)[0]
    assert np.abs(found["out0"] - truth).max() < 1e-2, found["out0"] - truth
    assert found["out1"] == steps
    print("found the truth")


command, *given = sys.argv[1:]
if command == "make":
    make(given[0], int(given[1]))
else:
    {"check": check, "near": near}[command](given[0], given[1], int(given[2]))
