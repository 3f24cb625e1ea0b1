# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Recurrent networks with dropout between their layers, layer by layer, and LSTMs with
a last state of the first one's shape.

PyTorch's own decompositions drop that dropout without a word, and give a state of one
dimension more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

_FUNCTIONS = (torch.lstm, torch.gru, torch.rnn_tanh, torch.rnn_relu)


def is_recurrent(function: Callable) -> bool:
    """Whether it is what nn.LSTM, nn.GRU and nn.RNN call."""
    return function in _FUNCTIONS


def has_dropout(args: Sequence[Any]) -> bool:
    """Whether such a call has numbers to draw."""
    layers, dropout, train = args[5:8] if _is_packed(args) else args[4:7]
    return train and dropout > 0 and layers > 1


def whole(function: Callable, args: Sequence[Any]) -> tuple[torch.Tensor, ...]:
    """The call as it is."""
    x, *state = function(*args)
    hidden = args[2 if _is_packed(args) else 1]
    first = [hidden] if isinstance(hidden, torch.Tensor) else hidden
    return x, *(new.reshape(old.shape) for new, old in zip(state, first, strict=True))


def layer_by_layer(function: Callable, args: Sequence[Any]) -> tuple[torch.Tensor, ...]:
    """The same call as one of each layer, with dropout between two, as ATen draws it."""
    packed = _is_packed(args)
    if packed:  # data, batch sizes, hidden state, ...
        x, batch_sizes, hidden, params, biases, layers, dropout, _, both_ways = args
        before, batch_first = [batch_sizes], False
    else:
        x, hidden, params, biases, layers, dropout, _, both_ways, batch_first = args
        before = []
    x = x.transpose(0, 1) if batch_first else x
    state = [hidden] if isinstance(hidden, torch.Tensor) else list(hidden)
    ways, width = 2 if both_ways else 1, len(params) // layers
    found = []
    for i in range(layers):
        own = [part[i * ways : (i + 1) * ways] for part in state]
        given = own[0] if isinstance(hidden, torch.Tensor) else own
        weights = params[i * width : (i + 1) * width]
        options = [biases, 1, 0.0, True, both_ways, *([] if packed else [False])]
        x, *new = whole(function, [x, *before, given, weights, *options])
        found.append(new)
        if i < layers - 1:
            x = torch.dropout(x, dropout, True)
    x = x.transpose(0, 1) if batch_first else x
    return x, *(torch.cat(parts) for parts in zip(*found, strict=True))


def _is_packed(args: Sequence[Any]) -> bool:
    """Of the two forms that of packed sequences has its parameters behind."""
    return isinstance(args[3], (list, tuple))
