# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What parameter stores refuse, and that they say what is wrong and how to mend it."""

import zlib

import numpy as np
import pytest

import baechi
from baechi.replicas import library

try:
    library.library()
except ImportError as error:
    pytest.skip(str(error), allow_module_level=True)

from baechi.replicas.store import Network, StoreError  # noqa: E402


@pytest.mark.parametrize(
    "options, told",
    [
        ({"order": "best"}, "unknown order 'best'; known: age, random"),
        ({"when_lost": "die"}, "unknown when_lost 'die'"),
        ({"budget": 0}, "the budget is 0: give bytes per second"),
        ({"staleness": -1}, "the staleness is -1"),
        ({"staleness": 1.5}, "the staleness is 1.5: give 0 for no delay, or how many clocks"),
        ({"staleness": 2**40}, "the staleness is 1099511627776: .*, at most 2147483647"),
        ({"workers": "two"}, "the workers is 'two': give how many there are"),
        ({"workers": 0}, "the number of workers is 0: give at least 1"),
        ({"workers": 10**9}, "the number of workers is 1000000000: give 1 to 4096"),
        ({"staleness": 10**9}, "the staleness is 1000000000: .*, at most 1048576"),
        ({"budget": "fast"}, "the budget is 'fast': give bytes per second"),
        ({"budget": float("nan")}, "the budget is nan"),
        ({"patience": None}, "the patience is None: give seconds"),
        ({"network": 1e9}, r"the network is 1000000000.0: give a Network\(bytes_per_second\)"),
        ({"network": Network("1Gbit")}, "the network's bytes per second is '1Gbit'"),
        ({"network": Network(1e9, -1)}, "the network's latency is -1: give nanoseconds"),
        ({"revised": ["x"]}, "revised is of type list: give a dictionary of tables' names"),
        ({"revised": {"x": "much"}}, "the step of table 'x' is 'much': give a number above 0"),
    ],
)
def test_wrong_options(options, told):
    with pytest.raises(StoreError, match=told):
        baechi.ParameterStore({"x": (4, 2)}, **options)


@pytest.mark.parametrize(
    "rows, told",
    [
        ([True, False], "are a number or a list of integers, not bool"),
        ([1.7], "are a number or a list of integers, not float64"),
        ([[0, 1]], "of 2 dimensions"),
        (-1, "has no row -1: rows count from 0"),
        (9, "9"),
    ],
)
def test_rows_are_positions(rows, told):
    store = baechi.ParameterStore({"x": (4, 2)}, workers=1)
    with pytest.raises(StoreError, match=told):
        store.get(0, "x", rows)
    assert store.get(0, "x", []).shape == (0, 2)


def test_a_damaged_file_is_refused(tmp_path):
    """By the checksum at its end, which is zlib's of all before it."""
    file = tmp_path / "state"
    store = baechi.ParameterStore({"w": np.arange(6, dtype=np.float32).reshape(2, 3)})
    store.save(file)
    whole = file.read_bytes()
    assert whole[-9:] == b"%08x\n" % zlib.crc32(whole[:-9])
    restore = baechi.ParameterStore.restore
    for bit in range(len(whole) * 8):
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        file.write_bytes(damaged)
        with pytest.raises(StoreError, match="save|line|clocks|version"):
            restore(file)
    changed = whole[:-12] + b"\x7f" + whole[-11:]  # a number
    file.write_bytes(changed)
    with pytest.raises(StoreError, match="state: is damaged, its checksum is another: take a copy"):
        restore(file)
    file.write_bytes(whole)
    assert np.array_equal(restore(file).read("w"), store.read("w"))


def test_a_restored_store_has_the_options_of_its_call(tmp_path):
    """Which are not in the file: a bound of nothing, unless it is given again."""
    store = baechi.ParameterStore({"w": (1, 2)}, workers=2, staleness=3, patience=0.05)
    store.clock(0)
    store.save(tmp_path / "state")
    restore = baechi.ParameterStore.restore
    restore(tmp_path / "state", staleness=3, patience=0.05).get(0, "w", 0)
    with pytest.raises(StoreError, match="waited"):
        restore(tmp_path / "state", patience=0.05).get(0, "w", 0)


def test_a_restored_store_has_the_workers_that_were_saved(tmp_path):
    store = baechi.ParameterStore({"x": (4, 2)}, workers=3)
    for worker, clocks in enumerate((2, 1, 3)):
        for _ in range(clocks):
            store.clock(worker)
    store.save(tmp_path / "state")
    restore = baechi.ParameterStore.restore
    assert restore(tmp_path / "state").report().clocks == [2, 1, 3]
    assert restore(tmp_path / "state", workers=2).report().clocks == [1, 1]
    with pytest.raises(StoreError, match="the number of workers is 0: give at least 1"):
        restore(tmp_path / "state", workers=0)


def test_wrong_revisions():
    with pytest.raises(StoreError, match="there is no table 'y' to be revised"):
        baechi.ParameterStore({"x": (4, 2)}, revised={"y": 1.0})
    with pytest.raises(StoreError, match="table 'x' is revised with steps of 0"):
        baechi.ParameterStore({"x": (4, 2)}, revised={"x": 0.0})


def test_wrong_calls():
    store = baechi.ParameterStore({"x": (4, 2)})
    with pytest.raises(StoreError, match="there is no table 'y'; known: 'x'"):
        store.get(0, "y", 0)
    with pytest.raises(StoreError, match="no row 4"):
        store.get(0, "x", 4)
    with pytest.raises(StoreError, match="not finite to row 1"):
        store.inc(0, "x", 1, [np.nan, 0])
    with pytest.raises(StoreError, match="a worker is 'first': give its number"):
        store.get("first", "x", 0)


@pytest.mark.parametrize(
    "tables, told",
    [
        ({"x": np.zeros(3)}, "table 'x': a table is an array of two dimensions, not of 1"),
        ({"x": np.zeros((1, 2), complex)}, "table 'x': complex128 has no value in float32"),
        ({"x": np.array([["a"]])}, "table 'x': <U1 has no value in float32"),
        ({"x": (4, 2, 1)}, r"table 'x' is \(4, 2, 1\): give a dictionary"),
        ({"x": (1.5, 2)}, "table 'x': rows is 1.5: give a number from 1 on"),
        ({"x": (-1, 2)}, "table 'x' has -1 rows of 2 numbers"),
        ({3: (4, 2)}, "tables has 3 for a name"),
        (["x"], "tables is of type list: give a dictionary"),
        ({}, "the store has no table"),
    ],
)
def test_wrong_tables(tables, told):
    with pytest.raises(StoreError, match=told):
        baechi.ParameterStore(tables)


@pytest.mark.parametrize(
    "values, told",
    [
        (np.zeros(2, complex), "table 'x': complex128 has no value in float32"),
        (None, "table 'x': object has no value in float32"),
        ("much", "has no value in float32"),
        (np.zeros(3), r"values of shape \(3,\), where \(2,\) are asked for"),
        ([[1.0], [2.0, 3.0]], "table 'x': .*; give numbers"),
    ],
)
def test_wrong_updates(values, told):
    store = baechi.ParameterStore({"x": (4, 2)})
    with pytest.raises(StoreError, match=told):
        store.inc(0, "x", 1, values)
    store.inc(0, "x", 1, np.ones(2, np.float16))
    store.inc(0, "x", 1, [1, True])
