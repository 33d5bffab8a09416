# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A vision transformer (Dosovitskiy et al., "An Image is Worth 16x16 Words", 2021): a
model of images and their classes. It trains on arrays, not on tokens.

    tools/export/chimera-export examples/models/vit.py -o vit

The mean of all patches gives the class (as in Beyer et al., "Better plain ViT baselines",
2022), not a token of its own. The published ViT-B/16 is layers=12 heads=12 width=768
patch=16 size=224 classes=1000.
"""

import torch
import torch.nn.functional as F
from chimera_export import Model
from torch import nn


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width)
        self.attention = nn.Linear(width, 3 * width)
        self.projection = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x):
        b, t, c = x.shape
        parts = self.attention(self.norm1(x)).view(b, t, 3, self.heads, -1)
        q, k, v = parts.permute(2, 0, 3, 1, 4).unbind(0)
        mixed = F.scaled_dot_product_attention(q, k, v)
        x = x + self.projection(mixed.transpose(1, 2).reshape(b, t, c))
        return x + self.mlp(self.norm2(x))


class Vit(nn.Module):
    def __init__(self, layers, heads, width, patch, size, channels, classes):
        super().__init__()
        self.patches = nn.Conv2d(channels, width, patch, stride=patch)
        self.positions = nn.Parameter(torch.zeros(1, (size // patch) ** 2, width))
        nn.init.normal_(self.positions, std=0.02)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, classes)

    def forward(self, pixels):
        x = self.patches(pixels).flatten(2).transpose(1, 2) + self.positions
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x).mean(1))


def loss(logits, classes):
    return F.cross_entropy(logits, classes)


def make(layers=4, heads=4, width=64, patch=4, size=32, channels=3, classes=10,
         samples=4, seed=0):  # fmt: skip
    torch.manual_seed(seed)
    return Model(
        module=Vit(layers, heads, width, patch, size, channels, classes),
        inputs={"pixels": torch.rand(samples, channels, size, size)},
        labels={"classes": torch.randint(0, classes, (samples,))},
        loss=loss,
    )
