#!/usr/bin/env python3
# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trains a small GPT-2 in float64 for five steps by Muon and by SGD with momentum, with
and without Nesterov's look-ahead, with weight decay and a learning rate that changes.
Compares the run with `chimera-run --sequential` and with torch.optim.Muon and
torch.optim.SGD in reference.py, like numerics.py. Also checks the bytes of optimizer
state: a momentum has one value for each weight.

Prints a line for each comparison and exits non-zero if one fails."""

import argparse
import json
import pathlib

import numerics
from exporting import check_each
from forks import restart_with_torch
from grid import compile_to, run
from numerics import Checks, Training, compare, reference

# The cases that have another schedule than Chimera's. Their models are not tied.
SCHEDULES = {"muon without a flush": "pipedream-2bw"}
CASES = {
    "momentum": "optimizer(sgd) learning_rate(0.5) momentum(0.9)",
    "nesterov": "optimizer(sgd) learning_rate(0.5) momentum(0.9) nesterov lr_schedule(linear)",
    "no momentum": "optimizer(sgd) learning_rate(0.5)",
    "muon": "optimizer(muon) learning_rate(0.02) momentum(0.9)",
    "muon with nesterov": "optimizer(muon) learning_rate(0.02) momentum(0.95) nesterov "
    "lr_schedule(cosine) warmup(2) clip_norm(0.5)",
    "muon without a flush": "optimizer(muon) learning_rate(0.02) momentum(0.9)",
    "muon but for some": 'optimizer(muon) learning_rate(0.02) momentum(0.9) no_muon("*.mlp*")',
}
# The elements of the matrices that Muon updates: in each of six layers of width 16, those
# of the attention, [48, 16] and [16, 16], and of the MLP, [64, 16] and [16, 64].
ATTENTION, MLP = 6 * 64 * 16, 6 * 2 * 64 * 16
BY_MUON = {
    "muon": ATTENTION + MLP,
    "muon with nesterov": ATTENTION + MLP,
    "muon without a flush": ATTENTION + MLP,
    "muon but for some": ATTENTION,
}


def check(args, folder, case):
    checks = Checks()
    program = folder / "p.chimera"
    model = numerics.MODEL.format(tied="" if case in SCHEDULES else "tied")
    compile_to(
        args.tools,
        numerics.DESCRIPTION.format(
            model=model,
            training=f"weight_decay(0.1) {CASES[case]}",
            stages=4, batches=4, width=2, options="", body="",
            schedule=f'schedule("{SCHEDULES.get(case, "chimera")}")',
        ),
        program,
    )  # fmt: skip
    stages = json.loads(run(args.tools / "chimera-translate", "--program-to-json", program))
    weights, state = (
        sum(stage[field] for stage in stages["stages"])
        for field in ("weights_bytes", "optimizer_bytes")
    )
    expected = 0 if case == "no momentum" else weights
    if case in BY_MUON:
        expected = 2 * weights - 8 * BY_MUON[case]
    checks.check(state == expected, f"{case}: {state} bytes of state")
    common = (args.tools, program, args.data)
    alone = Training(folder, "alone", [], *common, "--sequential")
    threads = Training(folder, "threads", [], *common, "--check-replicas")
    compare(checks, f"{case} against sequential", threads, alone)
    numerics.check_peaks(checks, case, threads)
    if args.torch_python:
        reference(checks, args, folder, case, program, threads, model)
    return checks.lines, checks.failed


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tools", type=pathlib.Path, required=True)
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--torch-python", help="a Python that has torch")
    args = parser.parse_args()
    restart_with_torch(args.torch_python)
    check_each(lambda folder, case: check(args, folder, case), list(CASES))


if __name__ == "__main__":
    main()
