# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bösen's three problems on data that a seed makes: sparse, little computing a value.

Each is a table of rows that workers share, data of which every worker has a part in slots (mini-
batches, the same in each pass), and a loss. Sources: Wei et al., "Managed Communication and
Consistency for Fast Data-Parallel Iterative Analytics" (Bösen), SoCC 2015, section 5 (matrix
factorisation by stochastic gradients, latent Dirichlet allocation, multi-class logistic
regression); Griffiths and Steyvers, "Finding scientific topics", PNAS 2004 (collapsed Gibbs
sampling; here a slot's tokens are drawn from the counts at its beginning).
"""

from __future__ import annotations

import abc
import dataclasses

import numpy as np


@dataclasses.dataclass(frozen=True)
class Size:
    workers: int
    slots: int  # of a pass, of a worker
    data: int  # ratings, tokens or samples
    rows: int
    width: int


class Problem(abc.ABC):
    """One run of it: `table` is what is shared, the rest stays with the workers."""

    name: str
    loss_name: str
    step: float  # the largest of those tried that is stable without delay
    target: float  # loss of the tables of seconds
    table: np.ndarray

    def __init__(self, size: Size, seed: int = 1) -> None:
        self.size = size
        self.random = np.random.default_rng(seed)

    @abc.abstractmethod
    def rows(self, worker: int, slot: int) -> np.ndarray:
        """Rows that a slot reads and changes, each once."""

    @abc.abstractmethod
    def update(self, worker: int, slot: int, values: np.ndarray, step: float) -> np.ndarray:
        """What a slot adds to these rows."""

    @abc.abstractmethod
    def loss(self, table: np.ndarray) -> float:
        """Of all data; smaller is better."""

    def _popular(self, count: int, rows: int) -> np.ndarray:
        """Rows as popular as words are: the i-th like (i + 10)^-0.9."""
        chance = (np.arange(rows) + 10.0) ** -0.9
        return self.random.permutation(rows)[
            self.random.choice(rows, size=count, p=chance / chance.sum())
        ]

    def _slots(self, count: int) -> list[list[slice]]:
        """Of each worker: equal parts of its equal part of the data."""
        edges = np.linspace(0, count, self.size.workers * self.size.slots + 1).astype(int)
        parts = [slice(a, b) for a, b in zip(edges, edges[1:], strict=False)]
        slots = self.size.slots
        return [parts[w * slots : (w + 1) * slots] for w in range(self.size.workers)]


class _Sums:
    """Sums of the rows of an array by key, in the order of the sorted keys."""

    def __init__(self, keys: np.ndarray) -> None:
        self.order = np.argsort(keys, kind="stable")
        self.keys, self.starts = np.unique(keys[self.order], return_index=True)
        self.places = np.searchsorted(self.keys, keys)

    def of(self, values: np.ndarray) -> np.ndarray:
        return np.add.reduceat(values[self.order], self.starts, axis=0)


class Factorisation(Problem):
    """Ratings of users that stay with their worker, and of items that all share."""

    name, loss_name, step, target = "matrix factorisation", "RMSE", 0.02, 0.45

    def __init__(self, size: Size, seed: int = 1) -> None:
        super().__init__(size, seed)
        random, users = self.random, 3 * size.rows
        wide = (users + size.rows, size.width)
        truth = random.normal(size=wide).astype(np.float32)
        user = np.sort(random.integers(0, users, size.data))
        item = self._popular(size.data, size.rows)
        products = np.einsum("nk,nk->n", truth[user], truth[users + item])
        noise = 0.3 * random.normal(size=size.data)
        self.rating = (products / np.sqrt(size.width) + noise).astype(np.float32)
        start = (random.normal(size=wide) / 10).astype(np.float32)
        self.users, self.table = start[:users], start[users:]
        self.user, self.item = user, item
        # A worker's users are its own: slots are drawn from its part.
        part = np.arange(size.data) * size.workers // size.data
        part = part[np.searchsorted(user, user)]  # of the user's first rating
        shuffled = np.lexsort((random.random(size.data), part))
        self.user, self.item, self.rating = user[shuffled], item[shuffled], self.rating[shuffled]
        bounds = np.searchsorted(part[shuffled], np.arange(size.workers + 1))
        self.parts = [
            [slice(lo + (hi - lo) * s // size.slots, lo + (hi - lo) * (s + 1) // size.slots)
             for s in range(size.slots)]
            for lo, hi in zip(bounds, bounds[1:], strict=False)
        ]  # fmt: skip
        self.items = [[_Sums(self.item[part]) for part in parts] for parts in self.parts]
        self.owners = [[_Sums(self.user[part]) for part in parts] for parts in self.parts]

    def rows(self, worker: int, slot: int) -> np.ndarray:
        return self.items[worker][slot].keys

    def update(self, worker: int, slot: int, values: np.ndarray, step: float) -> np.ndarray:
        part, items = self.parts[worker][slot], self.items[worker][slot]
        owners = self.owners[worker][slot]
        user, item = self.users[self.user[part]], values[items.places]
        wrong = self.rating[part] - np.einsum("nk,nk->n", user, item)
        scaled = (2 * step * wrong)[:, None]
        self.users[owners.keys] += owners.of(scaled * item)
        return items.of(scaled * user)

    def loss(self, table: np.ndarray) -> float:
        wrong = self.rating - np.einsum("nk,nk->n", self.users[self.user], table[self.item])
        return float(np.sqrt(np.mean(wrong.astype(np.float64) ** 2)))


class Topics(Problem):
    """Words of documents: rows count a word's topics; the last row has the topics' totals."""

    name, loss_name, step, target = "LDA", "−log-likelihood a token", 1.0, 6.7
    alpha, beta, length = 0.1, 0.01, 100  # of documents: tokens

    def __init__(self, size: Size, seed: int = 1) -> None:
        super().__init__(size, seed)
        random, topics, words = self.random, size.width, size.rows - 1
        documents = size.data // self.length
        count = documents * self.length
        mixes = random.dirichlet(np.full(topics, self.alpha), documents)
        self.document = np.repeat(np.arange(documents), self.length)
        true = _drawn(mixes[self.document], random)
        # A topic's words are popular in an order of its own.
        ranks = self._popular(count, words)
        orders = np.argsort(random.random((topics, words)), axis=1)
        self.word = orders[true, ranks]
        self.topic = random.integers(0, topics, count)
        self.table = np.zeros((size.rows, topics), np.float32)
        np.add.at(self.table, (self.word, self.topic), 1)
        self.table[-1] = self.table[:-1].sum(axis=0)
        self.mix = np.zeros((documents, topics), np.float32)
        np.add.at(self.mix, (self.document, self.topic), 1)
        self.parts = self._slots(count)
        self.words = [[_Sums(self.word[part]) for part in parts] for parts in self.parts]
        self.draws = [np.random.default_rng((seed, w)) for w in range(size.workers)]

    def rows(self, worker: int, slot: int) -> np.ndarray:
        return np.append(self.words[worker][slot].keys, self.size.rows - 1)

    def update(self, worker: int, slot: int, values: np.ndarray, step: float) -> np.ndarray:
        part, words = self.parts[worker][slot], self.words[worker][slot]
        document, old = self.document[part], self.topic[part]
        own = np.eye(self.size.width, dtype=np.float32)[old]
        # Counts that were read late may lack what is taken away.
        of_word = np.maximum(values[:-1][words.places] - own, 0) + self.beta
        of_topic = np.maximum(values[-1] - own, 0) + self.beta * (self.size.rows - 1)
        chance = (self.mix[document] - own + self.alpha) * of_word / of_topic
        new = _drawn(chance, self.draws[worker])
        self.topic[part] = new
        change = np.eye(self.size.width, dtype=np.float32)[new] - own
        np.add.at(self.mix, document, change)
        return np.vstack([words.of(change), change.sum(axis=0)])

    def loss(self, table: np.ndarray) -> float:
        counts = np.maximum(table[:-1], 0).astype(np.float64) + self.beta
        of_topic = counts / counts.sum(axis=0)
        mix = self.mix.astype(np.float64) + self.alpha
        mix /= mix.sum(axis=1, keepdims=True)
        return float(-np.log((mix[self.document] * of_topic[self.word]).sum(axis=1)).mean())


class Regression(Problem):
    """Classes of samples of a few of many features: rows are a feature's weights."""

    name, loss_name, step, target = "sparse logistic regression", "log loss", 0.005, 0.6
    features = 20  # of a sample

    def __init__(self, size: Size, seed: int = 1) -> None:
        super().__init__(size, seed)
        random = self.random
        self.feature = self._popular(size.data * self.features, size.rows)
        self.feature = self.feature.reshape(size.data, self.features)
        truth = random.normal(size=(size.rows, size.width))
        scores = truth[self.feature].sum(axis=1)
        self.label = np.argmax(scores + random.gumbel(size=scores.shape), axis=1)
        self.table = np.zeros((size.rows, size.width), np.float32)
        self.parts = self._slots(size.data)
        self.sums = [[_Sums(self.feature[part].ravel()) for part in parts] for parts in self.parts]

    def rows(self, worker: int, slot: int) -> np.ndarray:
        return self.sums[worker][slot].keys

    def update(self, worker: int, slot: int, values: np.ndarray, step: float) -> np.ndarray:
        part, sums = self.parts[worker][slot], self.sums[worker][slot]
        weights = values[sums.places].reshape(-1, self.features, self.size.width)
        wrong = _softmax(weights.sum(axis=1))
        wrong[np.arange(len(wrong)), self.label[part]] -= 1
        return -step * sums.of(np.repeat(wrong, self.features, axis=0))

    def loss(self, table: np.ndarray) -> float:
        chance = _softmax(table[self.feature].astype(np.float64).sum(axis=1))
        return float(-np.log(chance[np.arange(len(chance)), self.label] + 1e-30).mean())


def _softmax(scores: np.ndarray) -> np.ndarray:
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def _drawn(chance: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """A column for each row, by its chances."""
    upto = np.cumsum(chance, axis=1)
    return np.asarray((upto < random.random((len(chance), 1)) * upto[:, -1:]).sum(axis=1))
