# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A model that is no transformer: dilated, causal, gated convolutions with skip
connections (van den Oord et al., "WaveNet", 2016). Each layer adds to a sum, from which
the head makes the output. So from the first layer on, two tensors cross each stage
boundary: the result of the last layer, and this sum.

    tools/export/chimera-export examples/models/convolution.py -o convolution
"""

import torch
import torch.nn.functional as F
from chimera_export import Model
from torch import nn


class Layer(nn.Module):
    def __init__(self, width, dilation):
        super().__init__()
        self.back = 2 * dilation
        self.convolution = nn.Conv1d(width, 2 * width, 3, dilation=dilation)
        self.norm = nn.LayerNorm(width)  # over channels: one over time would look ahead
        self.residual = nn.Conv1d(width, width, 1)
        self.skip = nn.Conv1d(width, width, 1)

    def forward(self, x, skipped):
        y = self.convolution(F.pad(self.norm(x.mT).mT, (self.back, 0)))
        level, gate = y.chunk(2, dim=1)
        y = torch.tanh(level) * torch.sigmoid(gate)
        return x + self.residual(y), skipped + self.skip(y)


class Convolution(nn.Module):
    def __init__(self, layers, width, vocabulary):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList(Layer(width, 2 ** (i % 4)) for i in range(layers))
        self.head = nn.Sequential(
            nn.ReLU(), nn.Conv1d(width, width, 1), nn.ReLU(),
            nn.Conv1d(width, vocabulary, 1),
        )  # fmt: skip

    def forward(self, tokens):
        x = self.embedding(tokens).transpose(1, 2)
        skipped = torch.zeros_like(x)
        for layer in self.layers:
            x, skipped = layer(x, skipped)
        return self.head(skipped)


def make(layers=6, width=32, context=32, vocabulary=256, samples=4, seed=0):
    torch.manual_seed(seed)
    tokens = torch.randint(0, vocabulary, (samples, context))
    return Model(
        module=Convolution(layers, width, vocabulary),
        inputs=(tokens,),
        labels=(tokens,),
        loss=F.cross_entropy,
    )
