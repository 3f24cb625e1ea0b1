# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What training loops do around a step, as users write it. Each idiom is lines of Python at
some of the loop's places; `{p}` is a parameter of the model, as an expression."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Idiom:
    """`own`: only in a loop of one's own, with `loss.backward()` between `backward` and
    `before_step`; `step`: only with `compile_step`."""

    name: str
    setup: tuple[str, ...] = ()  # before the loop
    start: tuple[str, ...] = ()  # of every iteration
    loss: tuple[str, ...] = ()  # after the loss is computed
    gradients: tuple[str, ...] = ()  # after backward
    end: tuple[str, ...] = ()  # of every iteration
    last: tuple[str, ...] = ()  # after the loop
    own: bool = False
    step: bool = False
    options: tuple[str, ...] = ()  # of compile_step


_NO_GRAD = "with torch.no_grad():"

IDIOMS = (
    Idiom(
        "clamping",
        end=(_NO_GRAD, "    for p in model.parameters():", "        p.clamp_(-0.4, 0.4)"),
    ),
    Idiom("data writes", end=("{p}.data.mul_(0.9)",)),
    Idiom("data assigned", end=("if i == 1:", "    {p}.data = {p}.data * 0.5")),
    Idiom("numpy writes", end=("{p}.detach().numpy()[...] *= 0.9",)),
    Idiom("zeroed", end=("if i == 1:", f"    {_NO_GRAD}", "        {p}.zero_()")),
    Idiom("initialized again", end=("if i == 1:", "    nn.init.constant_({p}, 0.2)")),
    Idiom(
        "averages",
        ("average = [p.detach().clone() for p in model.parameters()]",),
        end=(
            _NO_GRAD,
            "    for a, p in zip(average, model.parameters()):",
            "        a.lerp_(p, 0.3)",
        ),
        last=("for a in average:", "    note(a)"),
    ),
    Idiom(
        "averaged model",
        ("averaged = torch.optim.swa_utils.AveragedModel(model)",),
        end=("averaged.update_parameters(model)",),
        last=("for a in averaged.parameters():", "    note(a)"),
    ),
    Idiom("norms", end=("note(sum(p.detach().norm() for p in model.parameters()))",)),
    Idiom("one read", end=("note({p})",)),
    Idiom("vector", end=("note(nn.utils.parameters_to_vector(model.parameters()))",)),
    Idiom("evaluation", end=("model.eval()", _NO_GRAD, "    note(model(x))", "model.train()")),
    Idiom("other mode", start=("model.train(i % 2 == 0)",), last=("model.train()",)),
    Idiom(
        "copies",
        end=(
            "if i == 1:",
            "    other = copy.deepcopy(model).eval()",
            f"    {_NO_GRAD}",
            "        note(other(x))",
        ),
    ),
    Idiom(
        "loaded back",
        ("saved = copy.deepcopy(model.state_dict())",),
        end=("if i == 2:", "    model.load_state_dict(saved)"),
    ),
    Idiom(
        "checkpoint",
        end=(
            "if i == 1:",
            "    kept = copy.deepcopy([model.state_dict(), optimizer.state_dict()])",
            "if i == 3:",
            "    model.load_state_dict(kept[0])",
            "    optimizer.load_state_dict(kept[1])",
        ),
    ),
    Idiom(
        "step schedule",
        ("schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.3)",),
        end=("schedule.step()", "note(torch.tensor(schedule.get_last_lr()))"),
    ),
    Idiom(
        "cosine schedule",
        ("schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 4)",),
        end=("schedule.step()",),
    ),
    Idiom(
        "one cycle",
        (
            "schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=20, "
            "cycle_momentum=bool({'momentum', 'betas'} & set(optimizer.defaults)))",
        ),
        end=("schedule.step()",),
    ),
    Idiom("rate halved", end=("for group in optimizer.param_groups:", "    group['lr'] *= 0.5")),
    Idiom("frozen", end=("{p}.requires_grad_(i % 2 == 1)",), last=("{p}.requires_grad_(True)",)),
    Idiom(
        "optimizer's state",
        end=(
            "for held in optimizer.state.values():",
            "    for _, value in sorted(held.items()):",
            "        if torch.is_tensor(value):",
            "            note(value)",
        ),
    ),
    Idiom(
        "optimizer's state by name",
        end=(
            "for held in optimizer.state_dict()['state'].values():",
            "    for _, value in sorted(held.items()):",
            "        if torch.is_tensor(value):",
            "            note(value)",
        ),
    ),
    Idiom(
        "head on shared parts",
        (
            "head = tools.prepared(nn.Sequential(model, nn.Flatten(), nn.Linear({outputs}, 2)))",
            "second = torch.optim.SGD(head.parameters(), lr=0.05)",
            "second_step = STEP(head, F.mse_loss, second)",
        ),
        end=("note(second_step(x, tools.floats(i, (len(x), 2))))",),
    ),
    Idiom(
        "second loss",
        (
            "second = torch.optim.SGD(model.parameters(), lr=0.05)",
            "second_step = STEP(model, lambda out, _: out.square().mean(), second)",
        ),
        end=("if i % 2:", "    note(second_step(x, y))"),
    ),
    Idiom(
        "eager step",
        end=(
            "if i == 1:",
            "    optimizer.zero_grad()",
            "    model(x).square().mean().backward()",
            "    optimizer.step()",
            "    optimizer.zero_grad()",
        ),
    ),
    Idiom(
        "clipped norm",
        gradients=("note(nn.utils.clip_grad_norm_(model.parameters(), 0.5))",),
        own=True,
    ),
    Idiom(
        "clipped values",
        gradients=("nn.utils.clip_grad_value_(model.parameters(), 0.05)",),
        own=True,
    ),
    Idiom(
        "gradients read",
        gradients=(
            "for p in model.parameters():",
            "    if p.grad is not None:",
            "        note(p.grad)",
        ),
        own=True,
    ),
    Idiom(
        "gradients scaled",
        gradients=(
            "for p in model.parameters():",
            "    if p.grad is not None:",
            "        p.grad.mul_(0.5)",
        ),
        own=True,
    ),
    Idiom("hooks", ("{p}.register_hook(lambda g: g * 0.5)",), own=True),
    Idiom(
        "hooks after accumulation",
        (
            "def clamp(p):",
            "    p.grad.clamp_(-0.02, 0.02)",
            "{p}.register_post_accumulate_grad_hook(clamp)",
        ),
        own=True,
    ),
    Idiom(
        "penalty",
        loss=("loss = loss + 0.01 * sum(p.square().sum() for p in model.parameters())",),
        own=True,
    ),
    Idiom("scaled loss", loss=("loss = loss * 4",), own=True),
    Idiom(
        "accumulation",
        gradients=(
            "(criterion(net(x * 0.5 if x.is_floating_point() else x), y) * 0.5).backward()",
        ),
        own=True,
    ),
    Idiom(
        "twice through",
        loss=("loss = loss + net(x * 0.5 if x.is_floating_point() else x).square().mean()",),
        own=True,
    ),
    Idiom(
        "compiled evaluation",
        end=("net.eval()", _NO_GRAD, "    note(net(x))", "net.train()"),
        own=True,
    ),
    Idiom(
        "noise in gradients",
        gradients=(
            "for p in model.parameters():",
            "    if p.grad is not None:",
            "        p.grad += torch.randn_like(p) * 0.01",
        ),
        own=True,
    ),
    Idiom("norm option", options=("clip_grad_norm=0.5",), step=True),
    Idiom("value option", options=("clip_grad_value=0.05",), step=True),
    Idiom("accumulate option", options=("accumulate=2",), step=True),
)

OPTIMIZERS = (
    "SGD(PARAMS, lr=0.1)",
    "SGD(PARAMS, lr=0.05, momentum=0.9)",
    "Adam(PARAMS, lr=0.02)",
    "SGD(PARAMS, lr=0.05, momentum=0.8, nesterov=True, weight_decay=0.01)",
    "AdamW(PARAMS, lr=0.02)",
    "Adam(PARAMS, lr=0.01, amsgrad=True, weight_decay=0.02)",
)
# Less used ones.
MORE_OPTIMIZERS = (
    "RMSprop(PARAMS, lr=0.01)",
    "Adagrad(PARAMS, lr=0.05)",
    "NAdam(PARAMS, lr=0.01)",
    "Adamax(PARAMS, lr=0.01)",
    "RAdam(PARAMS, lr=0.01)",
    "Adadelta(PARAMS)",
    "Rprop(PARAMS, lr=0.01)",
    "ASGD(PARAMS, lr=0.05)",
)
