# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Who computes the replicas of a step with a late state (docs/replicas.md): threads of one process,
or the ranks that mpirun, torchrun, srun or `BAECHI_RANKS` has started, of which the first has the
store."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import itertools
import os
import pickle
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.connection import Connection
from typing import Any

import jax
import numpy as np

from baechi.common import board
from baechi.common.launch import Launch, find_launch
from baechi.jax import random_keys
from baechi.jax.stale_saved import content_of
from baechi.replicas.arguments import StoreError
from baechi.replicas.meeting import First, Future, Member, Other, result_of
from baechi.replicas.remote import NotServed, RemoteStore, connect, hears
from baechi.replicas.served import StoreServer
from baechi.replicas.store import ParameterStore, StoreReport

Tables = Mapping[str, np.ndarray]
Make = Callable[[Mapping[str, Any]], ParameterStore]
# By replica: what its call has returned beside the state, and what it has kept of that.
Made = dict[int, tuple[Any, list[Any]]]
Fails = Callable[[StoreError], None]

# All ranks make the same steps in the same order.
_numbers = itertools.count()


class Alone:
    """One process has all replicas."""

    def __init__(self, make: Make, tables: Tables, replicas: int):
        self.store: ParameterStore | RemoteStore = make(tables)
        self.mine: Sequence[int] = range(replicas)

    def digest(self, batch: Any) -> bytes:
        """Of what all ranks must call with."""
        return b""

    def give(self, digest: bytes, made: Made) -> Future[Made]:
        """What this rank's replicas have made of a call, for that of all."""
        answer: Future[Made] = Future()
        answer.set_result(made)
        return answer

    def meet(self, what: str) -> None:
        """Waits until all ranks have come as far. what: they do, in words."""

    def values(self) -> dict[str, np.ndarray]:
        """The tables with all updates."""
        assert isinstance(self.store, ParameterStore)
        self.store.drain()
        return {name: self.store.read(name) for name in self.store.tables}

    def save(self, write: Callable[[bytes], None]) -> None:
        """Gives the store's file, of all updates, to who writes it."""
        assert isinstance(self.store, ParameterStore)
        write(content_of(self.store))

    def report(self) -> StoreReport:
        assert isinstance(self.store, ParameterStore)
        return self.store.report()

    def fail(self, worker: int | None, error: BaseException) -> None:
        pass

    def close(self) -> None:
        pass


class Launched(Alone):
    """A rank of several. digest: of what all must have given alike."""

    def __init__(
        self,
        make: Make,
        tables: Tables,
        replicas: int,
        launch: Launch,
        digest: bytes,
        patience: float,
        fails: Fails,
    ):
        self._launch, self._patience, self._replicas = launch, patience, replicas
        self.mine = self._of(launch.rank)
        self._number = next(_numbers)
        self._server: StoreServer | None = None
        self._member: Member
        self._missing: Callable[[], list[int]] = list
        self._last: dict[str, np.ndarray] | None = None  # once it is closed
        try:
            if launch.rank == 0:
                self._serve(make(tables), fails)
            else:
                # What is wrong with its options is told here, too.
                make({name: (1, rows.shape[1]) for name, rows in tables.items()})
                self._join(fails)
            for rank, other in enumerate(self._all("makes the step", digest)):
                if other != digest:
                    raise StoreError(
                        f"rank {rank} makes the step with another state or other options than rank "
                        f"{launch.rank}: give all ranks the same, from the same seeds"
                    )
        except BaseException as error:
            if hasattr(self, "_member"):
                self.fail(None, error)
                self.close()
            elif self._server is not None:
                self._server.close()
            raise

    def digest(self, batch: Any) -> bytes:
        return digest_of(batch)

    def give(self, digest: bytes, made: Made) -> Future[Made]:
        mine = {
            worker: (packed(jax.tree.leaves(rest)), packed(kept))
            for worker, (rest, kept) in made.items()
        }
        tree = jax.tree.structure(next(iter(made.values()))[0])
        answer: Future[Made] = Future()

        def all_have(said: Future[list[Any]]) -> None:
            try:
                every: Made = {}
                for rank, (other, theirs) in enumerate(said.result()):
                    if other != digest:
                        raise StoreError(
                            f"rank {rank} calls the step with other arguments than rank "
                            f"{self._launch.rank}: give all ranks the same, of which each replica "
                            "takes its part"
                        )
                    for worker, (leaves, kept) in theirs.items():
                        every[worker] = jax.tree.unflatten(tree, unpacked(leaves)), unpacked(kept)
            except BaseException as error:
                answer.set_exception(error)
            else:
                answer.set_result(every)

        self._member.say("calls the step", (digest, mine)).add_done_callback(all_have)
        return answer

    def meet(self, what: str) -> None:
        self._all(what, None)

    def _all(self, what: str, mine: Any) -> list[Any]:
        found: list[Any] = result_of(self._member.say(what, mine), self._patience, self._missing)
        return found

    def values(self) -> dict[str, np.ndarray]:
        if self._last is not None:
            return {name: rows.copy() for name, rows in self._last.items()}
        self._flush()
        return self._values("asks for the state")

    def save(self, write: Callable[[bytes], None]) -> None:
        self._flush()
        self.meet("saves the state")
        if self._launch.rank == 0:
            super().save(write)
        self.meet("has saved the state")

    def _flush(self) -> None:
        if isinstance(self.store, RemoteStore):
            for worker in self.mine:
                self.store.flush(worker)

    def _values(self, what: str) -> dict[str, np.ndarray]:
        """Once all ranks have sent all updates."""
        self.meet(what)
        mine = super().values() if self._launch.rank == 0 else None
        found: dict[str, np.ndarray] = self._all("takes the state", mine)[0]
        return found

    def report(self) -> StoreReport:
        if self._launch.rank:
            raise StoreError(
                f"rank {self._launch.rank} has no report of the store, which is at rank 0: ask "
                "there"
            )
        return super().report()

    def fail(self, worker: int | None, error: BaseException) -> None:
        where = f"rank {self._launch.rank}"
        who = where if worker is None else f"replica {worker}, on {where},"
        self._member.fail(f"{who} has failed: {type(error).__name__}: {error}")

    def close(self) -> None:
        """When all ranks have nothing to ask for any more."""
        with contextlib.suppress(StoreError):  # was told before
            self._last = self._values("closes the step")
        self._member.close()
        if self._server is not None:
            self._server.close()

    def _of(self, rank: int) -> Sequence[int]:
        count, ranks = self._replicas, self._launch.ranks
        return range(count * rank // ranks, count * (rank + 1) // ranks)

    def _names(self, rank: int) -> str:
        mine = list(map(str, self._of(rank)))
        return ("replica " if len(mine) == 1 else "replicas ") + ", ".join(mine)

    def _serve(self, store: ParameterStore, fails: Fails) -> None:
        first = First(self._launch.ranks, self._names, fails, self._patience)
        self.store, self._member, self._missing = store, first, first.missing

        def meets(asked: tuple[Any, ...], connection: Connection) -> None:
            if asked == ("rank", asked[1], self._number):
                connection.send("joined")
                first.serve(asked[1], connection)

        launch = self._launch
        if launch.here == launch.ranks:
            self._server = StoreServer(store, ("127.0.0.1", 0), None, meets)
            place = board.place_of(launch, "stale", self._number)
            told = {"address": self._server.address, "key": self._server.key.hex()}
            board.write(place, {"pid": os.getpid(), **told})
            try:
                first.wait_for_all(self._patience)
            finally:
                place.unlink(missing_ok=True)
        else:
            host, port = self._place()
            everywhere = host not in ("localhost", "127.0.0.1")
            host = "0.0.0.0" if everywhere else host
            self._server = StoreServer(store, (host, port), _key(), meets)
            first.wait_for_all(self._patience)

    def _join(self, fails: Fails) -> None:
        launch, connection = self._launch, None
        looks = board.looks()
        while connection is None:
            if next(looks) > self._patience:
                raise StoreError(
                    f"rank 0 has not made the step after {self._patience:g} s: all ranks make it; "
                    "look at what it says, or give more patience"
                )
            found = self._found()
            if found is not None:
                says = "rank", launch.rank, self._number
                connection = _connected(*found, says, self._patience)
        assert found is not None
        self._member = Other(launch.rank, connection, fails, self._patience)
        self.store = RemoteStore(*found)

    def _found(self) -> tuple[tuple[str, int], bytes] | None:
        launch = self._launch
        if launch.here != launch.ranks:
            return self._place(), _key()
        said = board.read(board.place_of(launch, "stale", self._number))
        if said is None or not board.lives(said["pid"]):
            return None
        host, port = said["address"]
        return (host, port), bytes.fromhex(said["key"])

    def _place(self) -> tuple[str, int]:
        if self._launch.place is None:
            raise StoreError(
                f"{self._launch.launcher} has started {self._launch.ranks} ranks on several "
                "machines, and does not say where rank 0 is: set BAECHI_COORDINATOR=host:port for "
                "all of them, a port of rank 0's machine that is free"
            )
        return self._launch.place


def join(
    ranks: str | None,
    make: Make,
    tables: Tables,
    replicas: int,
    alike: Mapping[str, Any],
    patience: float,
    fails: Fails,
) -> Alone:
    """make: a store of tables. alike: what all ranks must give the same of, beside them."""
    if ranks not in (None, "launcher"):
        raise TypeError(
            f"ranks is {ranks!r}: give 'launcher' for the processes that mpirun, torchrun or srun "
            "has started, or None for threads of this one"
        )
    launch = find_launch() if ranks else None
    if launch is None:
        return Alone(make, tables, replicas)
    if replicas < launch.ranks:
        raise StoreError(
            f"{launch.launcher} has started {launch.ranks} ranks for {replicas} replicas: give "
            "each one at least a replica"
        )
    digest = digest_of((tables, alike))
    return Launched(make, tables, replicas, launch, digest, patience, fails)


def digest_of(values: Any) -> bytes:
    """Of arrays, keys, numbers and words; other values have no bits that all ranks share."""
    made = hashlib.blake2b(digest_size=16)
    for leaf in jax.tree.leaves(values):
        kind = random_keys.kind(leaf)
        data = random_keys.data_of(leaf) if kind else leaf
        if hasattr(data, "dtype"):
            array = np.ascontiguousarray(data)
            made.update(f"{kind} {array.dtype} {array.shape}".encode())
            made.update(array.reshape(-1).view(np.uint8).data)
        else:
            simple = isinstance(data, bool | int | float | complex | str | bytes)
            made.update((repr(data) if simple else type(data).__qualname__).encode())
    return made.digest()


@dataclasses.dataclass(frozen=True)
class _Key:
    """A typed key of JAX's, between processes."""

    kind: str
    data: np.ndarray


def packed(leaves: Sequence[Any]) -> list[Any]:
    """As they are sent."""
    kinds = map(random_keys.kind, leaves)
    return [
        _Key(kind, np.asarray(random_keys.data_of(leaf))) if kind else leaf
        for kind, leaf in zip(kinds, leaves, strict=True)
    ]


def unpacked(leaves: Sequence[Any]) -> list[Any]:
    def one(leaf: Any) -> Any:
        if not isinstance(leaf, _Key):
            return leaf
        return jax.random.wrap_key_data(jax.numpy.asarray(leaf.data), impl=leaf.kind)

    return list(map(one, leaves))


def _connected(
    address: tuple[str, int], key: bytes, says: tuple[Any, ...], patience: float
) -> Connection | None:
    """None: there is none yet, or it is another step's."""
    try:
        connection = connect(address, key)
    except NotServed:
        return None
    try:
        connection.send(says)
        if hears(connection, patience) and connection.recv() == "joined":
            return connection
    except (OSError, EOFError, pickle.UnpicklingError):
        pass
    connection.close()
    return None


def _key() -> bytes:
    key = os.environ.get("BAECHI_KEY", "")
    if not key:
        raise StoreError(
            "the ranks are on several machines, and whoever reaches rank 0's port could run code "
            "there: set BAECHI_KEY to the same words for all of them, which nobody else knows"
        )
    return key.encode()
