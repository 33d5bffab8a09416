# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One rank of a GPT-2 that trains by a schedule of torch.distributed.pipelining, over
gloo, with one thread. Reads RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT as torchrun
sets them. With --schedule sequential the process trains the whole model alone. The rank
of the last stage writes the log: a JSON line for each step, with the mean loss and the
seconds since the start of the first step. Needs torch.

Each rank has one stage, or two for interleaved schedules. All stages have equally many
layers. The first stage also has the embeddings, and the last one the final norm and the
head.
"""

import argparse
import json
import time

import torch
import torch.distributed as dist
import torch.distributed.pipelining as pipelining
import torch.nn.functional as F
from torch import nn

# For each schedule, its class and its number of stages per rank.
SCHEDULES = {
    "gpipe": (pipelining.ScheduleGPipe, 1),
    "1f1b": (pipelining.Schedule1F1B, 1),
    "interleaved-1f1b": (pipelining.ScheduleInterleaved1F1B, 2),
    "interleaved-zero-bubble": (pipelining.ScheduleInterleavedZeroBubble, 2),
}
# The defaults of chimera.training.
ADAMW = {"lr": 1e-3, "betas": (0.9, 0.999), "eps": 1e-8}
WEIGHT_DECAY = 0.01
HOLD_OUT = 0.1


class Embedding(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.token = nn.Embedding(args.vocabulary, args.width)
        self.position = nn.Parameter(torch.empty(args.context, args.width))
        nn.init.normal_(self.position, std=0.02)

    def forward(self, tokens):
        return self.token(tokens) + self.position


class Layer(nn.Module):
    def __init__(self, args):
        super().__init__()
        width = args.width
        self.heads = args.heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = nn.Linear(width, 3 * width)
        self.attention_projection = nn.Linear(width, width)
        self.mlp = nn.Linear(width, 4 * width)
        self.mlp_projection = nn.Linear(4 * width, width)

    def forward(self, x):
        query, key, value = (
            part.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for part in self.attention(self.norm1(x)).chunk(3, dim=-1)
        )
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.attention_projection(mixed.transpose(1, 2).flatten(2))
        hidden = F.gelu(self.mlp(self.norm2(x)), approximate="tanh")
        return x + self.mlp_projection(hidden)


def make_stages(args, count):
    """The whole model, cut into `count` modules."""
    if args.layers % count:
        raise SystemExit(f"expected a multiple of {count} layers, got {args.layers}")
    torch.manual_seed(1)
    # For every `count`, make and initialise all layers in the same order. So all cuts
    # of the model start with the same weights.
    layers = [Layer(args) for _ in range(args.layers)]
    embedding = Embedding(args)
    head = nn.Linear(args.width, args.vocabulary, bias=False)
    for part in nn.ModuleList([embedding, *layers, head]).modules():
        if isinstance(part, (nn.Linear, nn.Embedding)):
            nn.init.normal_(part.weight, std=0.02)
        if isinstance(part, nn.Linear) and part.bias is not None:
            nn.init.zeros_(part.bias)
    each = args.layers // count
    stages = [layers[first : first + each] for first in range(0, args.layers, each)]
    stages[0].insert(0, embedding)
    stages[-1] += [nn.LayerNorm(args.width), head]
    return [nn.Sequential(*stage) for stage in stages]


def make_optimizer(modules):
    parameters = [p for module in modules for p in module.parameters()]
    return torch.optim.AdamW(
        [
            {
                "params": [p for p in parameters if p.dim() >= 2],
                "weight_decay": WEIGHT_DECAY,
            },
            {"params": [p for p in parameters if p.dim() < 2], "weight_decay": 0.0},
        ],
        **ADAMW,
    )


def loss_of(logits, labels):
    return F.cross_entropy(logits.flatten(0, 1), labels.flatten())


def batches(args):
    """The tokens and labels of each step. They are the same on all ranks."""
    with open(args.data, "rb") as file:
        text = torch.frombuffer(bytearray(file.read()), dtype=torch.uint8)
    text = text[: len(text) - int(HOLD_OUT * len(text))]
    generator = torch.Generator().manual_seed(1)
    rows = args.micro_batches * args.micro_batch_size
    window = torch.arange(args.context + 1)
    for _ in range(args.steps):
        starts = torch.randint(
            len(text) - args.context, (rows, 1), generator=generator
        )
        both = text[starts + window].long()
        yield both[:, :-1].contiguous(), both[:, 1:].contiguous()


class Sequential:
    """Runs a step of the whole model, micro-batch by micro-batch."""

    def __init__(self, args):
        (self.model,) = self.modules = make_stages(args, 1)
        self.micro_batches = args.micro_batches
        self.has_loss = True

    def step(self, tokens, labels):
        losses = []
        for part, its_labels in zip(
            tokens.chunk(self.micro_batches), labels.chunk(self.micro_batches)
        ):
            loss = loss_of(self.model(part), its_labels)
            (loss / self.micro_batches).backward()
            losses.append(loss.detach())
        return losses


class Pipelined:
    """Runs one rank's part of a step."""

    def __init__(self, args):
        dist.init_process_group("gloo")
        rank, ranks = dist.get_rank(), dist.get_world_size()
        schedule, each = SCHEDULES[args.schedule]
        count = each * ranks
        numbers = range(rank, count, ranks)
        every = make_stages(args, count)
        self.modules = [every[number] for number in numbers]
        stages = [
            pipelining.PipelineStage(every[number], number, count, torch.device("cpu"))
            for number in numbers
        ]
        self.schedule = schedule(
            stages if each > 1 else stages[0], args.micro_batches, loss_fn=loss_of
        )
        self.has_tokens, self.has_loss = rank == 0, rank == ranks - 1

    def step(self, tokens, labels):
        losses = []
        self.schedule.step(
            *([tokens] if self.has_tokens else []),
            target=labels if self.has_loss else None,
            losses=losses if self.has_loss else None,
            return_outputs=False,
        )
        return losses


def train(args, way):
    optimizer = make_optimizer(way.modules)
    lines = []
    data = list(batches(args))
    begin = time.perf_counter()
    for tokens, labels in data:
        optimizer.zero_grad()
        losses = way.step(tokens, labels)
        optimizer.step()
        if way.has_loss:
            loss = torch.stack(losses).mean().item()
            seconds = time.perf_counter() - begin
            lines.append(json.dumps({"loss": loss, "seconds": seconds}))
    if way.has_loss:
        with open(args.log, "w") as log:
            log.write("\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--schedule", choices=["sequential", *SCHEDULES], required=True
    )
    for name in ("data", "log"):
        parser.add_argument(f"--{name}", required=True)
    for name in (
        "layers", "heads", "width", "context", "vocabulary", "micro-batch-size",
        "micro-batches", "steps",
    ):  # fmt: skip
        parser.add_argument(f"--{name}", type=int, required=True)
    args = parser.parse_args()
    torch.set_num_threads(1)
    train(args, Sequential(args) if args.schedule == "sequential" else Pipelined(args))
    if dist.is_initialized():
        dist.barrier()
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
