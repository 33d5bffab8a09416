#!/usr/bin/env python3
# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trains exported models on arrays, on two ranks in float64, with AdamW, a learning rate
that rises and falls, and clipping: images with classes from .npy files, regression from
safetensors files, pairs from both; and GPT-2, BERT and a convolution net on arrays of
tokens. Compares the loss and the norm of the gradients of each step, and the weights
after all steps, with a plain PyTorch loop over the same samples, with clip_grad_norm_ and
a scheduler of transformers.

Prints a line for each comparison and exits non-zero if one fails. Needs a Python with
torch: that of build/venv, unless another Python runs this script."""

import argparse
import json
import math
import pathlib
import subprocess
import sys
import types

from exporting import EXPORT, PYTHON, ROOT, check_each, of_type
from forks import restart_with, run_script
from grid import run
from numerics import losses, read_tensors, worst_difference

HERE = pathlib.Path(__file__).resolve().parent
SAMPLES, BATCHES, STEPS, SEED, RATE, WARMUP = 2, 4, 7, 7, 0.01, 2
TOTAL = 30  # 27 of them train: 3 steps an epoch, and 3 samples are left

MODELS = '''
import torch
import torch.nn.functional as F
from chimera_export import Model
from torch import nn

class Table(nn.Module):
    """A regression from numbers, a category and whether numbers are known."""
    def __init__(self):
        super().__init__()
        self.kinds = nn.Embedding(5, 8)
        self.first = nn.Linear(6, 8)
        self.blocks = nn.ModuleList(nn.Linear(8, 8) for _ in range(4))
        self.head = nn.Linear(8, 2)
    def forward(self, numbers, known, kind):
        x = self.first(torch.where(known, numbers, torch.zeros_like(numbers)))
        x = x + self.kinds(kind)
        for block in self.blocks:
            x = x + torch.tanh(block(x))
        return self.head(x)

def table(samples=2):
    torch.manual_seed(0)
    inputs = {"numbers": torch.rand(samples, 6), "known": torch.rand(samples, 6) > 0.2,
              "kind": torch.randint(0, 5, (samples,), dtype=torch.int32)}
    return Model(Table(), inputs, {"target": torch.rand(samples, 2)}, F.mse_loss)

class Pairs(nn.Module):
    """Embeds two images by the same layers."""
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Conv2d(1 if i == 0 else 4, 4, 3, padding=1)
                                    for i in range(4))
        self.head = nn.Linear(4 * 25, 6)
    def forward(self, left, right):
        x = torch.cat([left, right], 1).flatten(0, 1).unsqueeze(1)
        for layer in self.layers:
            x = torch.tanh(layer(x))
        return self.head(x.flatten(1)).view(left.shape[0], 2, 6)

def distance(output, same):
    """A contrastive loss (Hadsell et al., 2006)."""
    far = (output[:, 0] - output[:, 1]).square().sum(1)
    return (same * far + (1 - same) * F.relu(1 - far)).mean()

def pairs(samples=2):
    torch.manual_seed(0)
    images = {"left": torch.rand(samples, 1, 5, 5), "right": torch.rand(samples, 1, 5, 5)}
    return Model(Pairs(), images, {"same": torch.rand(samples)}, distance)
'''
DESCRIPTION = """
chimera.model @m exported("{package}")
chimera.training @t seed({seed}) learning_rate({rate}) weight_decay(0.0)
    lr_schedule(cosine) warmup({warmup}) lr_steps({steps}) clip_norm({clip})
chimera.pipeline @p of @m with @t stages(2) micro_batches({batches}) schedule("1f1b")
    micro_batch_size({samples}) weight_type(f64)
"""
# For each case: the files of its arrays with the range of samples in each, and the limit
# of the gradients' norm. The norm is above the limit in some steps only.
CASES = {
    "vit": (["pixels=a.npy:0:20", "pixels=b.npy:20:30", "classes=c.npy:0:30"], 1.0),
    "table": (["a.safetensors:0:11", "b.safetensors:11:30"], 2.0),
    "pairs": (["left=l.npy:0:30", "rest.safetensors:0:30"], 0.01),
    "gpt2": (["all.safetensors:0:30"], 1.0),
    "bert": (["all.safetensors:0:30"], 1.26),
    "convolution": (["all.safetensors:0:30"], 0.17),
}
# The arguments of the models of examples/models.
WORDS = {
    "vit": "layers=3 heads=2 width=8 patch=4 size=8 classes=5",
    "gpt2": "layers=4 heads=2 width=16 context=8",
    "bert": "layers=4 heads=2 width=16 context=16",
    "convolution": "layers=4 width=8 context=8",
}


def model_of(name, folder):
    """The source of a model, and the words for chimera-export to make it."""
    if name in WORDS:
        return ROOT / f"examples/models/{name}.py", WORDS[name].split()
    (folder / "models.py").write_text(MODELS)
    return f"{folder / 'models.py'}:{name}", []


def load(name, folder, bad):
    """The model and its samples, in float64. If `bad`, one label is not a number. Needs
    torch."""
    sys.path[:0] = [str(ROOT / "tools/export"), str(HERE)]
    import torch
    from chimera_export import arguments, command

    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    source, words = model_of(name, folder)
    make = command.load_function(str(source))
    given = arguments.parse_values(words)
    everything = make(**given, samples=TOTAL)
    torch.manual_seed(1)
    model = make(**given, samples=SAMPLES)
    model.module.to(torch.float64)
    arrays = {**everything.inputs, **everything.labels}
    if bad:
        arrays["target"][5] = math.nan
    return model, arrays


def write(name, folder, bad):
    """Writes the arrays of CASES."""
    import numpy
    from safetensors.torch import save_file

    _, arrays = load(name, folder, bad)
    files = CASES[name][0]
    alone = {words.split("=")[0] for words in files if "=" in words}
    for words in files:
        file, first, end = words.split(":")
        field, _, path = file.rpartition("=")
        if field:
            numpy.save(folder / path, arrays[field][int(first) : int(end)].numpy())
            continue
        save_file(
            {
                n: a[int(first) : int(end)].clone()
                for n, a in arrays.items()
                if n not in alone
            },
            folder / path,
        )


def plain_loop(name, folder, bad):
    """Trains in plain PyTorch. Prints the losses, the norms of the gradients and the
    weights, as JSON. Leaves out steps whose gradients are not finite."""
    model, arrays = load(name, folder, bad)
    import torch
    from chimera_export.model import WithLoss
    from reference import sample_at
    from transformers import get_cosine_schedule_with_warmup

    named = dict(model.module.named_parameters())
    start = read_tensors(folder / "package/values.safetensors")
    with torch.no_grad():
        for n, p in named.items():
            if n in start:  # a tied parameter has one name there
                p.copy_(torch.tensor(start[n]).view(p.shape))
    loss_of = WithLoss(model)
    optimizer = torch.optim.AdamW(named.values(), lr=RATE, weight_decay=0.0)
    rate = get_cosine_schedule_with_warmup(optimizer, WARMUP, STEPS)
    settings = types.SimpleNamespace(
        micro_batch_size=SAMPLES, micro_batches=BATCHES, data_parallel=1, seed=SEED
    )
    each, norms = [], []
    for step in range(STEPS):
        optimizer.zero_grad()
        # The terms of the loss, each with its weight, over all micro-batches.
        terms = []
        for micro_batch in range(BATCHES):
            rows = [
                sample_at(27, settings, step, micro_batch * SAMPLES + i)[1]
                for i in range(SAMPLES)
            ]
            given = loss_of(*(array[rows] for array in arrays.values()))
            terms.append(given if isinstance(given, (tuple, list)) else (given, 1))
        columns = [sum(column) for column in zip(*terms)]
        loss = sum(
            total / weight for total, weight in zip(columns[::2], columns[1::2])
        )
        loss.backward()
        each.append(loss.item())
        norms.append(
            torch.nn.utils.clip_grad_norm_(named.values(), CASES[name][1]).item()
        )
        if math.isfinite(norms[-1]):
            optimizer.step()
        else:  # the step counts for the corrections of AdamW
            for p in named.values():
                state = optimizer.state[p]
                state.setdefault("step", torch.tensor(0.0))
                state.setdefault("exp_avg", torch.zeros_like(p))
                state.setdefault("exp_avg_sq", torch.zeros_like(p))
                state["step"] += 1
        rate.step()
    weights = {n: p.flatten().tolist() for n, p in named.items() if n in start}
    print(json.dumps([each, norms, weights]))


def check(options, folder, name):
    tool = [__file__, "--case", name, "--folder", folder]
    source, words = model_of(name, folder)
    run_script(
        EXPORT, source, *words,
        f"samples={SAMPLES}", *of_type("float64"), "-o", folder / "package",
    )  # fmt: skip
    run_script(*tool, "--write")
    (folder / "m.mlir").write_text(
        DESCRIPTION.format(
            package=folder / "package", seed=SEED, rate=RATE, batches=BATCHES,
            samples=SAMPLES, warmup=WARMUP, steps=STEPS, clip=CASES[name][1],
        )
    )  # fmt: skip
    run(options.tools / "chimera-compile", folder / "m.mlir", "-o", folder / "m")
    data = []
    for text in CASES[name][0]:
        field, _, path = text.split(":")[0].rpartition("=")
        data += ["--data", (f"{field}=" if field else "") + str(folder / path)]
    common = [
        folder / "m", *data, "--threads", 1, "--quiet", "--load",
        folder / "package/values.safetensors", "--log", folder / "log",
    ]  # fmt: skip
    unsaved = common
    common = [*common, "--save", folder / "w"]
    output = run(options.tools / "chimera-run", *common, "--steps", STEPS)
    wanted, norms, weights = json.loads(run_script(*tool, "--plain-loop"))
    lines, failed = [], 0

    def say(good, line):
        nonlocal failed
        failed += not good
        lines.append(f"{'ok  ' if good else 'FAIL'} {name}: {line}")

    worst = max(abs(a - b) for a, b in zip(losses(folder / "log"), wanted, strict=True))
    say(worst <= 1e-10, f"losses of {STEPS} steps differ by {worst:.1e}")
    ours = losses(folder / "log", "grad_norm")
    worst = max(abs(a - b) / b for a, b in zip(ours, norms, strict=True))
    clipped = sum(norm > CASES[name][1] for norm in norms)
    say(worst <= 1e-10, f"norms of gradients differ by {worst:.1e}")
    say(0 < clipped < STEPS, f"{clipped} of {STEPS} steps are clipped")
    ours = read_tensors(folder / "w")
    start = read_tensors(folder / "package/values.safetensors")
    worst = max(
        abs(a - b) for n in weights for a, b in zip(ours[n], weights[n], strict=True)
    )
    moved = max(abs(a - b) for n in start for a, b in zip(ours[n], start[n]))
    say(worst <= 1e-9, f"weights differ by {worst:.1e}")
    say(moved > 1e-5, f"a weight has changed by {moved:.1e}")
    say("held-out loss" in output, "held-out loss")
    # An epoch is 3 steps of 8 samples; 3 of 27 are left.
    run(options.tools / "chimera-run", *common, "--epochs", 2)
    ours = losses(folder / "log")
    good = len(ours) == 6
    worst = max(abs(a - b) for a, b in zip(ours, wanted))
    say(good and worst <= 1e-10, "the same with --epochs 2, 6 steps")
    run(options.tools / "chimera-run", *common, "--epochs", 1, "--sequential")
    worst = max(abs(a - b) for a, b in zip(losses(folder / "log"), wanted))
    say(worst <= 1e-10, f"the same on one device: {worst:.1e}")
    if name == "table":
        skip_steps(options, folder, tool, unsaved, say)
    return lines, failed


def skip_steps(options, folder, tool, unsaved, say):
    """Trains with a sample whose loss is not a number. It is in one step of each epoch,
    so in up to three steps."""
    run_script(*tool, "--write", "--bad")
    wanted, norms, weights = json.loads(run_script(*tool, "--plain-loop", "--bad"))
    bad = sum(map(math.isnan, norms))
    unsaved = [options.tools / "chimera-run", *unsaved, "--steps", STEPS]
    trains = [*unsaved, "--save", folder / "w"]
    trains.remove("--quiet")
    ways = ([], ["--sequential"], ["--device", "simulated"])
    for where in ways:
        output = run(*trains, "--skip-nonfinite", bad, *where)
        told = output.count("is left out: its gradients are not finite")
        say(told == bad, f"{told} of {bad} steps that are left out are told {where}")
        ours = read_tensors(folder / "w")
        worst = max(
            abs(a - b) for n in weights for a, b in zip(ours[n], weights[n], strict=True)
        )
        say(
            bad > 1 and worst <= 1e-9,
            f"{bad} steps left out {where}: weights differ by {worst:.1e}",
        )
    (folder / "w").unlink()

    def end(*command):
        """Runs a command that must fail. Returns what it says."""
        ended = subprocess.run(list(map(str, command)), text=True, capture_output=True)
        say(ended.returncode == 1, f"status {ended.returncode}")
        return ended.stderr.strip()

    # The weights are those before the step that ends the run, for every schedule.
    last = [n for n, norm in enumerate(norms) if math.isnan(norm)][-1]
    kept = []
    for where in ways:
        told = end(*trains, "--skip-nonfinite", bad - 1, *where)
        good = f"after {bad - 1} step" in told and not (folder / "w").exists()
        say(good and f"after step {last}, are in" in told, f"ends at the next one: {told}")
        kept.append(read_tensors(folder / "w.last-finite"))
    worst = max(worst_difference(each, kept[0]) for each in kept)
    say(worst <= 1e-12, f"the last finite weights differ by {worst:.1e}")
    first = next(n for n, norm in enumerate(norms) if math.isnan(norm)) + 1
    for where in ways:
        told = end(*unsaved, *where)
        say(f"of step {first} " in told, f"ends without --save too: {told}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tools", type=pathlib.Path)
    parser.add_argument("--python", default=PYTHON)
    parser.add_argument("--case", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=pathlib.Path, help=argparse.SUPPRESS)
    parser.add_argument("--write", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--plain-loop", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--bad", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.write:
        write(options.case, options.folder, options.bad)
    elif options.plain_loop:
        plain_loop(options.case, options.folder, options.bad)
    elif restart_with(options.python, "torch", "safetensors", "numpy", "transformers"):
        check_each(lambda folder, case: check(options, folder, case), list(CASES))


if __name__ == "__main__":
    main()
