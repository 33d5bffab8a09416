#!/usr/bin/env python3
# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prints, as Markdown tables, the speed of the schedule library:

- actions per second for growing sizes, and the time per action. The time is constant
  if the cost is linear, except for a step where the data no longer fit into a cache;
- actions per second for every family;
- verify and simulate together, compared with PyTorch's functions for the same order.
  In each run the two take turns. The ratio is computed in each run.

    test/bench/schedule.py [--tools build/release/bin] [--runs 5]
                           [--python build/venv/bin/python]

Everything runs on one core. Times are processor time, so other processes matter only if
they share the caches or the core. Each number is the median over the runs, with the
minimum and the maximum in brackets. Without a Python that has torch the last table is
left out.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
PHASES = ["generate", "verify", "simulate"]
GROWING = "1f1b-split"
SIZES = [(32, 256), (32, 1024), (64, 4096)]
COMPARED = [(32, 256), (64, 4096)]


def execute(*command):
    result = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True
    )
    if result.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}:\n{result.stderr}")
    return json.loads(result.stdout)


class Library:
    """The seconds of each (phase, case, D, N) in all runs."""

    def __init__(self, tools):
        self.program = tools / "schedule_benchmark"
        self.seconds = {}
        self.actions = {}

    def run(self):
        sizes = "|".join(f"/{d}/{n}$" for d, n in SIZES)
        output = execute(
            self.program,
            f"--benchmark_filter=/{GROWING}/|{sizes}",
            "--benchmark_format=json",
            "--benchmark_min_time=0.05",
        )
        for row in output["benchmarks"]:
            if row.get("error_occurred"):
                sys.exit(f"{row['name']}: {row['error_message']}")
            phase, case, stages, batches = row["name"].split("/")
            size = int(stages), int(batches)
            # The benchmark's times are in microseconds.
            values = self.seconds.setdefault((phase, case, *size), [])
            values.append(row["cpu_time"] / 1e6)
            self.actions[case, *size] = round(row["actions"])

    def rate(self, phase, case, stages, batches):
        seconds = statistics.median(self.seconds[phase, case, stages, batches])
        return f"{self.actions[case, stages, batches] / seconds / 1e6:.3g}"

    def both(self, case, stages, batches):
        """The time of verify and simulate together, for each run."""
        return [
            sum(seconds)
            for seconds in zip(
                self.seconds["verify", case, stages, batches],
                self.seconds["simulate", case, stages, batches],
            )
        ]

    def print_growth(self):
        print(
            "| split 1F1B | actions | generate, M/s | verify, M/s "
            "| simulate, M/s | all three, ns an action |\n"
            "|---|---|---|---|---|---|"
        )
        for (case, *size), actions in self.actions.items():
            if case != GROWING:
                continue
            rates = " | ".join(self.rate(phase, case, *size) for phase in PHASES)
            seconds = sum(
                statistics.median(self.seconds[phase, case, *size])
                for phase in PHASES
            )
            print(
                f"| D={size[0]}, N={size[1]} | {actions:,} | {rates} "
                f"| {1e9 * seconds / actions:.3g} |"
            )

    def print_families(self):
        print("| generate / verify / simulate, M actions/s", end="")
        for stages, batches in SIZES:
            print(f" | D={stages}, N={batches}", end="")
        print(" |\n" + "|---" * (1 + len(SIZES)) + "|")
        for case in dict.fromkeys(case for case, *_ in self.actions):
            cells = [
                " / ".join(self.rate(phase, case, *size) for phase in PHASES)
                for size in SIZES
            ]
            print(f"| {case} | {' | '.join(cells)} |")


class PyTorch:
    def __init__(self, python):
        self.python = python
        self.seconds = {}

    def run(self):
        arguments = [number for size in COMPARED for number in size]
        output = execute(self.python, HERE / "schedule_pytorch.py", *arguments)
        self.version = output["torch"]
        for size, row in zip(COMPARED, output["sizes"]):
            self.seconds.setdefault(size, []).append(row)


def figure(values):
    median = statistics.median(values)
    return f"{median:.3g} ({min(values):.3g}–{max(values):.3g})"


def print_comparison(library, pytorch):
    print(
        "| split 1F1B | actions | PyTorch: validate + simulate, ms "
        "| chimera: verify + simulate, ms | ratio |\n|---|---|---|---|---|"
    )
    for size in COMPARED:
        rows = pytorch.seconds[size]
        actions = library.actions[GROWING, *size]
        if rows[0]["actions"] != actions:
            sys.exit(f"expected {actions} actions, got {rows[0]['actions']}")
        theirs = [row["validate"] + row["simulate"] for row in rows]
        ours = library.both(GROWING, *size)
        ratios = [t / o for t, o in zip(theirs, ours)]
        print(
            f"| D={size[0]}, N={size[1]} | {actions:,} "
            f"| {figure([1e3 * value for value in theirs])} "
            f"| {figure([1e3 * value for value in ours])} "
            f"| {figure(ratios)} |"
        )
    print(
        f"\nPyTorch {pytorch.version} validates that each stage runs every "
        "micro-batch's forward before\nits gradients, all on one rank, and "
        "simulates in steps of equal length the order with\nsends and receives "
        "in it (putting them there is not counted), which finds deadlocks.\n"
        "Each send, receive and (since 2.15) wait is a step there.\n"
        "chimera verifies every constraint (nothing missing, twice or "
        "misplaced, order, deadlock,\nmemory caps) and simulates costs and "
        "message times, with peaks and critical path."
    )


def has_torch(python):
    if not python.exists():
        return False
    command = [python, "-c", "import torch.distributed.pipelining"]
    return subprocess.run(command, capture_output=True).returncode == 0


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    build = HERE.parents[1] / "build"
    parser.add_argument(
        "--tools", type=pathlib.Path, default=build / "release/bin"
    )
    parser.add_argument(
        "--python", type=pathlib.Path, default=build / "venv/bin/python"
    )
    parser.add_argument("--runs", type=int, default=5)
    args = parser.parse_args()
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(cores)})
    library = Library(args.tools)
    pytorch = PyTorch(args.python) if has_torch(args.python) else None
    for _ in range(args.runs):
        library.run()
        if pytorch:
            pytorch.run()
    print(f"1 of {len(cores)} cores, median of {args.runs} (least–most)\n")
    library.print_growth()
    print()
    library.print_families()
    print()
    if pytorch:
        print_comparison(library, pytorch)
    else:
        print(f"no torch to compare with in {args.python}: tools/setup.sh --full")


if __name__ == "__main__":
    main()
