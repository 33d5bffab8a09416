# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""GPT-2 as one writes it in PyTorch. With its default arguments it computes the same as
the runtime's own gpt2 of the same sizes.

    tools/export/chimera-export examples/models/gpt2.py layers=4 -o gpt2

The published GPT-2 with 124 million parameters is layers=12 heads=12 width=768
context=1024 vocabulary=50257 tied=True. The GPT-2 of Chimera's paper (section 4) is
layers=64 heads=20 width=1280 context=632 positions=1024 vocabulary=50257.
attention_dropout is the dropout of the attention's probabilities, by default dropout.
"""

import torch
import torch.nn.functional as F
from chimera_export import Model
from torch import nn


class Block(nn.Module):
    def __init__(self, width, heads, dropout, attention_dropout):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.attention_dropout = attention_dropout
        self.norm1 = nn.LayerNorm(width)
        self.attention = nn.Linear(width, 3 * width)
        self.attention_projection = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Linear(width, 4 * width)
        self.mlp_projection = nn.Linear(4 * width, width)

    def forward(self, x):
        b, t, c = x.shape
        parts = self.attention(self.norm1(x)).view(b, t, 3, self.heads, -1)
        q, k, v = parts.permute(2, 0, 3, 1, 4).unbind(0)
        mixed = F.scaled_dot_product_attention(
            q, k, v, dropout_p=self.attention_dropout, is_causal=True
        )
        mixed = self.attention_projection(mixed.transpose(1, 2).reshape(b, t, c))
        x = x + F.dropout(mixed, self.dropout)
        hidden = F.gelu(self.mlp(self.norm2(x)), approximate="tanh")
        return x + F.dropout(self.mlp_projection(hidden), self.dropout)


class Gpt2(nn.Module):
    def __init__(self, layers, heads, width, positions, vocabulary, dropout,
                 attention_dropout, tied):  # fmt: skip
        super().__init__()
        self.dropout = dropout
        self.token_embedding = nn.Embedding(vocabulary, width)
        self.position_embedding = nn.Embedding(positions, width)
        self.blocks = nn.ModuleList(
            Block(width, heads, dropout, attention_dropout) for _ in range(layers)
        )
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        if tied:
            self.head.weight = self.token_embedding.weight
        for name, parameter in self.named_parameters():
            if parameter.dim() >= 2:
                residual = name.endswith("projection.weight")
                nn.init.normal_(
                    parameter, 0, 0.02 / (2 * layers) ** 0.5 if residual else 0.02
                )
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)

    def forward(self, tokens):
        places = torch.arange(tokens.shape[1])
        x = self.token_embedding(tokens) + self.position_embedding(places)
        x = F.dropout(x, self.dropout)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def next_token_loss(logits, labels):
    return F.cross_entropy(logits.flatten(0, 1), labels.flatten())


def make(layers=4, heads=4, width=64, context=32, positions=None, vocabulary=256,
         dropout=0.0, attention_dropout=None, tied=False, samples=4, seed=0):  # fmt: skip
    torch.manual_seed(seed)
    if attention_dropout is None:
        attention_dropout = dropout
    tokens = torch.randint(0, vocabulary, (samples, context))
    return Model(
        module=Gpt2(
            layers, heads, width, positions or context, vocabulary, dropout,
            attention_dropout, tied,
        ),
        inputs=(tokens,),
        labels=(tokens,),
        loss=next_token_loss,
    )
