#!/usr/bin/env python3
# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trains a small GPT-2 in float64 for five steps by SGD with momentum, with and without
Nesterov's look-ahead, with weight decay and a learning rate that changes. Compares the
run with `chimera-run --sequential` and with torch.optim.SGD in reference.py, like
numerics.py. A program with a momentum has one value of optimizer state for each weight.

Prints a line for each comparison and exits non-zero if one fails."""

import argparse
import json
import pathlib
import sys
import tempfile

import numerics
from grid import compile_to, run
from numerics import Checks, Training, compare, reference

CASES = {
    "momentum": "learning_rate(0.5) momentum(0.9)",
    "nesterov": "learning_rate(0.5) momentum(0.9) nesterov lr_schedule(linear)",
    "no momentum": "learning_rate(0.5)",
}


def check(args, folder, case):
    checks = Checks()
    program = folder / "p.chimera"
    compile_to(
        args.tools,
        numerics.DESCRIPTION.format(
            model=numerics.MODEL.format(tied="tied"),
            training=f"optimizer(sgd) weight_decay(0.1) {CASES[case]}",
            stages=4, batches=4, width=2, schedule='"chimera"', options="",
        ),
        program,
    )  # fmt: skip
    stages = json.loads(run(args.tools / "chimera-translate", "--program-to-json", program))
    for stage in stages["stages"]:
        expected = 0 if case == "no momentum" else stage["weights_bytes"]
        got = stage["optimizer_bytes"]
        checks.check(got == expected, f"{case}: {got} bytes of state")
    common = (args.tools, program, args.data)
    alone = Training(folder, "alone", [], *common, "--sequential")
    threads = Training(folder, "threads", [], *common, "--check-replicas")
    compare(checks, f"{case} against sequential", threads, alone)
    numerics.check_peaks(checks, case, threads)
    if args.torch_python:
        reference(checks, args, folder, case, program, threads)
    return checks


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tools", type=pathlib.Path, required=True)
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--torch-python", help="a Python that has torch")
    args = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory() as name:
        for number, case in enumerate(CASES):
            folder = pathlib.Path(name) / str(number)
            folder.mkdir()
            checks = check(args, folder, case)
            print("\n".join(checks.lines), flush=True)
            failed += checks.failed
    sys.exit(f"{failed} comparisons failed" if failed else 0)


if __name__ == "__main__":
    main()
