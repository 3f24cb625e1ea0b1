# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ONNX's own tests of its operators, several in one model.

    python onnx_nodes.py [PART PARTS]    prints what is refused or wrong, and why

A case is right, refused (the reason is an error's first words) or wrong.
"""

import dataclasses
import re
import sys
import warnings

import numpy as np
import onnx
import onnx.compose
from onnx import helper, numpy_helper
from onnx.backend.test.case.node import collect_testcases

import baechi.onnx
from baechi.importer.common.errors import ImportFailure, UnsupportedOperations

_BATCH = 14
# What is random has no result to compare with.
_RANDOM = re.compile(r"test_(bernoulli|training_dropout)")


@dataclasses.dataclass
class Case:
    name: str
    model: onnx.ModelProto
    given: dict[str, np.ndarray]
    expected: list[np.ndarray]
    rtol: float
    atol: float


def _array(value):
    return numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value


def _case(test) -> Case | None:
    """None for what no array of numpy's own types holds."""
    if not test.data_sets or _RANDOM.match(test.name):
        return None
    inputs, outputs = ([_array(v) for v in values] for values in test.data_sets[0])
    arrays = all(isinstance(v, np.ndarray | np.generic) for v in inputs + outputs)
    if not arrays or any(np.asarray(v).dtype.kind not in "fuib" for v in inputs + outputs):
        return None
    if len(test.model.opset_import) > 1 or test.model.opset_import[0].domain:
        return None
    model = onnx.ModelProto()
    model.CopyFrom(test.model)
    names = [value.name for value in model.graph.input]
    if len(names) != len(inputs):
        return None
    given = {name: np.asarray(value) for name, value in zip(names, inputs)}
    # Shapes and axes are constants in models.
    for value in list(model.graph.input)[1:]:
        array = given[value.name]
        if array.dtype == np.int64 and array.ndim <= 1:
            model.graph.input.remove(value)
            model.graph.initializer.append(numpy_helper.from_array(array, value.name))
            del given[value.name]
    expected = [np.asarray(value) for value in outputs]
    return Case(test.name, model, given, expected, test.rtol, test.atol)


def cases() -> list[Case]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [case for test in collect_testcases(None) if (case := _case(test))]


def batches(cases: list[Case]) -> list[list[Case]]:
    """By opset, some at a time."""
    opsets: dict[int, list[Case]] = {}
    for case in cases:
        opsets.setdefault(case.model.opset_import[0].version, []).append(case)
    return [same[i : i + _BATCH] for same in opsets.values() for i in range(0, len(same), _BATCH)]


def _merged(cases: list[Case]) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    first = cases[0].model
    graph = helper.make_graph([], "nodes", [], [])
    model = helper.make_model(graph, opset_imports=first.opset_import, ir_version=first.ir_version)
    given = {}
    for i, case in enumerate(cases):
        part = onnx.compose.add_prefix(case.model, f"t{i}_").graph
        for field in ("node", "input", "output", "initializer", "value_info"):
            getattr(model.graph, field).extend(getattr(part, field))
        given |= {f"t{i}_{name}": value for name, value in case.given.items()}
    return model, given


def _difference(case: Case, results: list[np.ndarray]) -> str:
    """Empty where all are the expected ones."""
    for result, right in zip(results, case.expected, strict=True):
        if (result.shape, result.dtype) != (right.shape, right.dtype):
            return f"is {result.dtype}{result.shape}, not {right.dtype}{right.shape}"
        if right.dtype.kind != "f":
            if not np.array_equal(result, right):
                return "other integers"
        # The tests of half-precision numbers give bounds of single-precision ones; a rounding
        # of theirs is 0.0005 of what is summed.
        elif not np.allclose(
            result.astype(np.float64), right.astype(np.float64),
            max(case.rtol, 1e-3), 1e-3 if right.itemsize == 2 else max(case.atol, 1e-5),
            equal_nan=True,
        ):  # fmt: skip
            return "other numbers"
    return ""


def outcomes(cases: list[Case]) -> dict[str, tuple[str, str]]:
    """`("right" | "refused" | "wrong", why)` for each."""
    if not cases:
        return {}
    model, given = _merged(cases)
    try:
        compiled = baechi.onnx.compile(model, machine="host:1", costs="roofline", budget="0")
    except UnsupportedOperations as error:
        found = {}
        for operation in error.operations:
            if number := re.match(r"t(\d+)_", operation.scope):
                case = cases[int(number[1])]
                reason = operation.reason or "has no lowering"
                found[case.name] = ("refused", f"{operation.operation}: {reason}")
        if found:
            return found | outcomes([case for case in cases if case.name not in found])
        if len(cases) == 1:
            return {cases[0].name: ("refused", str(error.operations[0].operation))}
        half = len(cases) // 2
        return outcomes(cases[:half]) | outcomes(cases[half:])
    except ImportFailure as error:
        if len(cases) == 1:
            words = str(error).replace("t0_", "").splitlines()
            return {cases[0].name: ("refused", words[0])}
        half = len(cases) // 2
        return outcomes(cases[:half]) | outcomes(cases[half:])
    except Exception as error:  # nothing but a refusal of the importer is one
        if len(cases) == 1:
            return {cases[0].name: ("wrong", f"{type(error).__name__}: {error}")}
        half = len(cases) // 2
        return outcomes(cases[:half]) | outcomes(cases[half:])
    results = compiled(**given)
    results = [np.asarray(r) for r in (results if isinstance(results, tuple) else (results,))]
    found = {}
    for case in cases:
        count = len(case.expected)
        difference = _difference(case, results[:count])
        found[case.name] = ("wrong", difference) if difference else ("right", "")
        results = results[count:]
    return found


if __name__ == "__main__":
    every = batches(cases())
    part, parts = (int(word) for word in sys.argv[1:3] or (0, 1))
    for batch in every[part::parts]:
        for name, (outcome, why) in outcomes(batch).items():
            if outcome != "right":
                print(*([name, why] if outcome == "refused" else [outcome, name, why]), sep="\t")
        print("#", len(batch), flush=True)
