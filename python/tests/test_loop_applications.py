# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Applications of loops on data with known answers."""

import numpy as np
import pytest

import baechi
from baechi.experiments import orion
from baechi.importer.common.errors import ImportFailure
from baechi.loops import applications, data


def test_the_same_seed_gives_the_same_data():
    a, b = (data.ratings(2000, 200, 100, seed=3) for _ in range(2))
    for x, y in zip((*a.keys, *a.leaves), (*b.keys, *b.leaves), strict=True):
        np.testing.assert_array_equal(x, y)
    assert len(np.unique(a.keys[0].astype(int) * 100 + a.keys[1])) == 2000
    with pytest.raises(ValueError, match="more than half of all"):
        data.ratings(60, 10, 10)


@pytest.mark.parametrize("name", ["factorise", "factorise_adagrad"])
def test_factorisation_reaches_the_noise(name):
    entries = data.ratings(8000, 200, 100, rank=4)
    arrays = applications.factors(entries, 4)
    if name == "factorise_adagrad":
        arrays += [np.zeros_like(array) for array in arrays]
    loop = baechi.foreach(getattr(applications, name), workers=2)
    assert loop.analyse(entries, *arrays).text == "2D over i and j"
    assert applications.error(entries, *loop(entries, *arrays, passes=30)[:2]) < 0.35


def test_tensors():
    entries = data.tensor(20_000, (60, 50, 40), rank=3)
    arrays = applications.factors(entries, 3, seed=2)
    arrays = [5 * array for array in arrays]
    loop = baechi.foreach(applications.factorise_tensor, workers=2)
    assert loop.analyse(entries, *arrays).text == "3D over i, j and k"
    before = applications.error(entries, *arrays)
    assert applications.error(entries, *loop(entries, *arrays, passes=25)) < 0.5 * before


def test_topics_are_found():
    entries, planted = data.tokens(300, 200, 5, length=60)
    arrays = applications.counts(entries, 5)
    loop = baechi.foreach(applications.topics, workers=2, buffered=["totals"])
    assert loop.analyse(entries, *arrays).text == "2D over document and word"
    values, documents, words, totals = loop(entries, *arrays, passes=40)
    again = applications.counts(entries.with_values(values), 5)
    for counted, kept in zip(again, (documents, words, totals), strict=True):
        np.testing.assert_array_equal(counted, kept)
    assert applications.likelihood(entries, documents, words) > 0.3 + applications.likelihood(
        entries, *arrays[:2]
    )


def test_regression():
    entries, weights = data.samples(20_000, 100, nonzeros=8)
    loop = baechi.foreach(applications.regress, buffered=["weights"], exchanges=40, workers=2)
    found = loop.simulate(entries, np.zeros(100, np.float32), passes=2)
    numbers, values, label = entries.leaves
    planted = (weights[numbers] * values).sum(1)
    told = planted != 0
    right = ((found[numbers] * values).sum(1) > 0) == label
    best = (planted > 0) == label
    assert right[told].mean() > best[told].mean() - 0.1


def test_pages():
    entries = data.edges(8, 4000)
    loop = baechi.foreach(applications.rank_pages, workers=2)
    ranks = np.full(256, 1 / 256, np.float32)
    assert loop.analyse(entries, ranks, ranks).text == "1D over target"
    dense = np.zeros((256, 256))
    np.add.at(dense, (entries.keys[1], entries.keys[0]), entries.leaves[0])
    expected = ranks.astype(float)
    for _ in range(5):
        ranks = loop(entries, ranks, np.full(256, np.float32(0.15) / 256, np.float32))
        expected = 0.15 / 256 + 0.85 * dense @ expected
    np.testing.assert_allclose(ranks, expected, rtol=1e-4)


def test_experiment(monkeypatch):
    monkeypatch.setattr(orion, "ORDERS", 2)
    monkeypatch.setattr(orion, "WORKERS", (2, 4))
    monkeypatch.setattr(orion, "LATE", ((1, None), (4, None), (4, 1)))
    entries = data.ratings(3000, 100, 60, rank=4)
    small = orion.Application(
        "factorisation",
        "RMSE",
        entries,
        applications.factors(entries, 4),
        8,
        (1, 4, 8),
        {"step 0.05": applications.factorisation(0.05)},
        [],
        lambda entries, made: applications.error(entries, *made),
    )
    told = []
    convergence, orders = orion.tables([], told.append, [small])
    assert [row["scheme"] for row in convergence.rows[:2]] == ["serial", "blocks, 2 workers"]
    serial = float(convergence.rows[0]["8"])
    for row in convergence.rows[1 : 1 + len(orion.WORKERS)]:
        assert abs(float(row["8"]) - serial) < 0.2 * serial
    scheme = str(convergence.rows[-1]["scheme"])
    assert scheme == "store, staleness 1, 4 workers, 4 a pass, step 0.05"
    assert abs(float(convergence.rows[-1]["8"]) - serial) < 0.5 * serial
    assert all(float(row["ratio"]) > 1 for row in orders.rows)
    assert told[0] == "factorisation: serial, order 0"
    with pytest.raises(ImportFailure, match="unknown application 'x'; known: factorisation"):
        orion.tables(["x"], told.append, [small])
