# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A module of one's own: what own-module.sh exports and trains."""

import torch
from chimera_export import Model
from torch import nn


class Mixer(nn.Module):
    """Looks back over the text, then thinks about each place."""

    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.look = nn.Conv1d(width, width, kernel_size=8)
        self.think = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))  # fmt: skip

    def forward(self, x):
        before = nn.functional.pad(self.norm(x).transpose(1, 2), (7, 0))
        return x + self.think(torch.tanh(self.look(before)).transpose(1, 2))


def make(layers=6, width=96, context=64, samples=8):
    tokens = torch.zeros(samples, context, dtype=torch.long)
    module = nn.Sequential(
        nn.Embedding(256, width), *(Mixer(width) for _ in range(layers)),
        nn.LayerNorm(width), nn.Linear(width, 256),
    )  # fmt: skip
    loss = lambda logits, labels: nn.functional.cross_entropy(logits.transpose(1, 2), labels)
    return Model(module, inputs=(tokens,), labels=(tokens,), loss=loss)
