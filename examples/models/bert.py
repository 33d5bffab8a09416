# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""BERT (Devlin et al., NAACL'19), trained to predict masked tokens. Its loss is a
sum over the masked tokens of a micro-batch and how many these are, so a step's loss
is the mean over all of them, however they fall on micro-batches.

    tools/export/chimera-export examples/models/bert.py layers=4 -o bert
    chimera-run program --data TEXT --mask 256 --load bert/values.safetensors

Here token 256 stands for what is masked: one more than a text's bytes.
"""

import torch
import torch.nn.functional as F
from chimera_export import Model
from torch import nn

IGNORED = -100


class Block(nn.Module):
    def __init__(self, width, heads, dropout):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.attention = nn.Linear(width, 3 * width)
        self.projection = nn.Linear(width, width)
        self.norm1 = nn.LayerNorm(width, eps=1e-12)
        self.grow = nn.Linear(width, 4 * width)
        self.shrink = nn.Linear(4 * width, width)
        self.norm2 = nn.LayerNorm(width, eps=1e-12)

    def forward(self, x):
        b, t, c = x.shape
        parts = self.attention(x).view(b, t, 3, self.heads, -1)
        q, k, v = parts.permute(2, 0, 3, 1, 4).unbind(0)
        mixed = F.scaled_dot_product_attention(q, k, v, dropout_p=self.dropout)
        mixed = self.projection(mixed.transpose(1, 2).reshape(b, t, c))
        x = self.norm1(x + F.dropout(mixed, self.dropout))
        hidden = self.shrink(F.gelu(self.grow(x)))
        return self.norm2(x + F.dropout(hidden, self.dropout))


class Bert(nn.Module):
    def __init__(self, layers, heads, width, context, vocabulary, dropout, tied):
        super().__init__()
        self.dropout = dropout
        self.token_embedding = nn.Embedding(vocabulary, width)
        self.position_embedding = nn.Embedding(context, width)
        self.norm = nn.LayerNorm(width, eps=1e-12)
        self.blocks = nn.ModuleList(
            Block(width, heads, dropout) for _ in range(layers)
        )
        self.transform = nn.Linear(width, width)
        self.transform_norm = nn.LayerNorm(width, eps=1e-12)
        self.decoder = nn.Linear(width, vocabulary)
        if tied:
            self.decoder.weight = self.token_embedding.weight
        for parameter in self.parameters():
            if parameter.dim() >= 2:
                nn.init.normal_(parameter, 0, 0.02)

    def forward(self, tokens):
        places = torch.arange(tokens.shape[1])
        x = self.token_embedding(tokens) + self.position_embedding(places)
        x = F.dropout(self.norm(x), self.dropout)
        for block in self.blocks:
            x = block(x)
        return self.decoder(self.transform_norm(F.gelu(self.transform(x))))


def masked_loss(logits, labels):
    total = F.cross_entropy(
        logits.flatten(0, 1), labels.flatten(), ignore_index=IGNORED, reduction="sum"
    )
    return total, (labels != IGNORED).sum()


def make(layers=4, heads=4, width=64, context=32, vocabulary=257, dropout=0.0,
         tied=True, samples=4, seed=0):  # fmt: skip
    torch.manual_seed(seed)
    tokens = torch.randint(0, vocabulary, (samples, context))
    labels = torch.where(torch.rand(tokens.shape) < 0.15, tokens, IGNORED)
    return Model(
        module=Bert(layers, heads, width, context, vocabulary, dropout, tied),
        inputs=(tokens,),
        labels=(labels,),
        loss=masked_loss,
    )
