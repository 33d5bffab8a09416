#!/usr/bin/env python3
# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prints, as Markdown tables, the cost of messages between two ranks of this host
over MPI:

- a message over channels, compared with MPI_Isend and MPI_Irecv in the same run. MPI
  waits in the better of two ways: by MPI_Wait, or by a loop of MPI_Test;
- the share of an exchange that overlaps with work, 1 - (both - work) / exchange, and
  how much longer the work takes during an exchange. The exchange is a message in each
  direction, the ordered all-reduce, or MPI's all-reduce (`chimera-run --all-reduce
  transport`). The work sleeps or computes. Each is measured with and without progress
  threads, and with and without the kernel's single copy.

    test/bench/messages.py [--tools build/release/bin] [--rounds 20]

In each round, everything that is compared takes turns. Numbers are medians over the
rounds. Differences and ratios are computed in each round; the table has their medians.
"""

import argparse
import json
import os
import pathlib
import statistics

import machine

SIZES = [8, 64, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20,
         4 << 20, 16 << 20]  # fmt: skip
COPIES = {
    "one": [],
    "two": ["--mca", "btl_vader_single_copy_mechanism", "none"],
}


def size_name(size):
    for unit in ("B", "KiB"):
        if size < 1024:
            return f"{size} {unit}"
        size //= 1024
    return f"{size} MiB"


def ping_pong(tools, rounds, sizes, progress=False):
    """For each message size, the µs of a message in each round: over channels, and with
    MPI in both ways to wait."""
    return json.loads(
        machine.execute(
            *machine.mpirun(2), "--bind-to", "core",
            tools / "ping_pong", "--rounds", rounds,
            *(["--progress"] if progress else []), "--bytes", *sizes,
        ).stdout
    )  # fmt: skip


def print_ping_pong(args, progress):
    with machine.OtherLoad() as load:
        rows = ping_pong(args.tools, args.rounds, args.sizes, progress)
    print(
        f"Progress threads {'on' if progress else 'off'}; other load "
        f"{load.cores:.2f} cores.\n\n"
        "| message | plain MPI, µs | channels, µs | difference, µs "
        "| plain MPI, GB/s | channels, GB/s | bandwidth, share of plain |\n"
        "|---|---|---|---|---|---|---|"
    )
    for row in rows:
        size, ours = row["bytes"], row["channels"]
        plain = min(row["wait"], row["test"], key=statistics.median)
        theirs, own = statistics.median(plain), statistics.median(ours)
        later = statistics.median(o - p for o, p in zip(ours, plain))
        share = statistics.median(p / o for o, p in zip(ours, plain))
        print(
            f"| {size_name(size)} | {theirs:.2f} | {own:.2f} | {later:+.2f} "
            f"| {size / theirs / 1e3:.3g} | {size / own / 1e3:.3g} "
            f"| {share:.1%} |"
        )
    print()


def print_overlap(args):
    print(
        f"{size_name(args.overlap)} each way or summed, copies one (the "
        "kernel's) or two (in and out of shared memory):\n\n"
        "| exchange | work | copies | progress threads | exchange, ms "
        "| work, ms | both, ms | hidden | work takes longer by "
        "| other load, cores |\n"
        "|---|---|---|---|---|---|---|---|---|---|"
    )
    lines = []
    for copies, options in COPIES.items():
        with machine.OtherLoad() as load:
            rows = json.loads(
                machine.execute(
                    # Do not bind ranks to cores: progress threads need cores besides those of
                    # the ranks.
                    *machine.mpirun(2), "--bind-to", "none", *options,
                    args.tools / "overlap", "--rounds", args.rounds,
                    "--bytes", args.overlap, "--work", args.work,
                ).stdout
            )  # fmt: skip
        for row in rows:
            median = {
                key: statistics.median(row[key])
                for key in ("exchange", "work", "both")
            }
            hidden = 1 - (median["both"] - median["work"]) / median["exchange"]
            longer = statistics.median(
                within / alone - 1
                for within, alone in zip(row["work_within"], row["work"])
            )
            lines.append(
                f"| {row['exchange_of']} | {row['kind']} | {copies} "
                f"| {'on' if row['progress'] else 'off'} "
                f"| {median['exchange']:.2f} | {median['work']:.2f} "
                f"| {median['both']:.2f} | {hidden:.0%} | {longer:+.0%} "
                f"| {load.cores:.2f} |"
            )
    for line in sorted(lines, reverse=True):
        print(line)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tools", type=pathlib.Path, default=machine.TOOLS)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument(
        "--overlap", type=int, default=16 << 20, help="bytes of that exchange"
    )
    parser.add_argument(
        "--work", type=float, default=25, help="milliseconds of it"
    )
    args = parser.parse_args()
    print(f"{os.cpu_count()} cores, median of {args.rounds} rounds.\n")
    for progress in (False, True):
        print_ping_pong(args, progress)
    print_overlap(args)


if __name__ == "__main__":
    main()
