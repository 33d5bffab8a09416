#!/usr/bin/env python3
# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks which parameters decay. Trains a module with parameters of many shapes by
AdamW with a large weight decay, on 2 ranks in float64. Trains the same module by
torch.optim.AdamW with parameter groups, in a plain loop. The weights must agree within
1e-10. The decayed parameters are chosen by shape alone, with patterns of names in
Model(decay=…), and with patterns in no_decay(…) or --no-decay.

Exits non-zero if one differs. Needs a Python with torch: that of build/venv, unless
another Python runs this script."""

import argparse
import json
import pathlib
import sys
import types

from exporting import EXPORT, PYTHON, ROOT, check_each, of_type
from forks import call_script, restart_with, run_script
from grid import compile_to, run
from numerics import read_tensors

HERE = pathlib.Path(__file__).resolve().parent
SAMPLES, CONTEXT, BATCHES, STEPS, SEED, RATE, DECAY = 2, 16, 2, 3, 7, 0.01, 3.0
NO_DECAY = 'no_decay("tokens.*", "*.gate.*")'
MODEL = """
import torch
import torch.nn.functional as F
from chimera_export import Model
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        # The parameters of a norm, in the shape in which they are broadcast.
        self.gain = nn.Parameter(torch.ones(1, 1, width))
        self.bias = nn.Parameter(torch.ones(1, 1, width))
        self.linear = nn.Linear(width, width)
        self.gate = nn.Linear(width, 1)

    def forward(self, x):
        made = self.linear(F.layer_norm(x, x.shape[-1:]) * self.gain + self.bias)
        return x + torch.tanh(made) * torch.sigmoid(self.gate(x))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(256, 16)
        self.blocks = nn.ModuleList(Block(16) for _ in range(3))
        self.head = nn.Linear(16, 256)

    def forward(self, tokens):
        x = self.tokens(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def loss(output, labels):
    return F.cross_entropy(output.flatten(0, 1), labels.flatten())


def make(named=False, typo=False, samples=2, context=16):
    torch.manual_seed(0)
    tokens = torch.randint(0, 256, (samples, context))
    decay = {"blocks.1.*": True, "*.gain": True, "tokens.*": False} if named else None
    if typo:
        decay = {"*.gian": False}
    return Model(Net(), (tokens,), (tokens,), loss, decay=decay)
"""
DESCRIPTION = """
chimera.model @m exported("{package}")
chimera.training @t seed({seed}) learning_rate({rate}) weight_decay({decay}) {patterns}
chimera.pipeline @p of @m with @t stages(2) micro_batches({batches}) schedule("1f1b")
    micro_batch_size({samples}) weight_type(f64)
"""


def decays(name, parameter, named, patterns):
    if patterns and (name.startswith("tokens.") or ".gate." in name):
        return False
    if named and (name.startswith("blocks.1.") or name.endswith(".gain")):
        return True
    if named and name.startswith("tokens."):
        return False
    return sum(extent > 1 for extent in parameter.shape) > 1


def plain_loop(source, named, patterns, text):
    """Trains in plain PyTorch. Prints the weights after all steps, as JSON."""
    sys.path[:0] = [str(ROOT / "tools/export"), str(HERE)]
    import torch
    from chimera_export import command
    from reference import windows

    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    model = command.load_function(source)(named=named)
    module = model.module.to(torch.float64)
    groups = {True: [], False: []}
    for name, p in module.named_parameters():
        groups[decays(name, p, named, patterns)].append(p)
    optimizer = torch.optim.AdamW(
        [{"params": groups[True]}, {"params": groups[False], "weight_decay": 0.0}],
        lr=RATE, betas=(0.9, 0.999), eps=1e-8, weight_decay=DECAY,
    )  # fmt: skip
    settings = types.SimpleNamespace(
        hold_out=0.1, context=CONTEXT, micro_batch_size=SAMPLES, seed=SEED,
        micro_batches=BATCHES, data_parallel=1,
    )  # fmt: skip
    for step in range(STEPS):
        optimizer.zero_grad()
        for micro_batch in range(BATCHES):
            tokens, labels = windows(text, settings, step, micro_batch)
            (model.loss(module(tokens), labels) / BATCHES).backward()
        optimizer.step()
    weights = {n: p.flatten().tolist() for n, p in module.named_parameters()}
    print(json.dumps(weights))


def export(folder, *arguments):
    source = folder / "mine.py"
    source.write_text(MODEL)
    return call_script(
        EXPORT, source, *arguments, *of_type("float64"), "-o", folder / "package"
    )


def check(options, folder, case):
    if case == "typo":
        status, _, errors = export(folder, "typo=True")
        expected = (
            "expected each pattern of decay to match a parameter, got '*.gian': "
            "names are like blocks."
        )
        good = status == 1 and expected in errors
        return [f"{'ok  ' if good else 'FAIL'} a pattern that matches nothing is refused",
                *([] if good else [errors])], not good  # fmt: skip
    named, patterns = case == "by name", "by no_decay" in case
    as_option = case == "by no_decay as an option"
    is_cleared = case == "no_decay cleared"
    status, _, errors = export(folder, f"named={named}")
    assert status == 0, errors
    program, package = folder / "m.chimera", folder / "package"
    compile_to(
        options.tools,
        DESCRIPTION.format(
            package=package, seed=SEED, rate=RATE, decay=DECAY, batches=BATCHES,
            samples=SAMPLES,
            patterns=NO_DECAY if is_cleared or patterns and not as_option else "",
        ),
        program,
    )  # fmt: skip
    run(
        options.tools / "chimera-run", program, "--data", options.data, "--steps", STEPS,
        "--threads", 1, "--quiet", "--evaluate-samples", 0,
        "--load", package / "values.safetensors", "--save", folder / "weights",
        *(["--no-decay", "tokens.*", "--no-decay", "*.gate.*"] if as_option else []),
        *(["--no-decay", "none"] if is_cleared else []),
    )  # fmt: skip
    theirs = json.loads(
        run_script(
            __file__, "--plain-loop", folder / "mine.py", "--data",
            options.data, *(["--named"] if named else []),
            *(["--patterns"] if patterns else []),
        )
    )  # fmt: skip
    ours, start = (
        read_tensors(folder / file) for file in ("weights", "package/values.safetensors")
    )
    lines, failed = [], 0
    for name in theirs:
        worst = max(abs(a - b) for a, b in zip(ours[name], theirs[name], strict=True))
        # Weight decay alone changes a weight by a tenth. So a parameter in the wrong
        # group would differ.
        moved = max(abs(a - b) for a, b in zip(ours[name], start[name]))
        good = worst <= 1e-10 and moved > 1e-3
        failed += not good
        lines.append(f"{'ok  ' if good else 'FAIL'} {case}: {name} differs by {worst:.1e}")
    return lines, failed


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tools", type=pathlib.Path)
    parser.add_argument("--data", type=pathlib.Path, default=ROOT / "LICENSE")
    parser.add_argument("--python", default=PYTHON)
    parser.add_argument("--plain-loop", help=argparse.SUPPRESS)
    parser.add_argument("--named", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--patterns", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.plain_loop:
        return plain_loop(
            options.plain_loop, options.named, options.patterns, options.data.read_bytes()
        )
    if restart_with(options.python, "torch", "safetensors"):
        check_each(
            lambda folder, case: check(options, folder, case),
            ("by shape", "by name", "by no_decay", "by no_decay as an option",
             "no_decay cleared", "typo"),
        )
    return None


if __name__ == "__main__":
    main()
