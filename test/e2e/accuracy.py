#!/usr/bin/env python3
# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares the accuracy that a run reports with the one that PyTorch computes from the
saved weights, on the same samples: of a vision transformer, with some ignored labels, and
of a language model. The run must report the same under other schedules and on one device.

Prints a line for each comparison and exits non-zero if one fails. Needs a Python with
torch: that of build/venv, unless another Python runs this script."""

import argparse
import json
import pathlib
import sys

from exporting import EXPORT, PYTHON, ROOT, check_each, of_type
from forks import restart_with, run_script
from grid import compile_to, run
from numerics import losses, read_tensors

SAMPLES, BATCHES, STEPS, HELD = 2, 4, 40, 40
CONTEXT, IGNORED = 8, (3, 12, 13)
SIZES = {
    "vit": "layers=2 heads=2 width=16 patch=4 size=8 classes=5",
    # With so many classes, accuracies are computed for one sample at a time.
    "gpt2": f"layers=2 heads=2 width=16 context={CONTEXT} vocabulary=70000",
}
SCHEDULES = {"2;1f1b": [], "4;chimera": [], "2;gpipe": ["--sequential"]}
DESCRIPTION = """
chimera.model @m exported("{package}")
chimera.training @t learning_rate(1.0e-2)
chimera.pipeline @p of @m with @t stages({stages}) micro_batches({batches})
    schedule("{schedule}") micro_batch_size({samples}) weight_type(f64)
"""


def make(name, samples):
    """The model, with its example inputs and labels. Needs torch."""
    sys.path.append(str(ROOT / "tools/export"))
    from chimera_export import arguments, command

    function = command.load_function(str(ROOT / f"examples/models/{name}.py"))
    return function(**arguments.parse_values(SIZES[name].split()), samples=samples)


def write(name, folder):
    """Writes the data. The classes of images can be learned."""
    if name == "gpt2":
        text = (ROOT / "LICENSE").read_bytes()
        (folder / "train").write_bytes(text[:3000])
        # The windows of the held-out samples then begin at each multiple of CONTEXT.
        (folder / "held").write_bytes(text[3000 : 3001 + HELD * CONTEXT])
        return
    import torch
    from safetensors.torch import save_file

    torch.manual_seed(1)
    pixels = torch.rand(160, 3, 8, 8)
    classes = (pixels[:, 0].mean((1, 2)) * 1000).long() % 2 + 2 * (pixels[:, 1, 0, 0] > 0.5)
    classes[list(IGNORED)] = -100
    for part, rows in (("held", slice(HELD)), ("train", slice(HELD, None))):
        tensors = {"pixels": pixels[rows].double(), "classes": classes[rows]}
        save_file({n: t.contiguous() for n, t in tensors.items()}, folder / f"{part}.safetensors")


def in_torch(name, folder):
    """Prints the accuracy of the saved weights in PyTorch, as [right, counted]."""
    import torch
    from safetensors.torch import load_file

    model = make(name, SAMPLES).module.double()
    weights = read_tensors(folder / "weights")
    with torch.no_grad():
        for parameter_name, parameter in model.named_parameters():
            values = torch.tensor(weights[parameter_name], dtype=torch.float64)
            parameter.copy_(values.view(parameter.shape))
        if name == "gpt2":
            tokens = torch.tensor(list((folder / "held").read_bytes()))
            inputs = tokens[:-1].view(HELD, CONTEXT)
            labels = tokens[1:].view(HELD, CONTEXT)
        else:
            held = load_file(folder / "held.safetensors")
            inputs, labels = held["pixels"], held["classes"]
        right = (model(inputs).argmax(-1) == labels).sum().item()
    print(json.dumps([right, (labels != -100).sum().item()]))


def check(options, folder, name):
    tool = [__file__, "--case", name, "--folder", folder]
    run_script(*tool, "--write")
    run_script(
        EXPORT,
        ROOT / f"examples/models/{name}.py", *SIZES[name].split(), f"samples={SAMPLES}",
        *of_type("float64"), "-o", folder / "package",
    )  # fmt: skip
    suffix = "" if name == "gpt2" else ".safetensors"
    lines, failed = [], 0
    for schedule, more in SCHEDULES.items():
        stages, words = schedule.split(";")
        program = folder / "program"
        compile_to(
            options.tools,
            DESCRIPTION.format(package=folder / "package", stages=stages, batches=BATCHES,
                               schedule=words, samples=SAMPLES),
            program,
        )  # fmt: skip
        output = run(
            options.tools / "chimera-run", program, "--data", folder / f"train{suffix}",
            "--validation", folder / f"held{suffix}", "--load",
            folder / "package/values.safetensors", "--steps", STEPS, "--threads", 1,
            "--evaluate-samples", HELD, "--save", folder / "weights", "--log",
            folder / "log", *(["--tokens", "bytes"] if name == "gpt2" else []), *more,
        )  # fmt: skip
        right, counted = json.loads(run_script(*tool, "--in-torch"))
        expected = right / counted
        (got,) = losses(folder / "log", "held_out_accuracy")
        summary = json.loads((folder / "log").read_text().splitlines()[-1])["summary"]
        good = (
            got == summary["held_out_accuracy"] == expected
            and 0.1 < expected < 1
            and f", accuracy {100 * expected:.1f} %" in output
        )
        failed += not good
        lines.append(
            f"{'ok  ' if good else 'FAIL'} {name}, {words}{' '.join([''] + more)}: {right} of "
            f"{counted} right, got {got * counted:g}"
        )
    return lines, failed


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tools", type=pathlib.Path)
    parser.add_argument("--python", default=PYTHON)
    parser.add_argument("--case", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=pathlib.Path, help=argparse.SUPPRESS)
    parser.add_argument("--write", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--in-torch", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.write:
        write(options.case, options.folder)
    elif options.in_torch:
        in_torch(options.case, options.folder)
    elif restart_with(options.python, "torch", "safetensors"):
        check_each(lambda folder, case: check(options, folder, case), list(SIZES))


if __name__ == "__main__":
    main()
