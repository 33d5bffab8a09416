#!/usr/bin/env python3
# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exports five models of examples/models once, and computes a step with each package in
float64 and in float32, with a micro-batch of 1, 3 and 8 samples. Compares the loss and the
gradients with those of PyTorch's autograd on the module itself: bit by bit, or within
rounding for the models of ROUNDED. Two ranks also compute the backwards of micro-batches
of 8 samples in halves. Halves add in another order, so these agree within rounding.

Prints a line for each comparison and exits non-zero if one fails. Needs a Python with
torch: that of build/venv, unless another Python runs this script."""

import argparse
import array
import json
import pathlib
import sys
import types

from exporting import EXPORT, PYTHON, ROOT, check_each
from forks import restart_with, run_script
from grid import compile_to, run
from numerics import Checks, losses, read_tensors, worst_difference

HERE = pathlib.Path(__file__).resolve().parent
SEED = 7
TOTAL, TRAINING = 80, 72  # samples of the data, and those that are not held out
MODELS = {
    "gpt2": "layers=4 heads=2 width=16 context=8",
    "llama": "layers=4 heads=4 groups=2 width=16 context=8",
    "bert": "layers=4 heads=2 width=16 context=16",
    "vit": "layers=3 heads=2 width=8 patch=4 size=8 classes=5",
    "convolution": "layers=4 width=8 context=8",
}
# BERT's loss is two means, each divided by its own weight: PyTorch scales its gradient at
# the loss, and a run scales at the labels. The gradients of the biases of the convolution
# net are sums whose order depends on the strides of a gradient, and a boundary between
# layers makes gradients contiguous.
ROUNDED = ("bert", "convolution")
# For each type: the clause of the pipeline, the code in array, and the largest difference
# by rounding.
TYPES = {"float64": ("f64", "d", 1e-14), "float32": ("f32", "f", 1e-6)}
SIZES = (1, 3, 8)  # samples of a micro-batch
DESCRIPTION = """
chimera.model @m exported("{package}")
chimera.training @t seed({seed}) optimizer(sgd) learning_rate(0.5)
chimera.pipeline @p of @m with @t stages(2) micro_batches({batches}) schedule({schedule})
    micro_batch_size({samples}) weight_type({type})
"""
HALVING = '"chimera", {concatenation = "halving"}'
BATCHES = 4  # micro-batches whose backwards are halved


def autograd(name, folder):
    """Writes the data of the runs. Prints a line for each type, size of a micro-batch and
    number of micro-batches: the loss and the gradients of the first step. Needs torch."""
    sys.path[:0] = [str(ROOT / "tools/export"), str(HERE)]
    import torch
    from chimera_export import arguments, command
    from chimera_export.model import WithLoss
    from reference import sample_at
    from safetensors.torch import load_file, save_file

    torch.set_num_threads(1)
    make = command.load_function(str(ROOT / f"examples/models/{name}.py"))
    model = make(**arguments.parse_values(MODELS[name].split()), samples=TOTAL)
    arrays = {**model.inputs, **model.labels}
    save_file(
        {field: values.clone() for field, values in arrays.items()}, folder / "data.safetensors"
    )
    start = load_file(folder / "package/values.safetensors")
    for of_type in TYPES:
        dtype = getattr(torch, of_type)
        for module in (model.module, model.loss):
            if isinstance(module, torch.nn.Module):
                module.to(dtype)
        named = {n: p for n, p in model.named_parameters() if n in start}
        with torch.no_grad():
            for parameter in named:
                named[parameter].copy_(start[parameter])
        given = [v.to(dtype) if v.is_floating_point() else v for v in arrays.values()]
        loss_of = WithLoss(model)
        for samples, batches in [*((size, 1) for size in SIZES), (SIZES[-1], BATCHES)]:
            settings = types.SimpleNamespace(
                micro_batch_size=samples, micro_batches=batches, data_parallel=1, seed=SEED
            )
            terms = []
            for first in range(0, samples * batches, samples):
                rows = [
                    sample_at(TRAINING, settings, 0, first + i)[1] for i in range(samples)
                ]
                made = loss_of(*(values[rows] for values in given))
                terms.append(made if isinstance(made, tuple) else (made, 1))
            sums = [sum(column) for column in zip(*terms)]
            loss = sum(total / weight for total, weight in zip(sums[::2], sums[1::2]))
            for p in named.values():
                p.grad = None
            loss.backward()
            code = TYPES[of_type][1]
            gradients = {
                n: array.array(code, p.grad.flatten().tolist()).tobytes().hex()
                for n, p in named.items()
            }
            print(json.dumps([of_type, samples, batches, loss.item(), gradients]))


def train(options, folder, of_type, samples, batches):
    """The loss and the gradients of the first step of a run."""
    name = f"{of_type}-{samples}-{batches}"
    program, log, gradients = (folder / f"{name}{end}" for end in ("", ".log", ".gradients"))
    compile_to(
        options.tools,
        DESCRIPTION.format(
            package=folder / "package", seed=SEED, batches=batches, samples=samples,
            schedule=HALVING if batches > 1 else '"gpipe"', type=TYPES[of_type][0],
        ),
        program,
    )  # fmt: skip
    run(
        options.tools / "chimera-run", program, "--data", folder / "data.safetensors",
        *([] if batches > 1 else ["--sequential"]), "--steps", 1, "--threads", 1, "--quiet",
        "--evaluate-samples", 0, "--load", folder / "package/values.safetensors",
        "--save-gradients", gradients, "--log", log,
    )  # fmt: skip
    return losses(log)[0], read_tensors(gradients)


def check(options, folder, name):
    checks = Checks()
    run_script(
        EXPORT, ROOT / f"examples/models/{name}.py", *MODELS[name].split(), "samples=2",
        "--compute", "float32,float64", "-o", folder / "package",
    )  # fmt: skip
    rows = run_script(__file__, "--autograd", name, "--folder", folder).splitlines()
    for of_type, samples, batches, wanted_loss, hexadecimal in map(json.loads, rows):
        _, code, most = TYPES[of_type]
        wanted = {n: array.array(code, bytes.fromhex(h)) for n, h in hexadecimal.items()}
        loss, gradients = train(options, folder, of_type, samples, batches)
        what = f"{name} in {of_type}, {samples} samples"
        if batches > 1 or name in ROUNDED:
            worst = max(
                worst_difference(gradients, wanted), abs(loss - wanted_loss) / wanted_loss
            )
            what += " in halves" if batches > 1 else ""
            checks.check(worst <= most, f"{what}: {worst:.1e} from autograd")
            continue
        checks.check(
            loss == wanted_loss and gradients == wanted,
            f"{what}: loss {loss:.6f} and {len(wanted)} gradients, to the last bit",
        )
    return checks.lines, checks.failed


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tools", type=pathlib.Path)
    parser.add_argument("--python", default=PYTHON)
    parser.add_argument("--autograd", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=pathlib.Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.autograd:
        autograd(options.autograd, options.folder)
    elif restart_with(options.python, "torch", "safetensors"):
        check_each(lambda folder, name: check(options, folder, name), list(MODELS))


if __name__ == "__main__":
    main()
