#!/usr/bin/env python3
# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares this build with another one, for example that of the previous commit, and
prints as a Markdown table whether anything has become slower:

- an instruction of the interpreter, with stages that do nothing (run.py);
- a message between two ranks over MPI (messages.py);
- a step of sleeping stages, over MPI (predict.py).

    test/bench/before.py BEFORE [--tools build/release/bin] [--rounds 9]

BEFORE is the folder with the programs of the other build. Each round measures
everything once with each build, in turns. A ratio compares the two builds in one round.
The table has the median, the minimum and the maximum over all rounds. For training, use
two_ranks.py --before.
"""

import argparse
import os
import pathlib
import statistics
import tempfile

import machine
import messages
import predict
import run

SIZES = [8, 64 << 10, 1 << 20, 16 << 20]
SLEEPING = [(4, 1 << 16), (4, 1 << 20), (8, 1 << 20)]  # stages, bytes of a message


class Build:
    """A build. Each method returns {row of the table: time}; less is better."""

    def __init__(self, tools, folder):
        folder.mkdir()
        self.folder, self.tools = folder, tools
        self.args = predict.make_parser().parse_args([])
        self.args.tools = tools

    def instructions(self):
        times = {}
        for stages, batches in run.INTERPRETED:
            source = run.describe(self.folder, stages, batches, "chimera", "")
            program = self.folder / "program"
            machine.execute(self.tools / "chimera-compile", source, "-o", program)
            for way, launcher in (
                ("in-process", []),
                ("over MPI", machine.mpirun(stages)),
            ):
                name = f"an instruction, D={stages}, N={batches}, {way}, µs"
                times[name] = run.overhead(
                    self.args, self.folder, launcher, program, stages, batches
                )
        return times

    def messages(self):
        times = {}
        for row in messages.ping_pong(self.tools, 5, SIZES):
            name = f"a message of {messages.size_name(row['bytes'])}, µs"
            # Take the time of the build's own channels, and not those of plain MPI. The
            # two builds may have different names for this column.
            [own] = row.keys() - {"bytes", "wait", "test"}
            times[name] = statistics.median(row[own])
        return times

    def steps(self):
        return {
            f"a step, D={stages}, messages of {messages.size_name(size)}, ms": min(
                predict.measure(self.args, self.folder, stages, "chimera", size)[0]
            )
            / predict.MILLISECOND
            for stages, size in SLEEPING
        }


def measure(before, now, rounds):
    """{row: [(before, now) of each round]}"""
    pairs = {}
    for number in range(rounds):
        order = [before, now] if number % 2 else [now, before]
        for kind in (Build.instructions, Build.messages, Build.steps):
            times = {build: kind(build) for build in order}
            for name in times[now]:
                pair = times[before][name], times[now][name]
                pairs.setdefault(name, []).append(pair)
    return pairs


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("before", type=pathlib.Path)
    parser.add_argument("--tools", type=pathlib.Path, default=machine.TOOLS)
    parser.add_argument("--rounds", type=int, default=9)
    args = parser.parse_args()
    if args.rounds < 1:
        parser.error("expected at least 1 round")
    with tempfile.TemporaryDirectory() as name, machine.OtherLoad() as load:
        folder = pathlib.Path(name)
        pairs = measure(
            Build(args.before.resolve(), folder / "before"),
            Build(args.tools.resolve(), folder / "now"),
            args.rounds,
        )
    print(
        f"{os.cpu_count()} cores, median of {args.rounds} rounds; other load "
        f"{load.cores:.2f} cores.\n\n"
        "| what | before | now | now / before (least–most) |\n|---|---|---|---|"
    )
    for name, values in pairs.items():
        before, now = (statistics.median(column) for column in zip(*values))
        ratios = [new / old for old, new in values]
        print(
            f"| {name} | {before:.3g} | {now:.3g} "
            f"| {statistics.median(ratios):.3f} "
            f"({min(ratios):.3f}–{max(ratios):.3f}) |"
        )


if __name__ == "__main__":
    main()
