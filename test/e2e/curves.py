#!/usr/bin/env python3
# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trains scaled-down models of examples/models for 50 steps: a GPT-2 with dropout, and
a BERT with both its losses and a tied matrix. Uses every synchronous schedule of the
registry, with whole and split backwards and recomputation. Compares the loss of each
step with the loss of a run on one device (--sequential). The largest relative
difference of a curve must be at most 1e-10 in float64 and 1e-3 in float32.

Schedules without a flush compute with older weights, so their curves must differ by
more. So the comparison notices wrong steps.

In short form there are 4 stages and 8 micro-batches, models run in float64, and options
take turns. With --full, models also run in float32, and each schedule has every option,
with 4 stages and 7 micro-batches and with 8 and 16. With --gpus, every eighth curve (with
--full, every fourth) is also computed on software GPUs. Prints a line for each curve and
exits non-zero if one fails. Needs a Python with torch: that of build/venv, unless another
Python runs this script."""

import argparse
import itertools
import pathlib

from exported import MARKS, MASK
from exporting import PYTHON, ROOT, check_each, export, of_type
from forks import restart_with
from grid import RECOMPUTES, SPLITS, WITHOUT_FLUSH, accepts, compile_to, schedules
from numerics import Checks, Training

STEPS = 50
SAMPLES = 2
MODELS = {"gpt2": "dropout=0.1", "bert": "tied=True"}
TYPES = {"float64": ("f64", 1e-10), "float32": ("f32", 1e-3)}
DESCRIPTION = """
chimera.model @m exported("{package}")
chimera.training @training seed(7) learning_rate(3.0e-3)
chimera.pipeline @p of @m with @training stages({stages}) micro_batches({batches})
    {schedule} micro_batch_size({samples}) weight_type({type}) {options}
"""


def curves(case, full):
    """Yields (scheme, schedule with its options, options of the pipeline, number of
    workers) for a case."""
    model, name, stages, batches = case
    every = [" ".join(pair).strip() for pair in itertools.product(SPLITS, RECOMPUTES)]
    # In the short form, the schedules take the options in turn. If a schedule has whole
    # backwards with one model, it has split backwards with the other model.
    turn = list(MODELS).index(model) + list(TYPES).index(name)
    for number, (scheme, schedule, workers) in enumerate(schedules(stages)):
        if not accepts(scheme, workers, batches):
            continue
        if model == "bert" and scheme in WITHOUT_FLUSH:
            continue  # they refuse a tied matrix
        split = SPLITS[(number + turn) % 2]
        recompute = RECOMPUTES[(number + turn) // 2 % len(RECOMPUTES)]
        for options in every if full else (f"{split} {recompute}".strip(),):
            yield scheme, schedule, options, workers


def difference(ours, theirs):
    """The largest relative difference between the losses of a step."""
    return max(abs(a - b) / abs(b) for a, b in zip(ours, theirs, strict=True))


def check(options, folder, case):
    checks = Checks()
    model, name, stages, batches = case
    kind, tolerance = TYPES[name]
    package = folder / "package"
    export(
        package, model,
        f"layers={stages - 2} heads=2 width=16 context=8 samples={SAMPLES} "
        + MODELS[model],
        *of_type(name),
    )  # fmt: skip
    loaded = ["--load", package / "values.safetensors", "--tokens", "bytes"]
    if model == "bert":
        loaded += ["--mask", MASK, "--pairs", "{},{},{}".format(*MARKS)]

    def train(schedule, stages, pipeline_options, *run_options, gpus=0):
        program = folder / "program"
        description = DESCRIPTION.format(
            package=package, stages=stages, batches=batches, schedule=schedule,
            samples=SAMPLES, type=kind, options=pipeline_options,
        )  # fmt: skip
        compile_to(options.tools, description, program,
                   *(["--messages", "stream-per-device"] if gpus else []))  # fmt: skip
        launcher = ["env", f"CHIMERA_STAND_IN_GPUS={gpus}"] if gpus else []
        return Training(
            folder, "run", launcher, options.tools / ("software-gpu" if gpus else ""),
            program, options.data, *loaded, *(["--device", "cuda"] if gpus else []),
            *run_options, steps=STEPS,
        ).losses  # fmt: skip

    what = f"{model} {name} D={stages} N={batches}"
    wanted = train('schedule("gpipe")', 1, "", "--sequential")
    checks.check(
        len(wanted) == STEPS and min(wanted[-5:]) < wanted[0] - 1,
        f"{what}: one device, losses {wanted[0]:.6f} … {wanted[-1]:.6f}",
    )
    every = 4 if options.full else 8
    for number, (scheme, schedule, more, workers) in enumerate(curves(case, options.full)):
        for gpus in (0, workers) if options.gpus and number % every == 0 else (0,):
            losses = train(schedule, stages, more, "--check-replicas", gpus=gpus)
            worst = difference(losses, wanted)
            line = f"{what} {schedule} {more}: curves differ by {worst:.1e}"
            line += " on software GPUs" if gpus else ""
            if scheme in WITHOUT_FLUSH:
                checks.check(worst > 10 * tolerance, f"{line}, as they must")
            else:
                checks.check(worst <= tolerance, line)
    return checks.lines, checks.failed


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tools", type=pathlib.Path, required=True)
    parser.add_argument("--data", type=pathlib.Path, default=ROOT / "LICENSE")
    parser.add_argument("--python", default=PYTHON)
    parser.add_argument("--full", action="store_true", help="more stages and options")
    parser.add_argument("--gpus", action="store_true", help="also on software GPUs")
    options = parser.parse_args()
    if restart_with(options.python, "torch", "safetensors"):
        sizes = [(4, 7), (8, 16)] if options.full else [(4, 8)]
        cases = [(m, t, *size) for size in sizes for m in MODELS for t in TYPES]
        if not options.full:
            cases = [case for case in cases if "float64" in case]
        check_each(lambda folder, case: check(options, folder, case), cases)


if __name__ == "__main__":
    main()
