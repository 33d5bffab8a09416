#!/usr/bin/env python3
# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trains a program's model with plain PyTorch, on one device, without any of
chimera's code, and compares the result with chimera's.

It uses only what chimera documents: the architecture (runtime/program/Gpt2Package.h), the
derivation of random numbers (runtime/random/Random.h) and the choice of text
windows (TextData.h). It reads the initial weights from a file:

    chimera-translate --program-to-json program.chimera > program.json
    chimera-run program.chimera --sequential --data TEXT --steps 0 --save w0
    chimera-run program.chimera --data TEXT --steps 5 --save w5
    test/e2e/reference.py --model "gpt2 layers(6) …" --program-json program.json \\
        --data TEXT --steps 5 --weights w0 --compare w5

--model has the clauses of the model in the description. Numbers on the command line
replace those of the program. Without --program-json all of them are needed. Exits
with 0 if everything agrees, 1 if something differs, 2 if it cannot run. Needs no
package but torch.
"""

import argparse
import fnmatch
import json
import math
import struct
import sys

import torch
import torch.nn.functional as F
from grid import gpt2_sizes
from torch_optimizers import muon_in, optimizers_of

from reference_random import (
    ATTENTION,
    ATTENTION_RESIDUAL,
    EMBEDDING,
    FIRST_WINDOW,
    MLP_RESIDUAL,
    SAMPLE_ORDER,
    Dropout,
    mix,
)


def truth(value):
    if str(value).lower() not in ("true", "false"):
        raise ValueError(f"expected true or false, got {value}")
    return str(value).lower() == "true"


# The numbers that define a run. For each: the option, its type, and its place in the
# program.
NUMBERS = [
    ("micro-batch-size", int, ("micro_batch_size",)),
    ("micro-batches", int, ("micro_batches",)),
    ("data-parallel", int, ("data_parallel",)),
    ("seed", int, ("seed",)),
    ("learning-rate", float, ("optimizer", "learning_rate")),
    ("beta1", float, ("optimizer", "beta1")),
    ("beta2", float, ("optimizer", "beta2")),
    ("epsilon", float, ("optimizer", "epsilon")),
    ("weight-decay", float, ("optimizer", "weight_decay")),
    ("lr-schedule", str, ("optimizer", "lr_schedule")),
    ("warmup", int, ("optimizer", "warmup")),
    ("min-lr", float, ("optimizer", "min_lr")),
    ("momentum", float, ("optimizer", "momentum")),
    ("nesterov", truth, ("optimizer", "nesterov")),
    ("clip-norm", float, ("optimizer", "clip_norm")),
]
TYPES = {
    "float32": torch.float32, "float64": torch.float64, "bfloat16": torch.bfloat16,
}  # fmt: skip
SAFETENSORS_TYPES = {"F32": torch.float32, "F64": torch.float64, "BF16": torch.bfloat16}


# --- the model ----------------------------------------------------------------


class Gpt2:
    """GPT-2 with its parameters in a dictionary. If `tied`, the matrix of the head is
    that of the token embedding, otherwise a parameter of its own. Computes in `dtype`.
    If this is bfloat16, norms and the loss are computed in float32."""

    def __init__(self, parameters, layers, heads, tied, dtype):
        self.p = {name: p.to(dtype) for name, p in parameters.items()}
        self.layers, self.heads, self.tied = layers, heads, tied
        self.wide = torch.float32 if dtype == torch.bfloat16 else dtype

    def get(self, layer, name):
        return self.p[f"layers.{layer}.{name}"]

    def affine(self, x, layer, name):
        return x @ self.get(layer, name + ".weight").T + self.get(
            layer, name + ".bias"
        )

    def norm(self, x, layer, name):
        return self.norm_of(x.to(self.wide), layer, name).to(x.dtype)

    def norm_of(self, x, layer, name):
        centred = x - x.mean(-1, keepdim=True)
        variance = (centred * centred).mean(-1, keepdim=True)
        return centred / torch.sqrt(variance + 1e-5) * self.get(
            layer, name + ".weight"
        ) + self.get(layer, name + ".bias")

    def attention(self, x, layer, dropout):
        rows, context, width = x.shape
        query, key, value = (
            part.reshape(rows, context, self.heads, width // self.heads)
            .transpose(1, 2)
            .reshape(rows * self.heads, context, width // self.heads)
            for part in self.affine(x, layer, "attention").chunk(3, dim=-1)
        )
        scores = query @ key.transpose(1, 2) / math.sqrt(width // self.heads)
        future = torch.ones(context, context, dtype=torch.bool).triu(1)
        probabilities = scores.masked_fill(future, -math.inf).softmax(-1)
        mixed = dropout(probabilities, layer, ATTENTION) @ value
        mixed = mixed.reshape(rows, self.heads, context, width // self.heads)
        mixed = mixed.transpose(1, 2).reshape(rows, context, width)
        return self.affine(mixed, layer, "attention_projection")

    def loss(self, tokens, labels, dropout):
        x = self.get(0, "token_embedding")[tokens]
        x = dropout(x + self.get(0, "position_embedding"), 0, EMBEDDING)
        for layer in range(1, self.layers + 1):
            mixed = self.attention(self.norm(x, layer, "norm1"), layer, dropout)
            x = x + dropout(mixed, layer, ATTENTION_RESIDUAL)
            hidden = self.affine(self.norm(x, layer, "norm2"), layer, "mlp")
            hidden = F.gelu(hidden, approximate="tanh")
            hidden = self.affine(hidden, layer, "mlp_projection")
            x = x + dropout(hidden, layer, MLP_RESIDUAL)
        head = self.layers + 1
        matrix = (
            self.get(0, "token_embedding")
            if self.tied
            else self.get(head, "head.weight")
        )
        logits = self.norm(x, head, "norm") @ matrix.T
        return F.cross_entropy(
            logits.flatten(0, 1).to(self.wide), labels.flatten()
        )


# --- data and files -------------------------------------------------------------


def read_safetensors(path):
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
        data = bytearray(file.read())
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        dtype = SAFETENSORS_TYPES[entry["dtype"]]
        tensors[name] = (
            torch.frombuffer(data[begin:end], dtype=dtype)
            .reshape(entry["shape"])
            .clone()
        )
    return tensors


def permute(number, count, key):
    """The image of `number` under a permutation of range(count): a Feistel network of
    8 rounds on at least 6 bits."""
    bits = max(6, (count - 1).bit_length())
    low_bits = bits // 2
    low_mask, high_mask = (1 << low_bits) - 1, (1 << (bits - low_bits)) - 1
    while True:
        low, high = number & low_mask, number >> low_bits
        for turn in range(0, 8, 2):
            high ^= mix(key, turn, low) & high_mask
            low ^= mix(key, turn + 1, high) & low_mask
        number = high << low_bits | low
        if number < count:
            return number


def sample_at(samples, run, step, position):
    """The epoch, and the number of the sample, at a position of a step's mini-batch. An
    epoch has `samples` samples. Samples that do not fill a mini-batch are
    dropped."""
    batch = run.micro_batches * run.data_parallel * run.micro_batch_size
    steps = samples // batch
    if steps < 1:
        sys.exit(f"reference: expected at least {batch} samples, got {samples}")
    epoch = step // steps
    key = mix(run.seed, SAMPLE_ORDER, epoch)
    return epoch, permute(step % steps * batch + position, samples, key)


def window_start(training, run, step, position):
    """The first of the `training` tokens in a sample."""
    count = max((training - run.context) // run.context, 1)
    places = min(run.context, training - count * run.context)
    epoch, window = sample_at(count, run, step, position)
    return mix(run.seed, FIRST_WINDOW, epoch) % places + window * run.context


def windows(text, run, step, micro_batch):
    """The tokens and the labels of one micro-batch."""
    training = len(text) - math.floor(len(text) * run.hold_out)
    rows = []
    for row in range(run.micro_batch_size):
        position = micro_batch * run.micro_batch_size + row
        start = window_start(training, run, step, position)
        rows.append(list(text[start : start + run.context + 1]))
    rows = torch.tensor(rows)
    return rows[:, :-1], rows[:, 1:]


# --- older weights, for schedules without a flush -------------------------------


class History:
    """The parameters after every update. PipeDream (SOSP'19): before a micro-batch,
    stage s of D has made an update for each earlier micro-batch, except for the D-1-s
    that are in flight. PipeDream-2BW (ICML'21): a step reads the weights without the
    update of the previous step."""

    def __init__(self, run, parameters):
        self.run, self.parameters = run, parameters
        self.versions = [None] if run.updates == "flush" else [self.copies()]
        self.stage_of_layer = [
            s for s, stage in enumerate(run.stages) for _ in range(stage["layers"])
        ]

    def copies(self):
        return {name: p.detach().clone() for name, p in self.parameters.items()}

    def keep(self):
        if self.run.updates != "flush":
            self.versions.append(self.copies())

    def version(self, name, step, micro_batch):
        if self.run.updates == "each_step":
            return max(0, step - 1)
        stage = self.stage_of_layer[int(name.split(".")[1])]
        in_flight = len(self.run.stages) - 1 - stage
        return max(0, step * self.run.micro_batches + micro_batch - in_flight)

    def read(self, step, micro_batch):
        if self.run.updates == "flush":
            return self.parameters
        return {
            name: self.versions[self.version(name, step, micro_batch)][name]
            .clone()
            .requires_grad_(True)
            for name in self.parameters
        }

    def take_gradients(self, weights):
        """Adds the gradients of `weights`, the version that was read, to the gradients
        of the parameters."""
        if weights is self.parameters:
            return
        for name, parameter in self.parameters.items():
            gradient = weights[name].grad
            if gradient is not None:
                if parameter.grad is None:
                    parameter.grad = torch.zeros_like(parameter)
                parameter.grad += gradient


# --- the run --------------------------------------------------------------------


def rate_of(run, step):
    """The learning rate of a step."""
    if step < run.warmup:
        return run.learning_rate * step / run.warmup
    if run.lr_schedule == "constant":
        return run.learning_rate
    left = 1 - (step - run.warmup) / (run.steps - run.warmup)
    if run.lr_schedule == "cosine":
        left = (1 - math.cos(math.pi * left)) / 2
    elif run.lr_schedule != "linear":
        raise ValueError(f"no such schedule here: {run.lr_schedule}")
    return run.min_lr + left * (run.learning_rate - run.min_lr)


def train(run, text, parameters):
    """Trains `parameters` in place. Returns the gradients of the last update, before
    they are clipped."""
    for parameter in parameters.values():
        parameter.requires_grad_(True)
    inner = tuple(f"layers.{layer}." for layer in range(1, run.layers + 1))
    hidden = [
        name
        for name, p in parameters.items()
        if name.startswith(inner) and p.dim() == 2
        and not any(fnmatch.fnmatchcase(name, pattern) for pattern in run.no_muon)
    ]  # fmt: skip
    optimizers = optimizers_of(
        run.optimizer, parameters, hidden, rate=run.learning_rate, decay=run.weight_decay,
        momentum=run.momentum, nesterov=run.nesterov, betas=(run.beta1, run.beta2),
        eps=run.epsilon,
    )  # fmt: skip
    history = History(run, parameters)
    per_update = 1 if run.updates == "each_micro_batch" else run.micro_batches
    for step in range(run.steps):
        for optimizer in optimizers:
            for group in optimizer.param_groups:
                group["lr"] = rate_of(run, step)
        total = 0.0
        for first in range(0, run.micro_batches, per_update):
            for optimizer in optimizers:
                optimizer.zero_grad()
            for copy in range(run.data_parallel):
                for m in range(first, first + per_update):
                    weights = history.read(step, m)
                    model = Gpt2(
                        weights, run.layers, run.heads, run.tied,
                        TYPES[run.computed],
                    )  # fmt: skip
                    index = copy * run.micro_batches + m
                    tokens, labels = windows(text, run, step, index)
                    dropout = Dropout(run.dropout, run.seed, step, index)
                    loss = model.loss(tokens, labels, dropout)
                    (loss / (per_update * run.data_parallel)).backward()
                    history.take_gradients(weights)
                    total += loss.item()
            gradients = {
                name: torch.zeros_like(p) if p.grad is None else p.grad.clone()
                for name, p in parameters.items()
            }
            if run.clip_norm > 0:
                torch.nn.utils.clip_grad_norm_(parameters.values(), run.clip_norm)
            with muon_in(TYPES[run.computed]):
                for optimizer in optimizers:
                    optimizer.step()
            history.keep()
        mean = total / (run.micro_batches * run.data_parallel)
        print(f"step {step} loss {mean:.17g}", flush=True)
    return gradients


def compare(what, path, ours, tolerance, by_norm):
    """Whether the tensors in `path` equal `ours`. Prints the differences. Each element
    may differ by tolerance * max(1, the largest element of the tensor). If `by_norm`,
    the norm of a tensor's difference may instead be tolerance times the norm of all
    tensors."""
    theirs = read_safetensors(path)
    whole = math.sqrt(sum(a.double().square().sum().item() for a in ours.values()))
    agree = True
    worst = (0.0, "")
    for name in sorted(ours.keys() | theirs.keys()):
        if name not in ours or name not in theirs:
            side = path if name in ours else "the model"
            print(f"{what} {name}: missing in {side}")
            agree = False
            continue
        a, b = ours[name].double(), theirs[name].double()
        if a.shape != b.shape:
            print(f"{what} {name}: shape {list(b.shape)}, not {list(a.shape)}")
            agree = False
            continue
        if by_norm:
            difference = (a - b).norm().item() / whole
        else:
            scale = max(1.0, a.abs().max().item())
            difference = (a - b).abs().max().item() / scale
        if not difference <= tolerance:  # also true for NaN
            print(f"{what} {name}: differs by {difference:.3g}")
            agree = False
        worst = max(worst, (difference, name))
    print(
        f"{what}: {len(ours)} tensors "
        f"{'agree' if agree else 'DIFFER'}, by at most {worst[0]:.3g} "
        f"({worst[1]}; allowed {tolerance:.3g})"
    )
    return agree


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", required=True, help="the model, as in a description")
    parser.add_argument("--program-json", help="the program, dumped as JSON")
    parser.add_argument("--data", required=True, help="the text file")
    parser.add_argument("--hold-out", type=float, default=0.1)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--weights", required=True, help="the initial weights")
    parser.add_argument("--compare", metavar="FILE", help="final weights")
    parser.add_argument(
        "--compare-gradients",
        metavar="FILE",
        help="the last step's gradients of the mean loss over all micro-batches",
    )
    parser.add_argument("--tolerance", type=float, default=1e-10)
    parser.add_argument(
        "--by-norm",
        action="store_true",
        help="take norms of differences, relative to the norm of all tensors",
    )
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--dtype", choices=sorted(TYPES), help="of the weights")
    parser.add_argument(
        "--computed", choices=sorted(TYPES), help="type of activations"
    )
    for name, kind, _ in NUMBERS:
        parser.add_argument("--" + name, type=kind)
    run = parser.parse_args()
    for name, size in gpt2_sizes(run.model).items():
        setattr(run, name, size)
    program = {}
    if run.program_json:
        with open(run.program_json) as file:
            program = json.load(file)
    for name, kind, path in NUMBERS:
        attribute = name.replace("-", "_")
        value = program
        for key in path:
            value = (value or {}).get(key)
        if getattr(run, attribute) is None:
            if value is None:
                parser.error(f"--{name} is needed: the program does not say it")
            setattr(run, attribute, kind(value))
    run.dtype = run.dtype or program.get("weight_type")
    run.computed = run.computed or program.get("activation_type") or run.dtype
    if run.dtype not in TYPES:
        parser.error("--dtype is needed: the program does not say it")
    run.updates = program.get("updates", "flush")
    run.optimizer = program.get("optimizer", {}).get("name", "adamw")
    run.no_muon = program.get("optimizer", {}).get("no_muon", [])
    run.stages = program.get("stages", [])
    return run


def main():
    run = arguments()
    torch.set_num_threads(run.threads)
    with open(run.data, "rb") as file:
        text = file.read()
    parameters = {
        name: tensor.to(TYPES[run.dtype])
        for name, tensor in read_safetensors(run.weights).items()
    }
    gradients = train(run, text, parameters)
    agree = True
    if run.compare:
        weights = {name: p.detach() for name, p in parameters.items()}
        agree &= compare(
            "weights", run.compare, weights, run.tolerance, run.by_norm
        )
    if run.compare_gradients:
        agree &= compare(
            "gradients", run.compare_gradients, gradients, run.tolerance, run.by_norm
        )
    return 0 if agree else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (OSError, ValueError, KeyError, IndexError, struct.error) as error:
        print(f"reference: {type(error).__name__}: {error}", file=sys.stderr)
        sys.exit(2)
