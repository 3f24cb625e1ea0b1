# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matrix factorisation as a serial loop, in parallel on two devices (docs/loops.md)."""

import numpy as np

import baechi
from baechi.loops import data


@baechi.foreach(machine="host:2", workers=2)
def factorise(key, rating, users, items):
    i, j = key
    u, v = users[i], items[j]
    error = rating - u @ v
    users[i] += 0.02 * error * v
    items[j] += 0.02 * error * u


random = np.random.default_rng(1)
ratings = data.ratings(100_000, users=2_000, items=500, rank=8)
users, items = (random.normal(0, 0.1, (n, 8)).astype(np.float32) for n in (2_000, 500))
print(factorise.analyse(ratings, users, items).text)
for passes in (8, 8, 8):
    users, items = factorise(ratings, users, items, passes=passes)
    found = (users[ratings.keys[0]] * items[ratings.keys[1]]).sum(1)
    print("root mean squared error", np.sqrt(np.mean((ratings.leaves[0] - found) ** 2)))
