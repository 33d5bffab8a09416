# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""BERT (Devlin et al., NAACL'19): pre-training on masked tokens, and on whether one
sentence follows another. Its loss has two terms, each a sum and a weight. So a step's
loss is the mean over all masked tokens plus the mean over all pairs of sentences,
however these are distributed over micro-batches.

    tools/export/chimera-export examples/models/bert.py layers=4 -o bert
    chimera-run program --data TEXT --tokens bytes --pairs 257,258,259 --mask 256 \\
        --load bert/values.safetensors

The tokens from 256 on are [MASK], [CLS], [SEP] and [PAD]; smaller tokens are the bytes
of the text. With pairs=False the model predicts only masked tokens. BERT-Base is
layers=12 heads=12 width=768 context=512 vocabulary=30522. The BERT-48 of Chimera's
paper (section 4) is layers=48 heads=16 width=1024 context=128 positions=512
vocabulary=30522 tied=False.
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

    def forward(self, x, attention_mask):
        b, t, c = x.shape
        parts = self.attention(x).view(b, t, 3, self.heads, -1)
        q, k, v = parts.permute(2, 0, 3, 1, 4).unbind(0)
        seen = None if attention_mask is None else attention_mask.bool()[:, None, None]
        mixed = F.scaled_dot_product_attention(
            q, k, v, attn_mask=seen, dropout_p=self.dropout
        )
        mixed = self.projection(mixed.transpose(1, 2).reshape(b, t, c))
        x = self.norm1(x + F.dropout(mixed, self.dropout))
        hidden = self.shrink(F.gelu(self.grow(x)))
        return self.norm2(x + F.dropout(hidden, self.dropout))


class Bert(nn.Module):
    def __init__(self, layers, heads, width, positions, vocabulary, dropout, tied, pairs):
        super().__init__()
        self.dropout = dropout
        self.token_embedding = nn.Embedding(vocabulary, width)
        self.position_embedding = nn.Embedding(positions, width)
        self.segment_embedding = nn.Embedding(2, width) if pairs else None
        self.norm = nn.LayerNorm(width, eps=1e-12)
        self.blocks = nn.ModuleList(
            Block(width, heads, dropout) for _ in range(layers)
        )
        self.transform = nn.Linear(width, width)
        self.transform_norm = nn.LayerNorm(width, eps=1e-12)
        self.decoder = nn.Linear(width, vocabulary)
        if tied:
            self.decoder.weight = self.token_embedding.weight
        if pairs:
            self.pooler = nn.Linear(width, width)
            self.is_next = nn.Linear(width, 2)
        for parameter in self.parameters():
            if parameter.dim() >= 2:
                nn.init.normal_(parameter, 0, 0.02)

    def forward(self, input_ids, token_type_ids=None, attention_mask=None):
        places = torch.arange(input_ids.shape[1])
        x = self.token_embedding(input_ids) + self.position_embedding(places)
        if self.segment_embedding is not None:
            x = x + self.segment_embedding(token_type_ids)
        x = F.dropout(self.norm(x), self.dropout)
        for block in self.blocks:
            x = block(x, attention_mask)
        tokens = self.decoder(self.transform_norm(F.gelu(self.transform(x))))
        if self.segment_embedding is None:
            return tokens
        return tokens, self.is_next(torch.tanh(self.pooler(x[:, 0])))


def masked_loss(logits, labels):
    total = F.cross_entropy(
        logits.flatten(0, 1), labels.flatten(), ignore_index=IGNORED, reduction="sum"
    )
    return total, (labels != IGNORED).sum()


def pretraining_loss(logits, labels, next_sentence_label):
    tokens, is_next = logits
    pairs = F.cross_entropy(is_next, next_sentence_label, reduction="sum")
    return [masked_loss(tokens, labels), (pairs, next_sentence_label.shape[0])]


def make(layers=4, heads=4, width=64, context=32, positions=None, vocabulary=260,
         dropout=0.0, tied=True, pairs=True, samples=4, seed=0):  # fmt: skip
    torch.manual_seed(seed)
    tokens = torch.randint(0, vocabulary, (samples, context))
    inputs = {"input_ids": tokens}
    labels = {"labels": torch.where(torch.rand(tokens.shape) < 0.15, tokens, IGNORED)}
    if pairs:
        inputs["token_type_ids"] = torch.randint(0, 2, tokens.shape)
        inputs["attention_mask"] = torch.ones_like(tokens)
        labels["next_sentence_label"] = torch.randint(0, 2, (samples,))
    return Model(
        module=Bert(
            layers, heads, width, positions or context, vocabulary, dropout, tied, pairs
        ),
        inputs=inputs,
        labels=labels,
        loss=pretraining_loss if pairs else masked_loss,
    )
