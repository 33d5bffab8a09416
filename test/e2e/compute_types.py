#!/usr/bin/env python3
# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exports narrow.py and models of examples/models once, with parameters of float32.
Compiles each package for each type in which it computes, and trains for 50 steps on two
ranks. Compares the losses with those of a plain PyTorch loop on one device:

- in float32 and in float64, within rounding;
- in bfloat16, the mean distance from float32 must be at most TIMES the distance that
  torch.autocast has, and it must not be zero;
- with parameters of bfloat16 too, the same holds for the distance that a module in
  bfloat16 has.

Also checks that the type of the parameters does not change the packages, that
constants and losses of bfloat16 packages are float32, and that a model that cannot
compute in a type is exported for the others. With --full, all models are tried.

Prints a line for each comparison and exits non-zero if one fails. Needs a Python with
torch: that of build/venv, unless another Python runs this script."""

import argparse
import json
import pathlib

from exported import BATCHES, HERE, SAMPLES
from exporting import EXPORT, PYTHON, ROOT, check_each, export
from forks import call_script, restart_with, run_script
from grid import compile_to
from numerics import Checks, Training

STEPS = 50
RATE = 0.03125  # larger ones amplify differences by rounding
TIMES = 3.0
MODELS = (
    ("gpt2", "layers=4 heads=2 width=32 context=16"),
    ("narrow", "width=32 context=64"),
)
MORE = (
    ("llama", "layers=4 heads=4 groups=2 width=32 context=16"),
    ("convolution", "layers=4 width=16 context=16"),
)
# For each type: the pipeline's clauses, the PyTorch loop with which its run is compared,
# and the largest relative difference from its losses, or the loop whose difference
# limits it.
TYPES = {
    "float32": ("weight_type(f32)", "float32", 1e-4),
    "float64": ("weight_type(f64)", "float64", 1e-10),
    "bfloat16": ("activation_type(bf16)", "float32", "autocast"),
    "bfloat16 parameters": ("weight_type(bf16)", "float32", "bfloat16"),
}
DESCRIPTION = """
chimera.model @m exported("{folder}")
chimera.training @training seed(7) optimizer(sgd) learning_rate({rate}) weight_decay(0.125)
chimera.pipeline @p of @m with @training stages(2) micro_batches({batches}) schedule("1f1b")
    micro_batch_size({samples}) {types}
"""


def distance(ours, theirs):
    """The mean relative difference between the losses of a step."""
    return sum(abs(a - b) / abs(b) for a, b in zip(ours, theirs, strict=True)) / len(ours)


def check(options, folder, case):
    checks = Checks()
    model, arguments = case
    package = folder / "package"
    source = HERE / "narrow.py" if model == "narrow" else ROOT / f"examples/models/{model}.py"
    run_script(EXPORT, source, *arguments.split(), "samples=3", "-o", package)
    values = package / "values.safetensors"

    def plain(compute):
        rows = run_script(
            HERE / "exported.py", "--plain-loop", source,
            *arguments.split(), "--values", values, "--data", options.data,
            "--steps", STEPS, "--compute", compute, "--rate", RATE,
        ).splitlines()  # fmt: skip
        return [json.loads(row) for row in rows[:STEPS]]

    loops = {
        compute: plain(compute)
        for compute in ("float32", "float64", "autocast", "bfloat16")
    }
    for name, (types, loop, limit) in TYPES.items():
        description = DESCRIPTION.format(
            folder=package, batches=BATCHES, samples=SAMPLES, types=types, rate=RATE
        )
        compile_to(options.tools, description, folder / name)
        ours = Training(
            folder, name, [], options.tools, folder / name, options.data,
            "--tokens", "bytes", "--load", values, steps=STEPS,
        ).losses  # fmt: skip
        size = distance(ours, loops[loop])
        line = f"{model} in {name}: losses {ours[0]:.4f} … {ours[-1]:.4f}, "
        if isinstance(limit, float):
            checks.check(size <= limit, f"{line}{size:.1e} from PyTorch's")
        else:
            narrow = distance(loops[limit], loops[loop])
            checks.check(
                0 < size <= TIMES * narrow,
                f"{line}{size:.1e} from float32, {limit} {narrow:.1e}",
            )
    return checks.lines, checks.failed


STUBBORN = """
import torch
from chimera_export import Model

class Stubborn(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lines = torch.nn.ModuleList([torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)])
    def forward(self, x):
        x = self.lines[0](x)
        return {layer}

def make():
    return Model(Stubborn(), torch.randn(2, 4), torch.randn(2, 4),
                 lambda made, y: ((made - y) ** 2).mean())
"""
# Layers that some types lack, the types that they have, and the reason.
STUBBORN_LAYERS = (
    ("self.lines[1](x.to(torch.float32))", ["Float32"],
     "expected operands of one type, got"),
    ("self.lines[1](x) + torch.cdist(x[..., None], x[..., None])[..., 0]",
     ["Float32", "Float64"],
     "BFloat16' in stubborn.py:11: return self.lines[1](x) + torch"),
)  # fmt: skip


def packages_of(folder):
    """The packages of a folder, by type."""
    packages = json.loads((folder / "model.json").read_text())["packages"]
    return {package["type"]: package for package in packages}


def check_packages(options, folder):
    checks = Checks()
    arguments = "layers=2 heads=2 groups=1 width=8 context=4"
    made = []
    for name in ("float32", "float64"):
        export(folder / name, "llama", arguments, "--type", name)
        made.append(packages_of(folder / name))
        # Buffers are made in the type of the parameters, so those of float64 differ.
        for kind in made[-1]["Float64"]["kinds"]:
            for constant in kind["constants"]:
                del constant["bytes"]
    checks.check(
        made[0] == made[1] and len(made[0]) == 3,
        f"parameters of float32 and float64 give equal packages for {', '.join(made[0])}",
    )
    kinds = made[0]["BFloat16"]["kinds"]
    constants = {c["type"] for kind in kinds for c in kind["constants"]}
    loss = kinds[-1]["graphs"]["outputs"][0]["type"]
    checks.check(
        constants == {"Float32"} and loss == "Float32",
        f"for bfloat16: constants of {constants}, a loss of {loss}",
    )
    source = folder / "stubborn.py"
    for layer, types, reason in STUBBORN_LAYERS:
        source.write_text(STUBBORN.format(layer=layer))
        status, notes = export_with_notes(source, folder / "stubborn")
        missing = 3 - len(types)
        checks.check(
            status == 0 and len(notes) == missing
            and list(packages_of(folder / "stubborn")) == types
            and all(reason in note for note in notes),
            f"a model for {', '.join(types)} alone: {'; '.join(notes)}",
        )  # fmt: skip
        status, notes = export_with_notes(
            source, folder / "none", "--compute", "float32,bfloat16"
        )
        checks.check(
            status == 1 and len(notes) == 1 and not (folder / "none").exists(),
            "it is refused if bfloat16 is asked for",
        )
    return checks.lines, checks.failed


def export_with_notes(source, package, *more):
    """The exit status of an export, and the lines about types."""
    status, _, errors = call_script(EXPORT, source, *more, "-o", package)
    lines = errors.splitlines()
    return status, [line for line in lines if "runs cannot compute in" in line]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tools", type=pathlib.Path, required=True)
    parser.add_argument("--data", type=pathlib.Path, default=ROOT / "LICENSE")
    parser.add_argument("--python", default=PYTHON)
    parser.add_argument("--full", action="store_true")
    options = parser.parse_args()
    if restart_with(options.python, "torch", "safetensors"):
        models = MODELS + (MORE if options.full else ())
        cases = [(check_packages,), *((check, model) for model in models)]
        check_each(lambda folder, case: case[0](options, folder, *case[1:]), cases)


if __name__ == "__main__":
    main()
