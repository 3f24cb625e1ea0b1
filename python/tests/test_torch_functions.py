# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Losses, modules and functions of PyTorch on a device: results and gradients are
PyTorch's within 1e-5 of the largest element.

Many are one step: each has parameters of its own, whose gradients are what a step
of momentum leaves, and buffers for its results.
"""

import copy
import functools

import pytest

import torch_support as support
from torch_support import F, nn, seeded, torch  # noqa: F401

pytestmark = support.needs_tools


class Case(nn.Module):
    """A function of parameters; its loss weighs every element of what it gives."""

    def __init__(self, function, *given):
        super().__init__()
        self.function = function
        floats = [x for x in given if x.is_floating_point()]
        # Of its own: cases share what they are given.
        self.given = nn.ParameterList([nn.Parameter(x.clone()) for x in floats])
        self.rest = [x for x in given if not x.is_floating_point()]
        eager = copy.deepcopy(function) if isinstance(function, nn.Module) else function
        with torch.no_grad():
            found = self.results(eager)
        self.weights = [torch.randn(x.shape) for x in found]
        for i, x in enumerate(found):
            self.register_buffer(f"found{i}", torch.zeros_like(x))

    def results(self, function):
        found = function(*self.given, *self.rest)
        leaves = torch.utils._pytree.tree_leaves(found)
        return [x for x in leaves if isinstance(x, torch.Tensor)]

    def forward(self):
        total = 0.0
        for i, x in enumerate(self.results(self.function)):
            getattr(self, f"found{i}").copy_(x.detach())
            if x.is_floating_point():
                finite = torch.where(torch.isfinite(x), x, torch.zeros(()))
                total = total + (finite * self.weights[i]).sum()
        return total

    def found(self):
        return [getattr(self, f"found{i}") for i in range(len(self.weights))]


class Together(nn.Module):
    def __init__(self, cases):
        super().__init__()
        self.cases = nn.ModuleDict(cases)

    def forward(self):
        return sum(case() for case in self.cases.values())


def of(function, **options):
    return functools.partial(function, **options)


def with_reductions(function, *given, **options):
    return {
        reduction: (of(function, reduction=reduction, **options), *given)
        for reduction in ("mean", "sum", "none")
    }


def random(*shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))


X, Y, POSITIVE = random(6, 5), random(5, 6).t(), random(4, 6).abs() + 0.1
UNIT = POSITIVE / (POSITIVE.max() + 0.1)
CLASSES, IGNORED = torch.tensor([0, 3, 1, 2, 4, 1]), torch.tensor([0, -100, 1, 2, 4, 1])
SIGNS = torch.tensor([1, -1, 1, 1, -1, -1])
WEIGHT = torch.tensor([0.2, 1.0, 0.7, 0.5, 1.5])
LABELS = torch.tensor([[3, 0, -1, 1, 1], [1, 2, -1, 0, 0], [0, 1, 2, 3, 4]])
WORDS = torch.tensor([[1, 2, 2], [3, 1, 0], [4, 0, 0]])


def nll(x, target, **options):
    return F.nll_loss(x.log_softmax(1), target, **options)


def ctc(x, targets, reduction):
    lengths = torch.tensor([7, 6, 2]), torch.tensor([3, 2, 1])
    return F.ctc_loss(x.log_softmax(-1), targets, *lengths, reduction=reduction)


def gaussian(x, y, variance, **options):
    return F.gaussian_nll_loss(x, y, variance.abs() + 0.1, full=True, **options)


def entropy(x, y, **options):
    return F.binary_cross_entropy(x.sigmoid(), y.sigmoid(), **options)


def divergence(x, y, **options):
    return F.kl_div(x.log_softmax(-1), y.log_softmax(-1), log_target=True, **options)


LOSSES = {
    "cross_entropy": with_reductions(F.cross_entropy, X, IGNORED, weight=WEIGHT),
    "smoothed": with_reductions(F.cross_entropy, X, IGNORED, weight=WEIGHT, label_smoothing=0.2),
    "ignoring": with_reductions(F.cross_entropy, X, CLASSES, label_smoothing=0.1, ignore_index=2),
    "of_shares": with_reductions(
        lambda x, y, **options: F.cross_entropy(x, y.softmax(1), **options), X, Y, weight=WEIGHT
    ),
    "of_images": with_reductions(
        nll, random(2, 5, 3, 4), random(2, 3, 4).argsort(1), weight=WEIGHT
    ),
    "l1": with_reductions(F.l1_loss, X, Y),
    "mse": with_reductions(F.mse_loss, X, Y),
    "smooth_l1": with_reductions(F.smooth_l1_loss, X, Y, beta=0.7),
    "huber": with_reductions(F.huber_loss, X, Y, delta=0.5),
    "bce": with_reductions(entropy, X, Y, weight=WEIGHT),
    "bce_logits": with_reductions(
        lambda x, y, **options: F.binary_cross_entropy_with_logits(x, y.sigmoid(), **options),
        X * 20, Y, pos_weight=WEIGHT,
    ),
    "kl": with_reductions(divergence, X, Y),
    "poisson": with_reductions(
        lambda x, y, **options: F.poisson_nll_loss(x, y.abs().round(), **options), X, Y * 3,
        full=True,
    ),
    "gaussian": with_reductions(gaussian, X, Y, X + Y),
    "hinge": with_reductions(F.hinge_embedding_loss, X, SIGNS.unsqueeze(1).expand(6, 5)),
    "soft_margin": with_reductions(F.soft_margin_loss, X, SIGNS.unsqueeze(1).expand(6, 5)),
    "ranking": with_reductions(F.margin_ranking_loss, X[:, 0], X[:, 1], SIGNS, margin=0.2),
    "cosine": with_reductions(F.cosine_embedding_loss, X, Y, SIGNS, margin=0.1),
    "multilabel": with_reductions(F.multilabel_margin_loss, X[:3], LABELS),
    "multilabel_soft": with_reductions(
        lambda x, labels, **options: F.multilabel_soft_margin_loss(
            x, (labels > 1).float(), **options),
        X[:3], LABELS, weight=WEIGHT,
    ),
    "multi_margin": with_reductions(F.multi_margin_loss, X, CLASSES, p=2, weight=WEIGHT),
    # At a distance of exactly the margin there is no gradient.
    "multi_margin_corner": with_reductions(F.multi_margin_loss, X.round(), CLASSES, weight=WEIGHT),
    "triplet": with_reductions(F.triplet_margin_loss, X, Y, X * Y, swap=True),
    "ctc": with_reductions(ctc, random(7, 3, 5), WORDS),
}  # fmt: skip


def windows(dims, shape):
    def named(kind, *arguments, **options):
        return getattr(nn, f"{kind}{dims}d")(*arguments, **options), random(*shape)

    return {
        "conv": named("Conv", 4, 6, 3, stride=2, padding=1),
        "transposed": named("ConvTranspose", 4, 6, 3, stride=2, padding=1, output_padding=1),
        "conv_circular": named("Conv", 4, 6, 3, padding=1, padding_mode="circular"),
        "conv_replicate": named("Conv", 4, 8, 3, padding=1, padding_mode="replicate", groups=2),
        "max": named("MaxPool", 3, 2, 1, return_indices=True),
        "max_ceil": named("MaxPool", 2, 2, ceil_mode=True),
        "average": named("AvgPool", 3, 2, 1),
        "average_ceil": named("AvgPool", 2, 2, ceil_mode=True),
        "average_inside": named("AvgPool", 3, 2, 1, ceil_mode=True, count_include_pad=False),
        "lp": named("LPPool", 2, 2),
        "adaptive_average": named("AdaptiveAvgPool", 3),
        "adaptive_max": named("AdaptiveMaxPool", 3),
        "norm": named("BatchNorm", 4),
        "instance": named("InstanceNorm", 4, affine=True),
        "reflected": named("ReflectionPad", 1),
        "replicated": named("ReplicationPad", 2),
        "constant": named("ConstantPad", 2, 1.5),
    }


class Bags(nn.Module):
    """Of words in one row after another, of which one bag is empty."""

    def __init__(self, **options):
        super().__init__()
        self.bag = nn.EmbeddingBag(7, 4, **options)

    def forward(self, words):
        return self.bag(words), self.bag(words.reshape(-1), torch.tensor([0, 3, 3, 8]))


def sampled(x, grid, **options):
    return F.grid_sample(x, grid * 0.7, align_corners=False, **options)


GRID = random(2, 3, 5, 6), random(2, 4, 3, 2)
WIDE = random(2, 4, 6, 7)
SEQUENCE = random(6, 2, 4)
MODULES = {
    **{kind: (getattr(nn, kind)(), X) for kind in (
        "ELU", "Hardshrink", "Hardsigmoid", "Hardtanh", "Hardswish", "LeakyReLU", "LogSigmoid",
        "PReLU", "ReLU6", "SELU", "CELU", "GELU", "Sigmoid", "SiLU", "Mish", "Softplus",
        "Softshrink", "Softsign", "Tanh", "Tanhshrink")},
    "cosine": (nn.CosineSimilarity(), X, Y),
    "distance": (nn.PairwiseDistance(), X, Y),
    "gelu_tanh": (nn.GELU("tanh"), X),
    "rrelu": (nn.RReLU().eval(), X),
    "layer_norm": (nn.LayerNorm(5), X),
    "rms_norm": (nn.RMSNorm(5), X),
    "group_norm": (nn.GroupNorm(2, 4), WIDE),
    "response_norm": (nn.LocalResponseNorm(3), WIDE),
    "bilinear": (nn.Bilinear(5, 5, 3), X, Y),
    "embedding": (nn.Embedding(7, 4, padding_idx=2), WORDS),
    "embedding_by_count": (nn.Embedding(7, 4, scale_grad_by_freq=True), WORDS),
    **{f"bag_{mode}": (Bags(mode=mode, padding_idx=3), WORDS) for mode in ("sum", "mean", "max")},
    "bag_weights": (lambda w, e, i: F.embedding_bag(i, e, per_sample_weights=w, mode="sum"),
                    random(3, 3), random(7, 4), WORDS),
    "lstm": (nn.LSTM(4, 5, 2, bidirectional=True), SEQUENCE),
    "lstm_projected": (nn.LSTM(4, 5, proj_size=3), SEQUENCE),
    "lstm_of_one": (nn.LSTM(4, 5), SEQUENCE[:, 0]),
    "gru": (nn.GRU(4, 5, 2, batch_first=True), SEQUENCE),
    "rnn": (nn.RNN(4, 5, nonlinearity="relu"), SEQUENCE),
    "attention": (nn.MultiheadAttention(4, 2, add_bias_kv=True), *[SEQUENCE] * 3),
    "decoder": (nn.TransformerDecoderLayer(4, 2, 8, 0.0), SEQUENCE, SEQUENCE),
    **{f"upsample_{mode}": (nn.Upsample(size=(4, 9), mode=mode), WIDE)
       for mode in ("nearest", "nearest-exact", "bilinear", "bicubic")},
    **{f"sampled_{mode}_{padding}": (of(sampled, mode=mode, padding_mode=padding), *GRID)
       for mode in ("bilinear", "nearest", "bicubic")
       for padding in ("zeros", "border", "reflection")},
    "fold": (nn.Fold((4, 5), (2, 2)), random(2, 8, 12)),
    "unfold": (nn.Unfold((2, 3), padding=1), WIDE),
    "shuffle": (nn.PixelShuffle(2), WIDE),
}  # fmt: skip

ROWS = torch.tensor([[0, 2, 1], [3, 3, 0]])
MASK = torch.arange(24).reshape(4, 6) % 3 == 0


def assigned(x):
    y = x.clone()
    y[y > 0] = 0.5
    y[1] = 3.0
    y[:, 0] *= 2
    return y


def from_constants(x):
    return torch.fmod(torch.tensor(2.5), x)


def checkpointed(x):
    recompute = torch.utils.checkpoint.checkpoint
    return recompute(torch.sin, x, use_reentrant=False), recompute(torch.cos, x, use_reentrant=True)


FUNCTIONS = {
    **{name: (getattr(torch, name), POSITIVE) for name in (
        "lgamma", "digamma", "erf", "erfc", "log1p", "expm1", "sinc", "rsqrt", "asinh", "median",
        "nanmedian", "prod", "std")},
    **{name: (getattr(torch, name), UNIT) for name in ("erfinv", "logit", "atanh", "acos")},
    **{name: (getattr(torch.special, name), random(4, 6) * 3) for name in (
        "i0e", "i1e", "erfcx", "log_ndtr", "ndtr")},
    "trigamma": (lambda x: torch.polygamma(1, x), POSITIVE),
    "multigamma": (lambda x: torch.special.multigammaln(x + 2, 2), POSITIVE),
    **{f"{name}_of_lines": (lambda x, name=name: getattr(torch, name)(x, dim=1), random(4, 7))
       for name in ("cummax", "cummin", "median", "nanmedian", "sort", "cumsum", "logcumsumexp",
                    "logsumexp", "amax", "max", "var", "norm", "aminmax", "std_mean")},
    "kthvalue": (lambda x: torch.kthvalue(x, 3, 1), random(4, 7)),
    "quantile": (lambda x: torch.quantile(x, torch.tensor([0.25, 0.9]), 1), random(4, 7)),
    **{f"cdist_{10 * p:.0f}": (of(torch.cdist, p=p), random(2, 4, 3), random(2, 5, 3))
       for p in (1.0, 1.5, 2.0, float("inf"))},
    # Coordinates that are as far: each gets the whole gradient.
    "cdist_of_ties": (
        of(torch.cdist, p=float("inf")), random(2, 4, 3).round(), torch.ones(2, 5, 3)),
    "pdist_of_ties": (of(F.pdist, p=float("inf")), (2 * random(4, 3)).round()),
    "cdist_of_equal": (lambda x: torch.cdist(x, x), random(4, 3)),
    "pdist": (F.pdist, random(4, 3)),
    "searchsorted": (lambda x: x * torch.searchsorted(torch.arange(5.0), x.detach()), POSITIVE),
    "repeated": (
        lambda x: x.repeat_interleave(torch.tensor([2, 0, 1, 3]), 0, output_size=6), random(4, 3)),
    "looked_up": (lambda x: x[torch.tensor([0, 3]), :, torch.tensor([1, 1])], random(4, 3, 2)),
    "columns": (lambda x: x[:, torch.tensor([[0, 2], [1, 1]])], random(4, 3, 2)),
    "windows": (lambda x: x.unfold(1, 3, 2), random(4, 6)),
    "taken": (lambda x: torch.take(x, ROWS), random(4, 3)),
    "scatter_add": (lambda x, y: x.scatter_add(0, ROWS, y), random(4, 3), random(2, 3)),
    "scatter_max": (lambda x, y: x.scatter_reduce(0, ROWS, y, "amax"), random(4, 3), random(2, 3)),
    "masked_scatter": (lambda x, y: x.masked_scatter(MASK, y), random(4, 6), random(12)),
    "assigned": (assigned, random(4, 6)),
    "blocks": (lambda x: torch.block_diag(x, x), random(2, 3)),
    "identity": (lambda x: x @ torch.eye(6) + torch.eye(4, 6), random(4, 6)),
    "constants": (from_constants, POSITIVE),
    "checkpoint": (checkpointed, POSITIVE),
}  # fmt: skip


def unnested(table):
    return {f"{name}_{kind}": case for name, kinds in table.items() for kind, case in kinds.items()}


GROUPS = {
    "losses": unnested(LOSSES),
    "modules": MODULES,
    "functions": FUNCTIONS,
    "windows": unnested(
        {
            "1d": windows(1, (2, 4, 9)),
            "2d": windows(2, (2, 4, 6, 7)),
            "3d": windows(3, (2, 4, 5, 6, 4)),
        }
    ),
}


def assert_near(found, expected, what):
    assert found.dtype == expected.dtype and found.shape == expected.shape, what
    if not expected.is_floating_point():
        assert torch.equal(found, expected), what
        return
    finite = torch.isfinite(expected)
    assert torch.equal(torch.where(finite, 0, found), torch.where(finite, 0, expected)), what
    if finite.any():
        error = (found - expected)[finite].abs().max().item()
        assert error <= 1e-5 * expected[finite].abs().max().item() + 1e-30, f"{what}: {error}"


def gradients(module, momentum):
    return {
        name: momentum(parameter)
        for name, parameter in module.named_parameters()
        if momentum(parameter) is not None
    }


@pytest.mark.parametrize("group", GROUPS)
def test_results_and_gradients(group):
    model = Together({name: Case(*case) for name, case in GROUPS[group].items()})
    eager = copy.deepcopy(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0, momentum=0.9)
    step = support.compile_step(model, None, optimizer, machine="host:1")
    step()
    state = step.state_dict() and optimizer.state
    eager().backward()
    ours = gradients(model, lambda p: state[p].get("momentum_buffer") if p in state else None)
    theirs = gradients(eager, lambda p: p.grad)
    for name, case in eager.cases.items():
        for i, (found, right) in enumerate(
            zip(model.cases[name].found(), case.found(), strict=True)
        ):
            assert_near(found, right, f"{name}: result {i}")
    for name, right in theirs.items():
        assert_near(ours.get(name, torch.zeros_like(right)), right, name)


DRAWN = {
    "uniform": lambda x: x * torch.empty(4, 6).uniform_(1, 2),
    "normal": lambda x: x * torch.empty(4, 6).normal_(1, 2) * torch.normal(0.0, 1.0, (4, 6)),
    "of_tensors": lambda x: torch.normal(x, torch.ones(4, 6)),
    "exponential": lambda x: x * torch.empty(4, 6).exponential_(),
    "others": lambda x: x * torch.empty(4, 6).geometric_(0.3) * torch.empty(4, 6).log_normal_(),
}


@pytest.mark.parametrize("name", DRAWN)
def test_random_numbers(name):
    model = Case(DRAWN[name], POSITIVE)
    eager = copy.deepcopy(model)
    step = support.compile_step(model, None, torch.optim.SGD(model.parameters(), lr=0.1))
    for seed in (1, 2):
        torch.manual_seed(seed)
        step()
        torch.manual_seed(seed)
        eager().backward()
        eager.given[0].data.sub_(0.1 * eager.given[0].grad)
        eager.zero_grad()
        assert_near(model.found0, eager.found0, name)
