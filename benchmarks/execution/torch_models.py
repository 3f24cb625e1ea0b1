# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The training steps of python/baechi/models in plain PyTorch, for compare_frameworks.py.

They are written as one writes them in PyTorch: its own layers (LSTM, attention, batch and layer
normalization, Adam) wherever there is one, images in its channels-last format. `parameters` takes
the values that the collection's models begin with into the layouts that these layers want, and
`LOSSES[model](p, batch, config)` is the loss, which must equal the collection's.
"""

import torch
from torch.nn import functional as F


def parameters(arrays, device="cpu"):
    """Leaves by name, on a device; a filter becomes OIHW, channels last, an LSTM's weights
    PyTorch's."""
    tensors = {name: torch.from_numpy(array).to(device) for name, array in arrays.items()}
    result = {}
    for name, value in tensors.items():
        if value.ndim == 4:
            value = value.permute(3, 2, 0, 1).contiguous(memory_format=torch.channels_last)
        cell, _, leaf = name.rpartition("/")
        if leaf == "state" or leaf == "input":
            value = value.t().contiguous()
        elif cell.endswith("/inputs"):  # gnmt has a matrix for each input of a cell
            if leaf != "0":
                continue
            parts = [tensors[key] for key in sorted(tensors) if key.startswith(cell + "/")]
            name, value = cell[: -len("s")], torch.cat(parts).t().contiguous()
        result[name] = value.clone(memory_format=torch.preserve_format).requires_grad_()
    return result


def update(p, config):
    """What makes one step of the optimizer."""
    if config["optimizer"] == "adam":
        return torch.optim.Adam(p.values(), lr=config["learning_rate"], fused=True).step

    @torch.no_grad()
    def sgd():
        torch._foreach_add_(
            list(p.values()), [value.grad for value in p.values()], alpha=-config["learning_rate"]
        )

    return sgd


def mlp(p, batch, config):
    x = batch["x"]
    for i in range(config["layers"] + 1):
        x = F.relu(x) if i else x
        x = torch.addmm(p[f"{i}/b"], x, p[f"{i}/w"])
    return F.cross_entropy(x, batch["targets"])


def _embed(table, tokens):
    return F.embedding(tokens, table)


def _layer_norm(p, name, x):
    return F.layer_norm(x, x.shape[-1:], p[f"{name}/gain"], p[f"{name}/bias"], 1e-5)


def _attention(p, name, x, heads):
    b, s, d = x.shape
    q, k, v = (
        t.view(b, s, heads, d // heads).transpose(1, 2) for t in (x @ p[f"{name}/qkv"]).chunk(3, -1)
    )
    mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return mixed.transpose(1, 2).reshape(b, s, d) @ p[f"{name}/out"]


def _head(p, x, batch):
    logits = _layer_norm(p, "norm", x) @ p["head"]
    return F.cross_entropy(logits.flatten(0, 1), batch["targets"].flatten())


def transformer(p, batch, config):
    x = _embed(p["tokens"], batch["tokens"]) + p["positions"]
    for i in range(config["layers"]):
        block = f"blocks/{i}"
        x = x + _attention(p, block, _layer_norm(p, f"{block}/norm1", x), config["heads"])
        h = _layer_norm(p, f"{block}/norm2", x) @ p[f"{block}/w1"] + p[f"{block}/b1"]
        x = x + F.gelu(h, approximate="tanh") @ p[f"{block}/w2"] + p[f"{block}/b2"]
    return _head(p, x, batch)


def moe(p, batch, config):
    x, balance = _embed(p["tokens"], batch["tokens"]) + p["positions"], 0.0
    for i in range(config["layers"]):
        block = f"blocks/{i}"
        x = x + _attention(p, block, _layer_norm(p, f"{block}/norm1", x), config["heads"])
        h, unbalance = _mixture(p, block, _layer_norm(p, f"{block}/norm2", x), config)
        x, balance = x + h, balance + unbalance
    return _head(p, x, batch) + config["balance"] * balance


def _mixture(p, block, x, config):
    experts = config["experts"]
    probabilities = F.softmax(x @ p[f"{block}/router"], -1)
    with torch.no_grad():
        chosen = probabilities.topk(2, -1).indices.transpose(1, 2)  # [batch, choice, token]
        hot = F.one_hot(chosen, experts).to(x.dtype)
        queue = hot.flatten(1, 2)
        place = ((queue.cumsum(1) - queue) * queue).sum(-1).view(chosen.shape).long()
        capacity = max(1, int(config["capacity"] * 2 * config["sequence"] / experts))
        places = F.one_hot(place.clamp(max=capacity), capacity + 1)[..., :capacity].to(x.dtype)
        dispatch = torch.einsum("bkse,bksc->ebcs", hot, places)
    gates = torch.einsum("bkse,bse->bks", hot, probabilities)
    gates = gates / gates.sum(1, keepdim=True)
    combine = torch.einsum("bkse,bksc->ebsc", hot * gates[..., None], places)
    total = 0.0
    for e in range(experts):
        h = F.gelu(dispatch[e] @ x @ p[f"{block}/experts/{e}/w1"], approximate="tanh")
        total = total + combine[e] @ (h @ p[f"{block}/experts/{e}/w2"])
    return total, experts * (hot[:, 0].mean((0, 1)) * probabilities.mean((0, 1))).sum()


def _lstm(p, name, x, reverse=False):
    """A layer over [time, batch, features]."""
    x = x.flip(0) if reverse else x
    bias = p[f"{name}/bias"]
    zero = x.new_zeros(1, x.shape[1], bias.numel() // 4)
    weights = [p[f"{name}/input"], p[f"{name}/state"], bias, torch.zeros_like(bias)]
    y = torch._VF.lstm(x, (zero, zero), weights, True, 1, 0.0, True, False, False)[0]
    return y.flip(0) if reverse else y


def other_bias(bias):
    """A cell's second bias, which JAX's has not; on CUDA PyTorch's gradients need both."""
    return torch.zeros_like(bias) if bias.is_cuda else None


def lstm(p, batch, config):
    x = batch["inputs"]
    for i in range(config["layers"]):
        x = _lstm(p, str(i), x)
    return (x - batch["targets"]).square().sum(-1).mean()


def gnmt(p, batch, config):
    layers = config["layers"]
    x = _embed(p["encoder/embedding"], batch["source"])
    x = torch.cat(
        [_lstm(p, "encoder/forward", x), _lstm(p, "encoder/reverse", x, reverse=True)], -1
    )
    for i in range(layers - 1):
        y = _lstm(p, f"encoder/upper/{i}", x)
        x = y + x if i else y
    memory = x.transpose(0, 1)

    attention = "decoder/attention"
    keys = memory @ p[f"{attention}/key"]
    steps = _embed(p["decoder/embedding"], batch["inputs"])
    zero = torch.zeros_like(steps[0])
    states, context, outputs = [(zero, zero)] * layers, zero, []
    for x in steps.unbind(0):
        for i in range(layers):
            cell = f"decoder/cells/{i}"
            bias = p[f"{cell}/bias"]
            weights = p[f"{cell}/input"], p[f"{cell}/state"], bias, other_bias(bias)
            states[i] = torch._VF.lstm_cell(torch.cat([x, context], -1), states[i], *weights)
            x = states[i][0] + x if i > 1 else states[i][0]
            if i == 0:
                hidden = torch.tanh((x @ p[f"{attention}/query"])[:, None] + keys)
                scores = F.softmax(hidden @ p[f"{attention}/score"], -1)
                context = (scores[:, None] @ memory)[:, 0]
        outputs.append(x)
    logits = torch.stack(outputs) @ p["head/w"] + p["head/b"]
    return F.cross_entropy(logits.flatten(0, 1), batch["targets"].flatten())


def _image(batch):
    return batch["x"].permute(0, 3, 1, 2)  # channels last as it is


def _classify(p, x, batch):
    return F.cross_entropy(x.mean((2, 3)) @ p["classifier/w"] + p["classifier/b"], batch["targets"])


def _convolve(weight, x, stride=1, valid=False):
    around = 0 if valid else (weight.shape[2] // 2, weight.shape[3] // 2)
    return F.conv2d(x, weight, stride=stride, padding=around)


def _normed(p, name, x, stride=1, valid=False):
    x = _convolve(p[f"{name}/w"], x, stride, valid)
    return F.batch_norm(
        x, None, None, p[f"{name}/gain"], p[f"{name}/bias"], training=True, eps=1e-3
    )


def convnet(p, batch, config):
    x = _image(batch)
    for i in range(config["layers"]):
        x = F.relu(_convolve(p[f"layers/{i}"], x), inplace=True)
    return _classify(p, x, batch)


def resnet(p, batch, config):
    imagenet = config["stem"] == "imagenet"
    x = F.relu(_normed(p, "stem", _image(batch), 2 if imagenet else 1), inplace=True)
    x = F.max_pool2d(x, 3, 2, 1) if imagenet else x
    for i, blocks in enumerate(map(int, config["blocks"].split("-"))):
        for j in range(blocks):
            block, stride = f"stages/{i}/{j}", 2 if i and not j else 1
            y = F.relu(_normed(p, f"{block}/reduce", x), inplace=True)
            y = F.relu(_normed(p, f"{block}/middle", y, stride), inplace=True)
            y = _normed(p, f"{block}/expand", y)
            x = F.relu(y + (x if j else _normed(p, f"{block}/shortcut", x, stride)), inplace=True)
    return _classify(p, x, batch)


def inception(p, batch, config):
    if config["stem"] != "short" or not config["blocks"].endswith("-0"):
        raise ValueError("only the short stem and blocks A and B")

    def chain(name, x, last=None):
        """The convolutions l0, l1, ... below a name; `last` are the options of the last one."""
        present = sorted(
            {int(key[len(name) + 2 :].split("/")[0]) for key in p if key.startswith(name + "/l")}
        )
        for i in present:
            options = last if last and i == present[-1] else ()
            x = F.relu(_normed(p, f"{name}/l{i}", x, *options), inplace=True)
        return x

    x = F.relu(_normed(p, "stem/l0", _image(batch), 2, True), inplace=True)
    x = F.relu(_normed(p, "stem/l1", x, 1, True), inplace=True)
    a, b, _ = map(int, config["blocks"].split("-"))

    def block(name, x, branches):
        parts = [chain(f"{name}/l0/{branch}", x) for branch in branches]
        pooled = chain(f"{name}/l0/pool", F.avg_pool2d(x, 3, 1, 1))
        return torch.cat([*parts, pooled], 1)

    for i in range(a):
        x = block(f"a{i}", x, ("b1x1", "b5x5", "b3x3"))
    if b:
        parts = [
            chain(f"reduction_b/l0/{branch}", x, (2, True)) for branch in ("b3x3", "b3x3twice")
        ]
        x = torch.cat([*parts, F.max_pool2d(x, 3, 2)], 1)
    for i in range(b):
        x = block(f"b{i}", x, ("b1x1", "b7x7", "b7x7twice"))
    return _classify(p, x, batch)


LOSSES = {f.__name__: f for f in (mlp, transformer, moe, lstm, gnmt, convnet, resnet, inception)}


def training_step(model, arrays, config, device="cpu", compiler=None):
    """A function that makes one step and returns its loss as a number; `compiler`, as
    torch.compile, is for the loss and its gradients."""
    leaves = {
        name.removeprefix("params/"): array
        for name, array in arrays.items()
        if name.startswith("params/")
    }
    p = parameters(leaves, device)
    batch = {
        name.removeprefix("batch/"): torch.from_numpy(array).to(device)
        for name, array in arrays.items()
        if name.startswith("batch/")
    }
    batch = {
        name: value.long() if value.dtype == torch.int32 else value for name, value in batch.items()
    }
    loss_of, optimize = LOSSES[model], update(p, config)
    if compiler:
        loss_of = compiler(loss_of)

    def step():
        for value in p.values():
            value.grad = None
        loss = loss_of(p, batch, config)
        loss.backward()
        optimize()
        return loss.item()

    return step
