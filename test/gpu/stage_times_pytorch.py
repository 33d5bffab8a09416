#!/usr/bin/env python3
# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Times the forward and backward of the stages of a program of table.json in plain
PyTorch, eagerly or by torch.compile with CUDA graphs. Prints medians in the form of
stage_times. In bfloat16, the whole model has that type, except for the loss after the
logits. Each backward adds its gradients to those of the previous micro-batch."""

import argparse
import json
import pathlib
import time

import torch
import torch.nn.functional as F
from torch import nn

UNTIMED = 5


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = nn.Linear(width, 3 * width)
        self.attention_projection = nn.Linear(width, width)
        self.mlp = nn.Linear(width, 4 * width)
        self.mlp_projection = nn.Linear(4 * width, width)

    def forward(self, x):
        rows, context, width = x.shape
        query, key, value = (
            part.view(rows, context, self.heads, -1).transpose(1, 2)
            for part in self.attention(self.norm1(x)).split(width, -1)
        )
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        mixed = mixed.transpose(1, 2).reshape(rows, context, width)
        x = x + self.attention_projection(mixed)
        hidden = F.gelu(self.mlp(self.norm2(x)), approximate="tanh")
        return x + self.mlp_projection(hidden)


class Stage(nn.Module):
    """Layers [first, first + count) of the model, whose layers are the embedding, the
    blocks and the head."""

    def __init__(self, sizes, first, count):
        super().__init__()
        width, last = sizes["width"], sizes["layers"] + 1
        self.is_first, self.is_last = first == 0, first + count > last
        if self.is_first:
            self.tokens = nn.Embedding(sizes["vocabulary"], width)
            self.positions = nn.Embedding(sizes["context"], width)
        blocks = min(first + count, last) - max(first, 1)
        self.blocks = nn.Sequential(
            *(Block(width, sizes["heads"]) for _ in range(blocks))
        )
        if self.is_last:
            self.norm = nn.LayerNorm(width)
            self.head = nn.Linear(width, sizes["vocabulary"], bias=False)

    def forward(self, x, labels):
        if self.is_first:
            x = self.tokens(x) + self.positions.weight
        x = self.blocks(x)
        if not self.is_last:
            return x
        logits = self.head(self.norm(x)).flatten(0, 1)
        return F.cross_entropy(logits.float(), labels.flatten())


class Clock:
    """Records points in time, on a GPU or on the host."""

    def __init__(self, device):
        self.is_cuda = device == "cuda"

    def now(self):
        if not self.is_cuda:
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def milliseconds(self, begin, end):
        return begin.elapsed_time(end) if self.is_cuda else 1e3 * (end - begin)

    def wait(self):
        if self.is_cuda:
            torch.cuda.synchronize()


def median(values):
    return sorted(values)[len(values) // 2]


def times_of(stage, each, options):
    sizes, rows = each["sizes"], each["micro_batch_size"]
    dtype = getattr(torch, each["type"])
    module = Stage(sizes, stage["first_layer"], stage["layers"])
    module = module.to(device=options.device, dtype=dtype)
    shape = rows, sizes["context"]
    draw = {"device": options.device}
    labels = torch.randint(sizes["vocabulary"], shape, **draw)
    if module.is_first:
        x = torch.randint(sizes["vocabulary"], shape, **draw)
    else:
        x = torch.randn(*shape, sizes["width"], dtype=dtype, **draw)
        x.requires_grad_(True)
    gradient = None
    if not module.is_last:
        gradient = torch.randn(*shape, sizes["width"], dtype=dtype, **draw)
    run = module
    if options.compile:
        run = torch.compile(module, mode="reduce-overhead")
    # The backward adds to these gradients. If a graph made them itself, its next launch
    # would overwrite them.
    for parameter in module.parameters():
        parameter.grad = torch.zeros_like(parameter)
    clock, points = Clock(options.device), []
    for _ in range(UNTIMED + options.repeats):
        if options.compile:
            torch.compiler.cudagraph_mark_step_begin()
        begin = clock.now()
        y = run(x, labels)
        middle = clock.now()
        y.backward(gradient)
        points.append((begin, middle, clock.now()))
        x.grad = None if not module.is_first else x.grad
    clock.wait()
    points = points[UNTIMED:]
    return {
        "forward_ms": median([clock.milliseconds(p[0], p[1]) for p in points]),
        "backward_ms": median([clock.milliseconds(p[1], p[2]) for p in points]),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=pathlib.Path, required=True)
    parser.add_argument("--program", required=True, help="its name in table.json")
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--repeats", type=int, default=20)
    options = parser.parse_args()
    every = json.loads((options.programs / "table.json").read_text())
    (each,) = (one for one in every if one["program"] == options.program)
    torch.manual_seed(1)
    # chimera uses the same setting.
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    found = {"stages": [times_of(stage, each, options) for stage in each["stages"]]}
    found["torch"] = torch.__version__
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
