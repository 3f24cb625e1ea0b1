# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which processes were started together with this one, as runtime/ranks/Launch.cpp finds it."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import re
import secrets
import socket
import sys
from collections.abc import Callable, Mapping
from typing import Any

from baechi.common import users


@dataclasses.dataclass(frozen=True)
class Launch:
    """launcher: in words. job: of all ranks the same, of other jobs of this machine another.
    place: where rank 0 may listen for ranks of other machines, if something says it."""

    launcher: str
    rank: int
    ranks: int
    here: int  # how many of them are on this machine
    job: str
    place: tuple[str, int] | None = None


def find_launch(environment: Mapping[str, str] | None = None) -> Launch | None:
    """None where nothing has started several. Raises ValueError, which names the variable. Where
    this program has called `jax.distributed.initialize`, all of its processes call this, and wait
    here for each other."""
    given = os.environ if environment is None else environment
    _check_own(given)
    if environment is None and not given.get("BAECHI_RANKS") and (state := _jax_state()):
        return _of_jax(given, state)
    for variables, read in _LAUNCHERS:
        if all(given.get(name) for name in variables):
            found = read(given)
            if not 0 <= found.rank < found.ranks:
                raise ValueError(
                    f"{found.launcher} says that this is rank {found.rank} of {found.ranks}: "
                    "ranks count from 0"
                )
            place = _place(given) or found.place
            return dataclasses.replace(found, place=place) if found.ranks > 1 else None
    return None


def warn_of_whole(replicas: int, mend: str) -> None:
    """For a step of replicas that each of several processes computes as a whole."""
    if replicas < 2:
        return
    state = _jax_state()
    try:
        launch = None if state else find_launch(dict(os.environ))
        started = f"{launch.launcher} has started {launch.ranks} processes" if launch else ""
    except ValueError as error:
        started = f"several processes seem to be started ({error})"
    if state:
        started = f"jax.distributed has {state.num_processes} processes"
    if started:
        users.warn(
            f"replicas is {replicas}, and {started}: this one computes all replicas by itself, and "
            f"exchanges nothing with the others; {mend}"
        )


def _jax_state() -> Any:
    """That of `jax.distributed`, where it has several processes."""
    state = getattr(sys.modules.get("jax._src.distributed"), "global_state", None)
    if state is None or state.client is None or state.num_processes < 2:
        return None
    return state


_OF_JAX = "jax.distributed"
_SECONDS = 120  # that its processes wait for each other
_known: dict[int, Launch] = {}  # by the client that has told it


def _of_jax(given: Mapping[str, str], state: Any) -> Launch:
    """What its processes have told each other through its coordinator, once."""
    if (key := id(state.client)) in _known:
        return _known[key]
    rank, ranks = state.process_id, state.num_processes
    boot = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    machine = f"{socket.gethostname()} {boot}"
    said = []
    state.client.key_value_set(f"baechi/{rank}", f"{secrets.token_hex(8)} {machine}")
    for other in range(ranks):
        try:
            said.append(state.client.blocking_key_value_get(f"baechi/{other}", _SECONDS * 1000))
        except Exception as error:  # JAX's own
            raise ValueError(
                f"process {other} of jax.distributed's {ranks} has not come after {_SECONDS} s: "
                "all of them make the same steps, with ranks='launcher'"
            ) from error
    here = sum(each.partition(" ")[2] == machine for each in said)
    host, _, port = state.coordinator_address.rpartition(":")
    # Its coordinator listens at that port.
    place = host.strip("[]"), int(port) + 1 if int(port) < 65535 else int(port) - 1
    job = f"{state.coordinator_address}.{said[0].partition(' ')[0]}"
    _known[key] = Launch(_OF_JAX, rank, ranks, here, job, _place(given) or place)
    return _known[key]


def _number(given: Mapping[str, str], name: str) -> int:
    if not re.fullmatch(r"[0-9]{1,9}", given[name]):
        raise ValueError(f"{name} is '{given[name]}', not a number")
    return int(given[name])


def _check_own(given: Mapping[str, str]) -> None:
    """Half of a start is no start. An address by itself is of ranks that a launcher has started."""
    numbers = "BAECHI_RANKS", "BAECHI_RANK"
    if not any(given.get(name) for name in numbers):
        return
    for name in (*numbers, "BAECHI_COORDINATOR"):
        if not given.get(name):
            raise ValueError(
                f"{name} is not set: BAECHI_RANKS (how many processes), BAECHI_RANK (which one "
                "this is, from 0) and BAECHI_COORDINATOR (host:port of rank 0) go together"
            )


def _place(given: Mapping[str, str]) -> tuple[str, int] | None:
    if not (place := given.get("BAECHI_COORDINATOR")):
        return None
    host, _, port = place.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    bare = host[1:-1] if bracketed else host
    # Without brackets the last part of an address is taken for a port.
    is_host = bare and " " not in bare and (bracketed or ":" not in bare)
    if not is_host or not re.fullmatch("[0-9]{1,5}", port) or not 0 < int(port) < 65536:
        raise ValueError(f"BAECHI_COORDINATOR is '{place}', not host:port")
    return bare, int(port)


def _own(given: Mapping[str, str]) -> Launch:
    ranks = _number(given, "BAECHI_RANKS")
    place = given["BAECHI_COORDINATOR"]
    host = place.rpartition(":")[0].strip("[]")
    here = host in ("localhost", "127.0.0.1", "::1", socket.gethostname())
    job = f"{place}.{given.get('BAECHI_JOB', '')}"
    return Launch("BAECHI_RANKS", _number(given, "BAECHI_RANK"), ranks, ranks if here else 1, job)


def _open_mpi(given: Mapping[str, str]) -> Launch:
    ranks = _number(given, "OMPI_COMM_WORLD_SIZE")
    job = given.get("PMIX_NAMESPACE") or given.get("OMPI_MCA_ess_base_jobid") or str(os.getppid())
    here = _number(given, "OMPI_COMM_WORLD_LOCAL_SIZE")
    return Launch("mpirun", _number(given, "OMPI_COMM_WORLD_RANK"), ranks, here, job)


def _mpich(given: Mapping[str, str]) -> Launch:
    # Its proxy on this machine has started all of its ranks.
    ranks, here = _number(given, "PMI_SIZE"), _number(given, "MPI_LOCALNRANKS")
    return Launch("mpirun", _number(given, "PMI_RANK"), ranks, here, str(os.getppid()))


def _torchrun(given: Mapping[str, str]) -> Launch:
    names = ("MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT")
    job = ".".join(given.get(name, "") for name in names)
    port = _number(given, "MASTER_PORT")
    if not 0 < port < 65536:
        raise ValueError(f"MASTER_PORT is '{port}', not a port: give 1 to 65535")
    # torchrun itself listens at its port.
    place = given["MASTER_ADDR"], port + 1 if port < 65535 else port - 1
    ranks = _number(given, "WORLD_SIZE")
    if ranks > 1 and not given.get("LOCAL_WORLD_SIZE"):
        raise ValueError(
            "LOCAL_WORLD_SIZE is not set: with RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT it "
            "says how many of the ranks are on this machine, as torchrun does"
        )
    here = _number(given, "LOCAL_WORLD_SIZE") if ranks > 1 else 1
    return Launch("torchrun", _number(given, "RANK"), ranks, here, job, place)


def _slurm(given: Mapping[str, str]) -> Launch:
    ranks = _number(given, "SLURM_NTASKS")
    here = ranks if given.get("SLURM_STEP_NUM_NODES", "1") == "1" else 1
    job = f"{given['SLURM_JOB_ID']}.{given.get('SLURM_STEP_ID', '')}"
    return Launch("srun", _number(given, "SLURM_PROCID"), ranks, here, job)


_LAUNCHERS: list[tuple[tuple[str, ...], Callable[[Mapping[str, str]], Launch]]] = [
    (("BAECHI_RANKS", "BAECHI_RANK", "BAECHI_COORDINATOR"), _own),
    (("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"), _open_mpi),
    (("PMI_SIZE", "PMI_RANK", "MPI_LOCALNRANKS"), _mpich),
    (("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"), _torchrun),
    # Not in a batch script or a shell of salloc, which run once.
    (
        ("SLURM_JOB_ID", "SLURM_STEP_NODELIST", "SLURM_NTASKS", "SLURM_PROCID", "SLURM_LOCALID"),
        _slurm,
    ),
]
