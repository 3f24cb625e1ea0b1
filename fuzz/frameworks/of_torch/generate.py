# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random PyTorch programs: a module, and a loop that trains it; by a seed, the same every
time."""

from __future__ import annotations

import dataclasses
import random

from frameworks.of_torch import layers
from frameworks.of_torch.idioms import IDIOMS, MORE_OPTIMIZERS, OPTIMIZERS, Idiom
from frameworks.of_torch.layers import Layer, Shape

_MOST_IDIOMS = 3


@dataclasses.dataclass(frozen=True)
class Program:
    """`own`: the loop is PyTorch's, around a model that torch.compile has; else
    `compile_step` has the step. `given`: the form and shape of the inputs."""

    seed: int
    own: bool
    given: tuple[str, Shape]
    layers: tuple[Layer, ...]
    loss: str
    optimizer: str
    idioms: tuple[Idiom, ...]
    steps: int

    @property
    def source(self) -> str:
        return f"{_module(self)}\n\n\n{_loop(self)}"

    @property
    def outputs(self) -> Shape:
        return self.layers[-1].shape if self.layers else self.given[1]


def generate(seed: int) -> Program:
    choose = random.Random(seed)
    own = choose.random() < 0.5
    form = choose.choice(("rows", "rows", "sequences", "images", "tokens"))
    batch = choose.choice((2, 3, 4))
    shape = {
        "rows": (batch, choose.choice((3, 4, 6))),
        "sequences": (batch, choose.choice((2, 3)), choose.choice((4, 6))),
        "images": (batch, choose.choice((1, 2, 3)), choose.choice((3, 4, 5)), 4),
        "tokens": (batch, choose.choice((2, 3))),
    }[form]
    made = _layers(choose, form, shape)
    loss = choose.choice(("mse", "mse", "cross_entropy", "smooth_l1", "bce", "own"))
    idioms = [i for i in IDIOMS if (own and not i.step) or (not own and not i.own)]
    chosen = choose.sample(idioms, choose.randint(0, _MOST_IDIOMS))
    optimizers = 2 * OPTIMIZERS + MORE_OPTIMIZERS
    return Program(
        seed,
        own,
        (form, shape),
        made,
        loss,
        choose.choice(optimizers),
        tuple(chosen),
        choose.choice((3, 4, 5)),
    )


def _layers(choose: random.Random, form: str, shape: Shape) -> tuple[Layer, ...]:
    """Some layers, with at least one that has parameters."""
    made: list[Layer] = []
    count = choose.choice((1, 2, 3, 4, 6))
    while len(made) < count or not any(
        "Linear" in m or "Conv" in m or "Embedding" in m for layer in made for m in layer.make
    ):
        found = layers.draw(choose, form, shape)
        made.append(found)
        form, shape = found.form, found.shape
    return tuple(made)


def _module(program: Program) -> str:
    make, call = [], []
    for number, layer in enumerate(program.layers):
        made, called = layer.sources(number)
        make += made
        call += called
    lines = ["class Net(nn.Module):", "    def __init__(self):", "        super().__init__()"]
    lines += [f"        {line}" for line in make]
    lines += ["", "    def forward(self, x):"]
    lines += [f"        {line}" for line in call]
    return "\n".join([*lines, "        return x"])


_LOSSES = {
    "mse": "F.mse_loss",
    "cross_entropy": "lambda out, y: F.cross_entropy(out.flatten(0, -2), y.flatten())",
    "smooth_l1": "nn.SmoothL1Loss(beta=0.5)",
    "bce": "F.binary_cross_entropy_with_logits",
    "own": "lambda out, y: ((out - y).abs() ** 1.5).mean() + 0.1 * out.logsumexp(-1).mean()",
}


def _target(program: Program) -> str:
    shape = program.outputs
    if program.loss == "cross_entropy":
        shape = shape if len(shape) > 1 else (1, *shape)
        return f"tools.whole(i, {shape[:-1]}, {shape[-1]})"
    values = f"tools.floats(10 + i, {shape})"
    return f"torch.sigmoid({values})" if program.loss == "bce" else values


def _loop(program: Program) -> str:
    own, (form, shape) = program.own, program.given
    inputs = f"tools.whole(20 + i, {shape}, 9)" if form == "tokens" else f"tools.floats(i, {shape})"
    wrap = "tools.own_step" if own else "tools.step"
    options = "".join(f", {o}" for idiom in program.idioms for o in idiom.options)
    optimizer = program.optimizer.replace("PARAMS", "model.parameters()")
    setup = [
        "torch.manual_seed(3)",
        "model = tools.prepared(Net())",
        f"criterion = {_LOSSES[program.loss]}",
        f"optimizer = torch.optim.{optimizer}",
        "net = tools.compiled(model)"
        if own
        else f"step = tools.step(model, criterion, optimizer{options})",
        *_part(program, "setup"),
    ]
    body = [f"x, y = {inputs}, {_target(program)}", *_part(program, "start")]
    if own:
        body += [
            "loss = criterion(net(x), y)",
            *_part(program, "loss"),
            "optimizer.zero_grad()",
            "loss.backward()",
            *_part(program, "gradients"),
            "optimizer.step()",
        ]
    else:
        body.append("loss = step(x, y)")
    body += ["note(loss)", *_part(program, "end")]
    last = _part(program, "last")
    ends = ["for value in model.state_dict().values():", "    note(value)"]
    lines = [*setup, f"for i in range({program.steps}):", *[f"    {line}" for line in body], *last]
    text = "\n".join(f"    {line}" for line in [*lines, *ends])
    text = text.replace("STEP(", f"{wrap}(").replace("{outputs}", str(_flat(program.outputs)))
    return f"def train(tools):\n    note = tools.note\n{text}"


def _part(program: Program, place: str) -> list[str]:
    """The idioms' lines at a place, with a parameter of the model for `{p}`."""
    choose = random.Random(program.seed)
    found = []
    for idiom in program.idioms:
        # A negative number counts from the end: there are as many as the model has.
        name = f"list(model.parameters())[{choose.choice((0, -1, 0, -2))}]"
        found += [line.replace("{p}", name) for line in getattr(idiom, place)]
    return found


def _flat(shape: Shape) -> int:
    total = 1
    for size in shape[1:]:
        total *= size
    return total
