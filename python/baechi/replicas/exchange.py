# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Steps of data-parallel training in simulated time, by what is sent first."""

from __future__ import annotations

import ctypes
import dataclasses
from collections.abc import Sequence

from baechi.replicas import library

POLICIES = ("fifo", "slices", "p3", "tictac")
SERVERS = ("first", "turn", "better")


class ExchangeError(ValueError):
    """Layers or options that make no sense."""


@dataclasses.dataclass(frozen=True)
class Layer:
    name: str
    parameters: int  # float32
    forward_ns: int
    backward_ns: int


@dataclasses.dataclass(frozen=True)
class Exchange:
    step_ns: int
    compute_ns: int
    exchange_ns: int  # bytes of the busiest network card over its bytes per second
    pieces: int

    @property
    def bound_ns(self) -> int:
        """No order of messages has shorter steps."""
        return max(self.compute_ns, self.exchange_ns)


def simulate(
    layers: Sequence[Layer],
    policy: str,
    bytes_per_second: float,
    *,
    machines: int = 4,
    latency_ns: int = 50_000,
    message_ns: int = 0,
    slice_parameters: int | None = 50_000,
    servers: str = "first",
    stored: bool = False,
    asked: bool = False,
    server_bytes_per_second: float = 0,
    steps: int = 6,
) -> Exchange:
    """A step between machines that are workers and parameter servers. Without
    `slice_parameters` the best of twelve sizes is taken. The pieces of each array begin at the
    `first` server, or where the array before ended (`turn`), or at the `better` of these. A
    message is received while it is sent or, where it is `stored` in between, once it was. Servers
    send new values at once or, where they are `asked` to, tell of them first. They add so many
    bytes of gradients a second, 0: any number."""
    if policy not in POLICIES:
        raise ExchangeError(f"unknown policy '{policy}'; known: {', '.join(POLICIES)}")
    if servers not in SERVERS:
        raise ExchangeError(f"unknown servers '{servers}'; known: {', '.join(SERVERS)}")
    count = len(layers)
    options = library.ExchangeOptions(
        machines,
        POLICIES.index(policy),
        SERVERS.index(servers),
        stored,
        asked,
        bytes_per_second,
        server_bytes_per_second,
        latency_ns,
        message_ns,
        slice_parameters or 0,
        steps,
    )
    result = library.ExchangeResult()
    numbers = ctypes.c_int64 * count
    if library.library().baechiSimulateExchange(
        ctypes.c_size_t(count),
        (ctypes.c_char_p * count)(*(layer.name.encode() for layer in layers)),
        numbers(*(layer.parameters for layer in layers)),
        numbers(*(layer.forward_ns for layer in layers)),
        numbers(*(layer.backward_ns for layer in layers)),
        ctypes.byref(options),
        ctypes.byref(result),
    ):
        raise ExchangeError(library.error())
    return Exchange(result.step_ns, result.compute_ns, result.exchange_ns, result.pieces)
