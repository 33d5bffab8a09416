# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A model like Llama: root mean square norms, rotary embeddings of positions, fewer
heads of keys and values than of queries, a gated MLP, and a tied head.

    tools/export/chimera-export examples/models/llama.py layers=4 -o llama
"""

import torch
import torch.nn.functional as F
from chimera_export import Model
from torch import nn


class Block(nn.Module):
    def __init__(self, width, heads, groups, hidden):
        super().__init__()
        self.heads, self.groups, self.size = heads, groups, width // heads
        self.norm1 = nn.RMSNorm(width)
        self.queries = nn.Linear(width, width, bias=False)
        self.keys = nn.Linear(width, groups * self.size, bias=False)
        self.values = nn.Linear(width, groups * self.size, bias=False)
        self.output = nn.Linear(width, width, bias=False)
        self.norm2 = nn.RMSNorm(width)
        self.gate = nn.Linear(width, hidden, bias=False)
        self.up = nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)

    def rotate(self, x, rotation):
        even, odd = x.chunk(2, dim=-1)
        turned = torch.cat((-odd, even), dim=-1)
        return x * rotation.cos() + turned * rotation.sin()

    def forward(self, x, rotation):
        b, t, c = x.shape
        y = self.norm1(x)
        split = lambda part, n: part.view(b, t, n, self.size).transpose(1, 2)
        q = self.rotate(split(self.queries(y), self.heads), rotation)
        k = self.rotate(split(self.keys(y), self.groups), rotation)
        v = split(self.values(y), self.groups)
        mixed = F.scaled_dot_product_attention(
            q, k, v, is_causal=True, enable_gqa=True
        )
        x = x + self.output(mixed.transpose(1, 2).reshape(b, t, c))
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Llama(nn.Module):
    def __init__(self, layers, heads, groups, width, context, vocabulary):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.blocks = nn.ModuleList(
            Block(width, heads, groups, 3 * width) for _ in range(layers)
        )
        self.norm = nn.RMSNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.embedding.weight
        size = width // heads
        speeds = 10000 ** -(torch.arange(0, size, 2) / size)
        angles = torch.outer(torch.arange(context), speeds)
        self.register_buffer("rotation", torch.cat((angles, angles), dim=-1))
        for parameter in self.parameters():
            if parameter.dim() >= 2:
                nn.init.normal_(parameter, 0, 0.02)

    def forward(self, tokens):
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x, self.rotation)
        return self.head(self.norm(x))


def make(layers=4, heads=4, groups=2, width=64, context=32, vocabulary=256,
         samples=4, seed=0):  # fmt: skip
    torch.manual_seed(seed)
    tokens = torch.randint(0, vocabulary, (samples, context))
    return Model(
        module=Llama(layers, heads, groups, width, context, vocabulary),
        inputs=(tokens,),
        labels=(tokens,),
        loss=lambda logits, labels: F.cross_entropy(
            logits.flatten(0, 1), labels.flatten()
        ),
    )
