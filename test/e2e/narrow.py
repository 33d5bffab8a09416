# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A language model whose parts lose their precision in bfloat16, unless some of their
numbers are computed in float32: positions that are computed from integers, a weight
norm, and a loss with the head. compute_types.py trains it."""

import math

import torch
import torch.nn.functional as F
from chimera_export import Model
from torch.nn.utils.parametrizations import weight_norm


class Positions(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.width = width
        self.embedding = torch.nn.Embedding(256, width)
        torch.nn.init.normal_(self.embedding.weight, 0, 0.02)

    def forward(self, tokens):
        rates = torch.exp(torch.arange(0, self.width, 2) * (-math.log(1e4) / self.width))
        angles = 100 * torch.arange(tokens.shape[1])[:, None] * rates
        return self.embedding(tokens) + torch.cat([angles.sin(), angles.cos()], -1)


class Block(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = torch.nn.LayerNorm(width)
        self.up = weight_norm(torch.nn.Linear(width, 4 * width))
        self.down = torch.nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


class Head(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.line = torch.nn.Linear(width, 256)
        self.temperature = torch.nn.Parameter(torch.ones(()))

    def forward(self, x, labels):
        logits = self.line(x) / self.temperature
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten())


def make(width=32, context=64, samples=2):
    torch.manual_seed(0)
    module = torch.nn.Sequential(Positions(width), Block(width), Block(width))
    tokens = torch.randint(0, 256, (samples, context))
    return Model(module, tokens, tokens.roll(-1, 1), Head(width))
