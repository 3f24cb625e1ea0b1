# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Training loops of PyTorch, for tests; as a program, what DistributedDataParallel computes of
them with two processes:

    python ddp_steps.py FILE.pt
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import nn

import baechi.torch

RANKS, STEPS, BATCH = 2, 4, 16


class Unused(nn.Module):
    """With parameters that no loss depends on."""

    def __init__(self) -> None:
        super().__init__()
        self.used, self.unused = nn.Linear(8, 4), nn.Linear(8, 4)

    def forward(self, x: Any) -> Any:
        return self.used(x)


class NormOfEach(nn.BatchNorm1d):
    """Batch normalisation with the statistics of each of `parts` parts of the batch, and the
    first one's in the buffers: what BatchNorm1d within DistributedDataParallel is."""

    def __init__(self, features: int, parts: int):
        super().__init__(features)
        self.parts = parts

    def forward(self, x: Any) -> Any:
        if not self.training:
            return super().forward(x)
        parts = x.unflatten(0, (self.parts, -1))
        mean = parts.mean(1, keepdim=True)
        square = ((parts - mean) ** 2).mean(1, keepdim=True)
        made = (parts - mean) / torch.sqrt(square + self.eps) * self.weight + self.bias
        with torch.no_grad():
            count = parts.shape[1]
            self.num_batches_tracked += 1
            self.running_mean += self.momentum * (mean[0, 0] - self.running_mean)
            unbiased = square[0, 0] * count / (count - 1)
            self.running_var += self.momentum * (unbiased - self.running_var)
        return made.flatten(0, 1)


def linear() -> nn.Module:
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))


def normed(norm: Callable[[int], nn.Module]) -> nn.Module:
    return nn.Sequential(nn.Linear(8, 16), norm(16), nn.ReLU(), nn.Linear(16, 4))


def total(made: Any, y: Any) -> Any:
    return nn.functional.cross_entropy(made, y, reduction="sum")


class Loop(NamedTuple):
    """model: DDP's; ours: that for the whole batch, where it is another; scale: what our loss
    is divided by; ddp: options of DDP."""

    model: Callable[[], nn.Module] = linear
    loss: Callable[[Any, Any], Any] = nn.functional.cross_entropy
    ours: Callable[[], nn.Module] | None = None
    scale: float = 1
    ddp: dict[str, Any] = {}
    accumulate: int = 1
    clip: float | None = None

    def made(self) -> tuple[nn.Module, torch.optim.Optimizer]:
        """Of the whole batch."""
        torch.manual_seed(0)
        model = (self.ours or self.model)()
        return model, optimizer_of(model)


LOOPS = {
    "mean of the parts": Loop(),
    "loss that is a sum": Loop(loss=total, scale=RANKS),
    "unused parameters": Loop(Unused, ddp={"find_unused_parameters": True}),
    "accumulation": Loop(accumulate=2),
    "buckets": Loop(ddp={"bucket_cap_mb": 0.0005, "gradient_as_bucket_view": True}),
    "static graph": Loop(ddp={"static_graph": True}),
    "clipping": Loop(clip=0.05),
    "norm of each": Loop(
        lambda: normed(nn.BatchNorm1d), ours=lambda: normed(lambda n: NormOfEach(n, RANKS))
    ),
    # SyncBatchNorm itself is for GPUs alone; its statistics are those of the whole batch.
    "norm of all": Loop(lambda: normed(GatheredNorm), ours=lambda: normed(nn.BatchNorm1d)),
}


class GatheredNorm(nn.BatchNorm1d):
    """What SyncBatchNorm is, of the statistics of all processes, on CPUs."""

    def forward(self, x: Any) -> Any:
        from torch.distributed.nn.functional import all_reduce

        count = RANKS * len(x)
        mean = all_reduce(x.sum(0)) / count
        square = all_reduce(((x - mean) ** 2).sum(0)) / count
        with torch.no_grad():
            self.num_batches_tracked += 1
            self.running_mean += self.momentum * (mean - self.running_mean)
            self.running_var += self.momentum * (square * count / (count - 1) - self.running_var)
        return (x - mean) / torch.sqrt(square + self.eps) * self.weight + self.bias


def optimizer_of(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=0.01)


def batches() -> list[tuple[Any, Any]]:
    generator = torch.Generator().manual_seed(1)
    return [
        (
            torch.randn(BATCH, 8, generator=generator),
            torch.randint(0, 4, (BATCH,), generator=generator),
        )
        for _ in range(STEPS)
    ]


def train(loop: Loop, rank: int, compiled: bool = False) -> dict[str, Any]:
    """DDP's own loop, as PyTorch's documentation has it; compiled: each rank's model is."""
    torch.manual_seed(0)
    inner = loop.model()
    own = inner
    if compiled:
        options = {"machine": "host:2", "costs": "roofline", "budget": "0"}
        own = torch.compile(inner, backend="baechi", options=options)
    model = nn.parallel.DistributedDataParallel(own, **loop.ddp)
    optimizer = optimizer_of(model)
    for number, (x, y) in enumerate(batches(), 1):
        x, y = x.chunk(RANKS)[rank], y.chunk(RANKS)[rank]
        due = number % loop.accumulate == 0
        with contextlib.nullcontext() if due else model.no_sync():
            loop.loss(model(x), y).backward()
        if not due:
            continue
        if loop.clip is not None:
            nn.utils.clip_grad_norm_(model.parameters(), loop.clip)
        optimizer.step()
        optimizer.zero_grad()
    return {name: value.clone() for name, value in inner.state_dict().items()}


def _rank(rank: int, store: str, file: str) -> None:
    torch.set_num_threads(1)
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{store}", rank=rank, world_size=RANKS
    )
    made = {name: train(loop, rank) for name, loop in LOOPS.items()}
    made["compiled"] = train(Loop(), rank, compiled=True)
    if not baechi.torch.graphs():
        raise RuntimeError("nothing was compiled")
    if rank == 0:
        torch.save(made, file)
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(_rank, (f"{folder}/store", sys.argv[1]), nprocs=RANKS)
