#!/usr/bin/env python3
# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prints, as Markdown tables,

- the time of chimera-compile from a description to a verified program file, including
  process start. It is compared with the time in which PyTorch inserts sends and
  receives into the same order, checks the order and simulates it
  (schedule_pytorch.py), without the start of Python and the import of torch. The two
  programs take turns, and each pair of times has a ratio;
- the time per action if there are many more stages than micro-batches, and if there
  are many more micro-batches than stages: user time of the compiler, and total time.
  The two differ by the kernel's work for the memory of a large module, which depends
  on the machine.

    test/bench/compile.py [--tools build/release/bin] [--runs 9]
                          [--python build/venv/bin/python]

Everything runs on one core. Numbers are medians, with the minimum and the maximum in
brackets. Without a Python that has torch the first table is left out.
"""

import argparse
import json
import os
import pathlib
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time

import machine
from schedule import HERE, figure, has_torch

LINE = re.compile(r'chimera\.order \d+ "([^"]*)"')
# The schedule clauses to compare, for 16 workers.
COMPARED = {
    "interleaved-1f1b, 2 chunks": 'stages(32) micro_batches(256) '
    'schedule("interleaved-1f1b") workers(16)',
    "zb-v": 'stages(32) micro_batches(256) schedule("zb-v") workers(16)',
    "1f1b, split": 'stages(16) micro_batches(256) schedule("1f1b") split_backward',
}
# Pairs of stages and micro-batches. The second and the third have equally many actions.
SHAPES = [(64, 4096), (256, 4096), (16384, 64)]
FAMILIES = {
    "1f1b": 'schedule("1f1b")',
    "1f1b, split": 'schedule("1f1b") split_backward',
    "gpipe": 'schedule("gpipe")',
    "chimera": 'schedule("chimera")',
    "chimera, eager": 'schedule("chimera") all_reduce(eager)',
    "gems": 'schedule("gems")',
    "interleaved-1f1b": 'schedule("interleaved-1f1b") workers({half})',
    "zb-v": 'schedule("zb-v") workers({half})',
    "1f1b, recomputed": 'schedule("1f1b") recompute(all)',
}


def compile_time(args, source, program):
    """Returns the compiler's user time and the total time, in s."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    start = time.perf_counter()
    machine.execute(args.tools / "chimera-compile", source, "-o", program)
    whole = time.perf_counter() - start
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before, whole


def lines_of(args, source):
    """The lines of the order of a description. Each action has its stage before it."""
    text = machine.execute(
        args.tools / "chimera-opt", source, "--chimera-to-scheduled",
        "--chimera-write-order",
    ).stdout  # fmt: skip
    lines = LINE.findall(text)
    if re.search(r"(^| )[FBIW]", " ".join(lines)):
        # If the order has no stages, stage s is on worker s.
        lines = [re.sub(r"([FBIW])", rf"{s}\1", line) for s, line in enumerate(lines)]
    return lines


def pytorch_time(args, lines):
    words = [str(args.python), str(HERE / "schedule_pytorch.py")]
    result = subprocess.run(
        words, input=json.dumps(lines), capture_output=True, text=True
    )
    if result.returncode != 0:
        sys.exit(f"{' '.join(words)}:\n{result.stderr}")
    (times,) = json.loads(result.stdout)["sizes"]
    return times["add"] + times["validate"] + times["simulate"]


def compare(args, source, program):
    print(
        "| D=16, N=256 | PyTorch: add, validate, simulate, ms "
        "| chimera: description → program file, ms | ratio |\n|---|---|---|---|"
    )
    for name, clauses in COMPARED.items():
        source.write_text(f"chimera.pipeline @p {clauses}\n")
        lines = lines_of(args, source)
        ours, theirs = [], []
        for turn in range(args.runs):
            if turn % 2:
                ours.append(compile_time(args, source, program)[1])
            theirs.append(pytorch_time(args, lines))
            if not turn % 2:
                ours.append(compile_time(args, source, program)[1])
        ratios = [own / other for own, other in zip(ours, theirs)]
        print(
            f"| {name} | {figure([1e3 * each for each in theirs])} "
            f"| {figure([1e3 * each for each in ours])} | {figure(ratios)} |",
            flush=True,
        )
    print()


def describe(source, stages, batches, clauses):
    source.write_text(
        f"chimera.pipeline @p stages({stages}) micro_batches({batches}) "
        + clauses.format(half=stages // 2)
        + "\n"
    )


def grow(args, source, program):
    print(
        "| 1f1b | actions | description → program file, s | µs an action "
        "| of these the compiler's own |\n|---|---|---|---|---|"
    )
    for stages, batches in SHAPES:
        describe(source, stages, batches, FAMILIES["1f1b"])
        actions = 2 * stages * batches
        own, whole = zip(*(compile_time(args, source, program) for _ in range(3)))
        print(
            f"| S={stages}, N={batches} | {actions:,} | {figure(whole)} "
            f"| {1e6 * statistics.median(whole) / actions:.3g} "
            f"| {1e6 * statistics.median(own) / actions:.3g} |",
            flush=True,
        )
    print("\n| S=2048, N=64 beside S=64, N=2048 | own | all |\n|---|---|---|")
    for name, clauses in FAMILIES.items():
        times = []
        for size in ((2048, 64), (64, 2048)):
            describe(source, *size, clauses)
            times.append(compile_time(args, source, program))
        own, whole = (wide / long for wide, long in zip(*times))
        print(f"| {name} | {own:.2f} × | {whole:.2f} × |", flush=True)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tools", type=pathlib.Path, default=machine.TOOLS)
    parser.add_argument(
        "--python",
        type=pathlib.Path,
        default=HERE.parents[1] / "build/venv/bin/python",
    )
    parser.add_argument("--runs", type=int, default=9)
    args = parser.parse_args()
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    with tempfile.TemporaryDirectory() as name:
        source, program = (pathlib.Path(name) / each for each in ("p.mlir", "p"))
        if has_torch(args.python):
            compare(args, source, program)
        grow(args, source, program)


if __name__ == "__main__":
    main()
