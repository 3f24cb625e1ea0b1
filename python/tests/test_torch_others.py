# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models of others' collections, small, as people bring them: inference and training.

Needs `pip install --no-deps transformers==4.57.6 torchvision==0.27.1` with what they import,
beside scripts/torch-env; skipped without.
"""

import pytest

# First: it skips the file where there is no PyTorch.
from torch_support import F, Pair, needs_tools, nn, torch

pytestmark = needs_tools

SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
WIDE = {**SIZES, "intermediate_size": 64}
TOKENS = {"vocab_size": 100, "max_position_embeddings": 32}
LANGUAGE = {
    "GPT2LMHeadModel": {"vocab_size": 100, "n_embd": 32, "n_layer": 2, "n_head": 4},
    "LlamaForCausalLM": {**WIDE, **TOKENS, "num_key_value_heads": 2},
    "BertForMaskedLM": {**WIDE, **TOKENS},
    "T5ForConditionalGeneration": {
        **{"vocab_size": 100, "d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2},
        **{"num_heads": 4, "decoder_start_token_id": 0},
    },
}
VISION = [
    "convnext_tiny",
    "efficientnet_b0",
    "googlenet",
    "mobilenet_v3_small",
    "resnet18",
    "shufflenet_v2_x0_5",
    "swin_t",
]


class Language(nn.Module):
    """The logits of a model of `transformers`."""

    def __init__(self, model, labels):
        super().__init__()
        self.model, self.labels = model, labels

    def forward(self, tokens):
        given = {"labels": tokens} if self.labels else {}
        return self.model(input_ids=tokens, **given).logits.transpose(1, 2)


def check(model, x, target):
    model.eval()  # no dropout, whose numbers depend on the order of fused operations
    pair = Pair(model, lambda p: torch.optim.SGD(p, lr=1e-3))
    with torch.no_grad():
        options = {"costs": "roofline", "budget": "0"}
        found = torch.compile(pair.model, backend="baechi", options=options)(x)
        expected = pair.eager(x)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4 * expected.abs().max().item())
    pair.train(3, x, target)


@pytest.mark.parametrize("name", LANGUAGE)
def test_transformers(name):
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    kind = getattr(transformers, name)
    model = kind(kind.config_class(**LANGUAGE[name], use_cache=False))
    tokens = torch.randint(0, 100, (2, 16))
    check(Language(model, labels=name.startswith("T5")), tokens, tokens)


@pytest.mark.parametrize("name", VISION)
def test_torchvision(name):
    torchvision = pytest.importorskip("torchvision", exc_type=ImportError)
    torch.manual_seed(0)
    options = {"init_weights": True} if name == "googlenet" else {}
    model = getattr(torchvision.models, name)(num_classes=10, **options)
    check(model, torch.randn(2, 3, 64, 64), torch.randint(0, 10, (2,)))


@pytest.mark.parametrize("labels", ["classes", "numbers", "several classes"])
def test_models_that_choose_their_loss_by_the_labels(labels):
    """They write what they have chosen, `config.problem_type`, at the first call."""
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    count = 1 if labels == "numbers" else 3
    config = transformers.BertConfig(**WIDE, **TOKENS, num_labels=count)
    model = transformers.BertForSequenceClassification(config).eval()
    target = {
        "classes": torch.randint(0, 3, (2,)),
        "numbers": torch.randn(2),
        "several classes": torch.rand(2, 3),
    }[labels]
    pair = Pair(model, lambda p: torch.optim.SGD(p, lr=0.1), loss=None)
    given = {"input_ids": torch.randint(0, 100, (2, 8)), "labels": target}
    for _ in range(2):
        ours, theirs = pair.step(**given), pair.eager(**given).loss
        pair.eager_optimizer.zero_grad()
        theirs.backward()
        pair.eager_optimizer.step()
        assert ours.item() == pytest.approx(theirs.item(), rel=1e-4)
    assert pair.model.config.problem_type == pair.eager.config.problem_type is not None
    pair.assert_same_state()


def test_routing_that_depends_on_values_is_explained():
    transformers = pytest.importorskip("transformers")
    kind = transformers.MixtralForCausalLM
    options = {**WIDE, **TOKENS, "num_key_value_heads": 2, "num_local_experts": 4}
    model = Language(kind(kind.config_class(**options, use_cache=False)), labels=False)
    tokens = torch.randint(0, 100, (2, 16))
    pair = Pair(model, lambda p: torch.optim.SGD(p, lr=1e-2), loss=F.cross_entropy)
    with pytest.raises(Exception, match=r"(?s)modeling_mixtral.py:\d+: aten.nonzero.*fixed shapes"):
        pair.step(tokens, tokens)
