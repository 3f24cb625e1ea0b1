# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The layers of random modules: what makes them, and what calls them.

A layer is drawn for the form that the data has before it: 'rows' (B, F), 'sequences'
(B, T, F), 'images' (B, C, H, W) or 'tokens' (B, T) of integers.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable

Shape = tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class Layer:
    """`make`: statements of `__init__`, with `{n}` for the layer's number; `call`: of
    `forward`, which make `x` from `x`."""

    make: tuple[str, ...]
    call: tuple[str, ...]
    shape: Shape  # afterwards
    form: str

    def sources(self, number: int) -> tuple[list[str], list[str]]:
        return (
            [line.replace("{n}", str(number)) for line in self.make],
            [line.replace("{n}", str(number)) for line in self.call],
        )


Maker = Callable[[random.Random, Shape], Layer | None]
_TABLE: dict[str, list[Maker]] = {"rows": [], "sequences": [], "images": [], "tokens": []}


def layer(*forms: str) -> Callable[[Maker], Maker]:
    """Enters a maker into the table, for data of these forms."""

    def enter(maker: Maker) -> Maker:
        for form in forms:
            _TABLE[form].append(maker)
        return maker

    return enter


def draw(choose: random.Random, form: str, shape: Shape) -> Layer:
    while True:
        found = choose.choice(_TABLE[form])(choose, shape)
        if found:
            return found


def form_of(shape: Shape) -> str:
    return {2: "rows", 3: "sequences", 4: "images"}[len(shape)]


def _module(text: str, shape: Shape) -> Layer:
    return Layer((f"self.l{{n}} = {text}",), ("x = self.l{n}(x)",), shape, form_of(shape))


def _plain(text: str, shape: Shape) -> Layer:
    return Layer((), (f"x = {text}",), shape, form_of(shape))


@layer("rows", "rows", "sequences", "sequences")
def linear(choose: random.Random, shape: Shape) -> Layer:
    width = choose.choice((3, 4, 6, 8))
    bias = choose.choice(("", "", ", bias=False"))
    return _module(f"nn.Linear({shape[-1]}, {width}{bias})", (*shape[:-1], width))


@layer("rows", "sequences", "images")
def activation(choose: random.Random, shape: Shape) -> Layer:
    names = (
        "nn.ReLU()",
        "nn.GELU()",
        "nn.Tanh()",
        "nn.SiLU()",
        "nn.Sigmoid()",
        "nn.ELU()",
        "nn.LeakyReLU(0.2)",
        "nn.PReLU()",
        "nn.Softplus()",
        "nn.Hardswish()",
        "nn.ReLU(inplace=True)",
        "nn.GELU(approximate='tanh')",
        "nn.Mish()",
    )
    return _module(choose.choice(names), shape)


@layer("rows", "sequences", "images")
def elementwise(choose: random.Random, shape: Shape) -> Layer:
    forms = (
        "torch.sin(x) + x",
        "x * torch.sigmoid(x)",
        "x.clamp(-1.5, 1.5)",
        "x / (1 + x.abs())",
        "torch.where(x > 0.1, x, 0.3 * x)",
        "torch.maximum(x, -x * 0.5)",
        "x - x.mean(-1, keepdim=True)",
        "F.normalize(x, dim=-1)",
        "x.flip(-1) + x",
        "torch.exp(-x * x)",
        "x.masked_fill(x > 1.7, 0.5)",
        "x.cumsum(-1) * 0.3",
        "torch.roll(x, 1, -1) * 0.5 + x",
        "x.detach() * 0.1 + x",
        "F.softmax(x, -1) + x",
        "torch.log1p(x.abs())",
        "x * x.std(-1, keepdim=True)",
        "x.transpose(0, 1).contiguous().transpose(0, 1) * 2",
    )
    return _plain(choose.choice(forms), shape)


@layer("rows", "sequences", "images")
def dropout(choose: random.Random, shape: Shape) -> Layer:
    return _module(f"nn.Dropout({choose.choice((0.2, 0.5))})", shape)


@layer("rows", "sequences")
def norm(choose: random.Random, shape: Shape) -> Layer:
    affine = choose.choice(("", "", ", elementwise_affine=False"))
    name = choose.choice(("LayerNorm", "LayerNorm", "RMSNorm"))
    return _module(f"nn.{name}({shape[-1]}{affine})", shape)


@layer("rows")
def batch_norm(choose: random.Random, shape: Shape) -> Layer:
    options = choose.choice(
        ("", "", ", affine=False", ", track_running_stats=False", ", momentum=0.3")
    )
    return _module(f"nn.BatchNorm1d({shape[-1]}{options})", shape)


@layer("rows", "sequences")
def residual(choose: random.Random, shape: Shape) -> Layer:
    """A block that comes back to its width, with the same layer called twice sometimes."""
    width, hidden = shape[-1], choose.choice((3, 5))
    call = choose.choice(
        (
            "x = x + self.l{n}b(torch.relu(self.l{n}a(x)))",
            "x = x + self.l{n}b(torch.tanh(self.l{n}a(self.l{n}b(torch.relu(self.l{n}a(x))))))",
            "x = x * torch.sigmoid(self.l{n}b(self.l{n}a(x)))",
        )
    )
    make = (
        f"self.l{{n}}a = nn.Linear({width}, {hidden})",
        f"self.l{{n}}b = nn.Linear({hidden}, {width})",
    )
    return Layer(make, (call,), shape, form_of(shape))


@layer("rows", "sequences")
def tied(choose: random.Random, shape: Shape) -> Layer:
    """Two modules with one weight."""
    width = shape[-1]
    make = (
        f"self.l{{n}}a = nn.Linear({width}, {width})",
        f"self.l{{n}}b = nn.Linear({width}, {width}, bias=False)",
        "self.l{n}b.weight = self.l{n}a.weight",
    )
    return Layer(make, ("x = self.l{n}b(torch.tanh(self.l{n}a(x)))",), shape, form_of(shape))


@layer("rows", "sequences", "images")
def parameter(choose: random.Random, shape: Shape) -> Layer:
    """A parameter of the module's own, or a buffer that counts or averages."""
    width = shape[-1]
    kinds = (
        (
            (f"self.w{{n}} = nn.Parameter(torch.linspace(0.5, 1.5, {width}))",),
            ("x = x * self.w{n}",),
        ),
        (("self.w{n} = nn.Parameter(torch.tensor(0.7))",), ("x = x * self.w{n} + self.w{n}",)),
        (
            ("self.register_buffer('b{n}', torch.zeros(()))",),
            ("self.b{n} += 1", "x = x / self.b{n}"),
        ),
        (
            (f"self.register_buffer('b{{n}}', torch.zeros({width}))",),
            (
                "if self.training:",
                f"    mean = x.detach().reshape(-1, {width}).mean(0)",
                "    self.b{n}.mul_(0.9).add_(mean, alpha=0.1)",
                "x = x - self.b{n}",
            ),
        ),
    )
    make, call = choose.choice(kinds)
    return Layer(make, call, shape, form_of(shape))


@layer("rows")
def spread(choose: random.Random, shape: Shape) -> Layer | None:
    """Rows as short sequences, or as images."""
    if shape[1] % 2:
        return None
    if choose.random() < 0.5:
        return _plain(f"x.reshape({shape[0]}, 2, {shape[1] // 2})", (shape[0], 2, shape[1] // 2))
    return _plain("torch.stack([x, x * 0.5, -x], 1)", (shape[0], 3, shape[1]))


@layer("sequences")
def pooled(choose: random.Random, shape: Shape) -> Layer:
    b, t, f = shape
    flat = (b, f)
    forms = (
        ("x.mean(1)", flat),
        ("x[:, -1]", flat),
        ("x.amax(1)", flat),
        ("x.sum(1)", flat),
        ("x.flatten(1)", (b, t * f)),
        ("torch.cat([x[:, 0], x[:, -1]], -1)", (b, 2 * f)),
        ("torch.logsumexp(x, 1)", flat),
    )
    text, after = choose.choice(forms)
    return _plain(text, after)


@layer("sequences")
def attention(choose: random.Random, shape: Shape) -> Layer:
    width = shape[-1]
    heads = 2 if width % 2 == 0 else 1
    causal = choose.choice(("", ", is_causal=True"))
    forms = (
        Layer(
            (f"self.l{{n}} = nn.MultiheadAttention({width}, {heads}, batch_first=True)",),
            ("x = x + self.l{n}(x, x, x, need_weights=False)[0]",),
            shape,
            "sequences",
        ),
        Layer(
            (f"self.l{{n}} = nn.Linear({width}, {3 * width})",),
            (
                "q, k, v = self.l{n}(x).chunk(3, -1)",
                f"x = F.scaled_dot_product_attention(q, k, v{causal})",
            ),
            shape,
            "sequences",
        ),
        Layer(
            (
                f"self.l{{n}} = nn.TransformerEncoderLayer({width}, {heads}, 8, 0.0, "
                "batch_first=True)",
            ),
            ("x = self.l{n}(x)",),
            shape,
            "sequences",
        ),
    )
    return choose.choice(forms)


@layer("sequences")
def recurrent(choose: random.Random, shape: Shape) -> Layer:
    hidden = choose.choice((3, 4))
    name = choose.choice(("GRU", "LSTM", "RNN"))
    make = (f"self.l{{n}} = nn.{name}({shape[-1]}, {hidden}, batch_first=True)",)
    return Layer(make, ("x = self.l{n}(x)[0]",), (*shape[:-1], hidden), "sequences")


@layer("sequences")
def convolved_line(choose: random.Random, shape: Shape) -> Layer:
    out = choose.choice((3, 4))
    make = (f"self.l{{n}} = nn.Conv1d({shape[-1]}, {out}, 3, padding=1)",)
    call = ("x = self.l{n}(x.transpose(1, 2)).transpose(1, 2)",)
    return Layer(make, call, (*shape[:-1], out), "sequences")


@layer("images", "images")
def convolved(choose: random.Random, shape: Shape) -> Layer:
    b, c, h, w = shape
    out, stride, size = choose.choice((2, 3, 4)), choose.choice((1, 1, 2)), choose.choice((1, 3))
    groups = c if choose.random() < 0.2 else 1
    out = c if groups > 1 else out
    text = f"nn.Conv2d({c}, {out}, {size}, {stride}, {size // 2}, groups={groups})"
    return _module(text, (b, out, -(-h // stride), -(-w // stride)))


@layer("images")
def normalized_image(choose: random.Random, shape: Shape) -> Layer:
    c = shape[1]
    forms = (
        f"nn.BatchNorm2d({c})",
        f"nn.GroupNorm(1, {c})",
        f"nn.InstanceNorm2d({c}, affine=True)",
    )
    return _module(choose.choice(forms[: 2 if min(shape[2:]) < 2 else 3]), shape)


@layer("images")
def pooled_image(choose: random.Random, shape: Shape) -> Layer | None:
    b, c, h, w = shape
    if min(h, w) < 2:
        return None
    forms = (
        ("nn.MaxPool2d(2)", (b, c, h // 2, w // 2)),
        ("nn.AvgPool2d(2)", (b, c, h // 2, w // 2)),
        ("nn.MaxPool2d(3, 1, 1)", shape),
        ("nn.AvgPool2d(3, 1, 1)", shape),
        ("nn.AdaptiveAvgPool2d(1)", (b, c, 1, 1)),
        ("nn.Upsample(scale_factor=2)", (b, c, 2 * h, 2 * w)),
    )
    text, after = choose.choice(forms[: 5 if h > 4 else 6])
    return _module(text, after)


@layer("images")
def flattened_image(choose: random.Random, shape: Shape) -> Layer | None:
    b, c, h, w = shape
    if c * h * w > 64:
        return None
    forms = (
        ("x.flatten(1)", (b, c * h * w)),
        ("x.mean((2, 3))", (b, c)),
        ("x.amax((2, 3))", (b, c)),
    )
    text, after = choose.choice(forms)
    return _plain(text, after)


@layer("tokens")
def embedding(choose: random.Random, shape: Shape) -> Layer:
    width = choose.choice((4, 6))
    more = choose.choice(("", "", ", padding_idx=0"))
    return Layer(
        (f"self.l{{n}} = nn.Embedding(9, {width}{more})",),
        ("x = self.l{n}(x)",),
        (*shape, width),
        "sequences",
    )
