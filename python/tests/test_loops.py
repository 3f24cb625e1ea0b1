# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`baechi.foreach`: what is found of bodies, and what is refused."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

import baechi
from loop_examples import factorise, factors, ratings


class TestVerdicts:
    def test_factorisation(self):
        found = baechi.foreach(factorise).analyse(ratings(), *factors())
        assert found.text == "2D over i and j"
        assert any(
            "users[i, :] is read (loop_examples.py:15)" in e for e, _, _ in found.dependences
        )
        assert {distances for _, _, distances in found.dependences} == {"(0, >=1)", "(>=1, 0)"}

    def test_edges_of_a_graph(self):
        def rank(key, _, old, new):
            source, target = key
            new[target] += old[source]

        loop = baechi.foreach(rank)
        vectors = np.zeros(60, np.float32), np.zeros(30, np.float32)
        assert loop.analyse(ratings(), *vectors).text == "1D over j"

    def test_sums_are_asked_for(self):
        def squares(key, rating, users, total):
            users[key[0], 0] += rating
            total[()] += rating * rating

        arrays = factors()[0], np.zeros((), np.float32)
        with pytest.raises(baechi.LoopError, match=r"total is added to .*reassociate"):
            baechi.foreach(squares)(ratings(), *arrays)
        found = baechi.foreach(squares, reassociate=True).analyse(ratings(), *arrays)
        assert found.text == "1D over i with sums of 'total'"
        # Those of integers are the same in any order.
        counts = np.zeros((), np.int32)

        def count(key, rating, users, counts):
            users[key[0], 0] += rating
            counts[()] += 3

        loop = baechi.foreach(count, machine="host:2", workers=2)
        assert loop.analyse(ratings(), arrays[0], counts).text == "1D over i with sums of 'counts'"
        assert int(loop(ratings(), arrays[0], counts)[1]) == 3 * 400

    def test_positions_that_data_tell(self):
        def regress(key, feature, weights):
            weights[feature] = weights[feature] * 0.5

        entries = baechi.Entries((np.arange(8),), np.arange(8)[::-1].copy())
        with pytest.raises(baechi.LoopError) as raised:
            baechi.foreach(regress)(entries, np.ones(8, np.float32))
        assert "weights[?] is written (test_loops.py:" in str(raised.value)
        assert "`weights[feature]`)" in str(raised.value)
        assert "depend on data; buffer 'weights'" in str(raised.value)

    def test_keys_have_values(self):
        def clamped(i, _, x, y):
            y[i] = x[jnp.maximum(i.value - 1, 0)]

        def given(i, _, x, y):
            y[i] = x[jnp.maximum(i - 1, 0)]

        entries = baechi.Entries((np.arange(6),))
        x = np.arange(6, dtype=np.float32)
        y = baechi.foreach(clamped)(entries, x, np.zeros(6, np.float32))
        assert np.array_equal(y, x[np.maximum(np.arange(6) - 1, 0)])
        with pytest.raises(baechi.LoopError, match=r"test_loops.py:\d+: .*key's value \(i.value\)"):
            baechi.foreach(given)(entries, x, np.zeros(6, np.float32))

        def of_numpy(i, _, x, y):
            y[i] = np.float32(i)

        with pytest.raises(baechi.LoopError, match="use jnp, not np"):
            baechi.foreach(of_numpy)(entries, x, np.zeros(6, np.float32))

    def test_derived_positions(self):
        def shift(i, _, a):
            a[2 * i] = a[2 * i + 1] + 1

        entries = baechi.Entries((np.arange(10),))
        array = np.zeros(20, np.float32)
        assert baechi.foreach(shift).analyse(entries, array).text == "independent"

        def mirror(i, _, a):
            a[9 - i] = a[i]

        assert baechi.foreach(mirror).analyse(entries, array[:10]).text == "serial"


class TestErrors:
    def check(self, body, message, arrays=None, entries=None, **options):
        with pytest.raises(baechi.LoopError, match=message):
            baechi.foreach(body, **options).analyse(
                entries or ratings(), *(factors() if arrays is None else arrays)
            )

    def test_extents(self):
        message = r"users\[i, :\] is read \(loop_examples.py:15\).*from 0 to 59.*has 10 elements"
        self.check(factorise, message, [f[:10] for f in factors()])

    def test_bodies(self):
        def returns_arrays(key, rating, users, items):
            return users.at[key[0]].set(0)

        self.check(returns_arrays, "changed with .at, which makes another array: write users")

        def wrong_shape(key, rating, users, items):
            users[key[0]] = jnp.ones(3)

        self.check(wrong_shape, r"has shape \(3,\), its place \(8,\)")

        def of_floats(key, rating, users, items):
            users[rating] = 0

        self.check(of_floats, "dimension 0 of 'users' is indexed with float32")

        def branches(key, rating, users, items):
            if rating > 0:
                users[key[0]] = 0

        self.check(branches, "branches on a value that is known when it runs: use jnp.where")

        def nothing(key, rating, users, items):
            users[key[0]] * 2

        with pytest.raises(baechi.LoopError, match="'nothing' writes nothing"):
            baechi.foreach(nothing)(ratings(), *factors())
        self.check(factorise, "the loop is called with entries and 1 arrays", factors()[:1])
        self.check(factorise, "buffered has 'w', and the body's arrays are", buffered=["w"])
        self.check(factorise, "ordered loop has buffered arrays", buffered=["users"], ordered=True)

    def test_entries(self):
        with pytest.raises(ValueError, match="key 'j' of entry 1 is 7, out of its bounds 0 to 4"):
            baechi.Entries(([0, 1], [0, 7]), bounds=(2, 5))
        with pytest.raises(ValueError, match="there are no entries"):
            baechi.Entries((np.zeros(0, int),))
        with pytest.raises(TypeError, match="key 'i' is of float64: keys are integers"):
            baechi.Entries(([0.5],))
        with pytest.raises(ValueError, match=r"values of shape \(3,\) are not one for each of 2"):
            baechi.Entries(([0, 1],), np.zeros(3))
        with pytest.raises(TypeError, match="a loop is over entries, not a list"):
            baechi.foreach(factorise)([1, 2], *factors())

    def test_options(self):
        with pytest.raises(ValueError, match="fallback is 'guess'"):
            baechi.foreach(factorise, fallback="guess")
        with pytest.raises(ValueError, match="loops run on host devices"):
            baechi.foreach(factorise, machine="gpu.json")
