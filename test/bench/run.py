#!/usr/bin/env python3
# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prints, as Markdown tables, the times of

- the path from a description to a verified program file on disk, including
  process start, with the parts of the largest time;
- an instruction of the interpreter, with stages that do nothing: wall time *
  min(ranks, cores) / instructions of all ranks.

    test/bench/run.py [--tools build/release/bin] [--runs 5]

Each number is the median of the runs, with the minimum and the maximum.
"""

import argparse
import json
import os
import pathlib
import re
import statistics
import tempfile
import time

import machine

# D, N, schedule, options
COMPILED = [
    (4, 4, "chimera", ""),
    (16, 16, "chimera", ""),
    (64, 64, "chimera", ""),
    (32, 256, "1f1b", "split_backward"),
    (64, 4096, "1f1b", "split_backward"),
]
INTERPRETED = [(2, 2), (4, 4), (16, 16)]
INSTRUCTIONS = 1_000_000  # approximate number of instructions of a run


def describe(folder, stages, micro_batches, schedule, options):
    path = folder / "description.mlir"
    path.write_text(
        f"chimera.pipeline @bench stages({stages}) "
        f'micro_batches({micro_batches}) schedule("{schedule}") {options}\n'
    )
    return path


def figure(values, unit):
    return (
        f"{statistics.median(values):.3g} {unit} "
        f"({min(values):.3g}–{max(values):.3g})"
    )


def compile_times(args, folder):
    print("| description → verified program file | actions | time |")
    print("|---|---|---|")
    for stages, batches, schedule, options in COMPILED:
        source = describe(folder, stages, batches, schedule, options)
        times = []
        for _ in range(args.runs):
            start = time.perf_counter()
            machine.execute(
                args.tools / "chimera-compile", source, "-o", folder / "program"
            )
            times.append(1000 * (time.perf_counter() - start))
        actions = stages * batches * (3 if options else 2)
        split = ", split backward" if options else ""
        print(
            f"| {schedule}, D={stages}, N={batches}{split} | {actions:,} "
            f"| {figure(times, 'ms')} |"
        )
    profile = machine.execute(
        args.tools / "chimera-compile", source, "-o", folder / "program",
        "--timing",
    ).stderr  # fmt: skip
    rows = re.findall(r"([\d.]+) \( *([\d.]+)%\)( +)(.*)", profile)
    print(f"\n| where the time of D={stages}, N={batches} goes | s | share |")
    print("|---|---|---|")
    for seconds, share, indent, name in rows:
        print(f"| {'· ' * (len(indent) // 4)}{name} | {seconds} | {share} % |")


def overheads(args, folder):
    print(
        "| interpreter, empty stages | in-process | MPI | other load, cores |\n"
        "|---|---|---|---|"
    )
    for stages, batches in INTERPRETED:
        source = describe(folder, stages, batches, "chimera", "")
        program = folder / "program"
        machine.execute(
            args.tools / "chimera-compile", source, "-o", program
        )
        cells = []
        with machine.OtherLoad() as load:
            for launcher in ([], machine.mpirun(stages)):
                values = [
                    overhead(args, folder, launcher, program, stages, batches)
                    for _ in range(args.runs)
                ]
                cells.append(figure(values, "µs"))
        print(
            f"| D={stages}, N={batches} | {' | '.join(cells)} "
            f"| {load.cores:.2f} |"
        )


def overhead(args, folder, launcher, program, stages, batches):
    steps = max(10, INSTRUCTIONS // (14 * stages * batches))
    log = folder / "log"
    # fmt: off
    machine.execute(*launcher, args.tools / "chimera-run", program, "--stages",
                    "synthetic", "--unit-ns", 0, "--steps", steps, "--quiet",
                    "--log", log)
    # fmt: on
    summary = json.loads(log.read_text().splitlines()[-1])["summary"]
    return 1e6 * summary["seconds_per_instruction"]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tools", type=pathlib.Path, default=machine.TOOLS)
    parser.add_argument("--runs", type=int, default=5)
    args = parser.parse_args()
    print(f"{os.cpu_count()} cores, median of {args.runs} (least–most)\n")
    with tempfile.TemporaryDirectory() as name:
        compile_times(args, pathlib.Path(name))
        print()
        overheads(args, pathlib.Path(name))


if __name__ == "__main__":
    main()
