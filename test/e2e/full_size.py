#!/usr/bin/env python3
# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exports the models of Chimera's paper at full size, without memory for their
parameters: BERT with 48 layers and GPT-2 with 64 (with --full also with 32). Compiles
them for 4 to 32 stages, each within a minute of processor time. Compares the memory of
each worker in --chimera-report with the number of parameters that the exporter counts:

- there are as many parameters as the paper says (Table 4), fewer for the smaller GPT-2;
- all weights together take 4 bytes per parameter, and the tied matrix is counted twice;
- a worker always holds the weights and AdamW's two moments of its stages;
- a worker's peak is at least the sum of these, the gradients and one stash. It is at
  most the sum of these, the gradients, 4 boundaries, and as many stashes of its largest
  stage as the worker holds activations;
- if N = D, workers hold the stashes of D / 2 + 1 to D micro-batches (the paper's
  Table 2);
- with twice as many workers, each one holds fewer weights. The largest peak on 32
  workers is less than half of the largest peak on 4.

Prints a line for each program and exits non-zero if one fails. Needs a Python with
torch: that of build/venv, unless another Python runs this script."""

import argparse
import json
import pathlib
import resource
import sys

from exporting import EXPORT, PYTHON, ROOT, check_each, count_of_parameters, of_type
from forks import restart_with
from grid import compile_to, run
from numerics import Checks

BERT = "heads=16 width=1024 context=128 positions=512 vocabulary=30522 tied=False"
GPT2 = "heads=20 width=1280 context=632 positions=1024 vocabulary=50257"
# Model, its sizes, samples of a micro-batch, and number of parameters.
CASES = [
    ("bert", f"layers=48 {BERT}", 4, 669_790_012),
    ("gpt2", f"layers=64 {GPT2}", 1, 1_389_327_360),
]
MORE = [("gpt2", f"layers=32 {GPT2}", 1, 759_649_280)]
STAGES = (4, 8, 16, 32)
DESCRIPTION = """
chimera.model @m exported("{package}")
chimera.pipeline @p of @m stages({stages}) micro_batches({stages})
    schedule("chimera") micro_batch_size({samples})
"""
GIB = 2**30


def check(options, folder, case):
    checks = Checks()
    model, sizes, samples, wanted = case
    package, program = folder / "package", folder / "program"
    # In a process of its own, whose memory is counted.
    output = run(
        sys.executable, EXPORT, ROOT / f"examples/models/{model}.py", *sizes.split(),
        f"samples={samples}", "--no-values", "-o", package,
        *([] if options.full else of_type("float32")),
    )  # fmt: skip
    parameters = count_of_parameters(output)
    used = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    name = f"{model} {sizes.split()[0]}"
    checks.check(
        0 < used < 4 * parameters and parameters == wanted,
        f"{name}: {parameters:,} parameters, exported in {used / GIB:.1f} GiB",
    )
    residents, peaks = [], []
    for stages in STAGES:
        description = DESCRIPTION.format(package=package, stages=stages, samples=samples)
        seconds = compile_to(options.tools, description, program)
        (report,) = json.loads(
            run(
                options.tools / "chimera-opt", program.with_suffix(".mlir"), "-o",
                "/dev/null", "--chimera-to-scheduled",
                "--chimera-report=costs=stages format=json",
            )  # fmt: skip
        )
        dump = json.loads(
            run(options.tools / "chimera-translate", "--program-to-json", program)
        )
        failures = broken(dump, report, parameters)
        if seconds > 60:
            failures.append(f"compiling took {seconds:.0f} s")
        residents.append(max(report["resident_bytes"]))
        peaks.append(max(report["peak_bytes"]))
        checks.check(
            not failures,
            f"{name} D={stages}, compiled in {seconds:.2f} s: a worker's peak is "
            f"{min(report['peak_bytes']) / GIB:.2f} to {peaks[-1] / GIB:.2f} GiB"
            + "".join(f"; {failure}" for failure in failures),
        )
    checks.check(
        residents == sorted(set(residents), reverse=True)
        and peaks[-1] < peaks[0] / 2,
        f"{name}: weights and moments fall, and the largest peak is less than half",
    )
    return checks.lines, checks.failed


def broken(dump, report, parameters):
    """The requirements on memory that the program of `dump` violates."""
    failures = []

    def hold(good, what):
        if not good:
            failures.append(f"expected {what}")

    stages, pipelines = dump["stages"], dump["pipelines"]
    weights = sum(stage["weights_bytes"] for stage in stages)
    weights -= dump["tied"]["bytes"] if dump["tied"] else 0
    hold(weights == 4 * parameters, f"{4 * parameters} bytes, got {weights}")
    boundary = max(stage["boundary_bytes"] for stage in stages)
    for worker, planned in enumerate(dump["workers"]):
        held = [stages[p["workers"].index(worker)] for p in pipelines]
        weights = sum(stage["weights_bytes"] for stage in held)
        stashes = [stage["stash_bytes"] for stage in held]
        resident = report["resident_bytes"][worker]
        hold(resident == 3 * weights, f"{3 * weights} on {worker}, got {resident}")
        peak = report["peak_bytes"][worker]
        activations = report["peak_activations"][worker]
        least = 4 * weights + min(stashes)
        most = 4 * weights + activations * max(stashes) + 4 * boundary
        hold(least <= peak <= most, f"{least} to {most} on {worker}, got {peak}")
        # The program's plan also has buffers for messages that wait.
        stated = planned["peak_bytes"]
        hold(peak <= stated, f"{peak} or more on {worker}, got {stated}")
    count = len(stages)
    interval = report["peak_activations_interval"]
    hold(interval == [count // 2 + 1, count], f"D / 2 + 1 to D, got {interval}")
    return failures


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tools", type=pathlib.Path, required=True)
    parser.add_argument("--python", default=PYTHON)
    parser.add_argument("--full", action="store_true", help="a third model, and graphs for all types")
    options = parser.parse_args()
    if restart_with(options.python, "torch", "safetensors"):
        check_each(
            lambda folder, case: check(options, folder, case),
            CASES + (MORE if options.full else []),
        )


if __name__ == "__main__":
    main()
