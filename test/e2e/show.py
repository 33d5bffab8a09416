#!/usr/bin/env python3
# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""chimera-show draws one schedule in the same way from each form that it reads: a line of
clauses, a description, its program, the orders of its workers. It draws what chimera-opt
draws after it has made the IR of a whole step. Over all schedules, some sizes and
options. Prints how many were compared, and exits non-zero if two pictures differ."""

import argparse
import itertools
import pathlib
import re
import subprocess
import sys
import tempfile

from grid import in_parallel

# Schedule, its options, number of stages, number of workers.
SCHEDULES = [
    ("gpipe", "", 4, 4),
    ("1f1b", "", 4, 4),
    ("chimera", "", 4, 4),
    ("chimera", "pipelines = 4", 8, 8),
    ("chimera", "concatenation = eager", 4, 4),
    ("chimera", "concatenation = doubling", 4, 4),
    ("chimera", "concatenation = halving", 4, 4),
    ("gems", "", 4, 4),
    ("interleaved-1f1b", "", 8, 4),
    ("zb-v", "", 8, 4),
    ("pipedream", "", 4, 4),
    ("pipedream-2bw", "", 4, 4),
]
MICRO_BATCHES = [4, 8]
CLAUSES = [
    "", "split_backward", "recompute(all)", "recompute([1])", "recompute(all fused)",
    "recompute([0, 2]) split_backward", "data_parallel(2)",
]  # fmt: skip
# The schedules whose orders are also written to an order file and shown from there. In
# these orders, either all actions name their stages, or no action needs to.
WITH_ORDER_FILE = {"gpipe", "1f1b", "interleaved-1f1b", "zb-v"}

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--tools", required=True, type=pathlib.Path)
tools = parser.parse_args().tools


def run(tool, *arguments):
    return subprocess.run(
        [tools / tool, *map(str, arguments)], capture_output=True, text=True
    )


def picture(done):
    """The lines after the title, without the line that only the picture of a program
    has."""
    lines = done.stdout.splitlines()[1:]
    return [line for line in lines if not line.startswith("(a program")]


def compare(folder, number, case):
    """Compares the pictures of one case. Returns the faults, and the number of
    pictures."""
    (name, options, stages, workers), micro_batches, clauses = case
    options = f", {{{options}}}" if options else ""
    text = (
        f"chimera.pipeline @p stages({stages}) micro_batches({micro_batches}) "
        f'schedule("{name}"{options}) workers({workers}) {clauses}\n'
    )
    file = folder / f"{number}.mlir"
    file.write_text(text)
    shown = run("chimera-show", file)
    compiled = run("chimera-compile", file, "-o", file.with_suffix(".chimera"))
    if compiled.returncode or shown.returncode:
        # chimera-show refuses a pipeline if and only if the compiler refuses it.
        alike = bool(compiled.returncode) == bool(shown.returncode)
        return [] if alike else [f"{text}{compiled.stderr}{shown.stderr}"], 0
    expected = picture(shown)
    line = re.sub(r"(\w+)\(", r"\1=(", clauses)
    line += f" stages={stages} workers={workers} micro_batches={micro_batches}"
    line += f" schedule={name}{options.lstrip(', ')}"
    others = {
        "-e": run("chimera-show", "-e", line),
        "program": run("chimera-show", file.with_suffix(".chimera")),
        "chimera-opt": run(
            "chimera-opt", file, "--chimera-to-scheduled",
            "--chimera-print-timeline=costs=worker forward=1", "-o", "/dev/null",
        ),
    }  # fmt: skip
    if name in WITH_ORDER_FILE and "data_parallel" not in clauses:
        written = run(
            "chimera-opt", file, "--chimera-to-scheduled", "--chimera-write-order"
        ).stdout
        orders = re.findall(r'chimera.order \d+ "([^"]*)"', written)
        if "fused" not in clauses:  # an order file cannot say that recomputes are fused
            file.with_suffix(".txt").write_text("\n".join(orders))
            others["orders"] = run("chimera-show", file.with_suffix(".txt"))
    faults = [
        f"{text}  as {kind}: expected\n" + "\n".join(expected) + "\n  got\n"
        + other.stdout + other.stderr
        for kind, other in others.items()
        if picture(other) != expected
    ]  # fmt: skip
    return faults, len(others)


with tempfile.TemporaryDirectory() as name:
    cases = list(enumerate(itertools.product(SCHEDULES, MICRO_BATCHES, CLAUSES)))
    faults, compared = [], 0
    for found, count in in_parallel(
        lambda case: compare(pathlib.Path(name), *case), cases
    ):
        faults += found
        compared += count
print("\n".join(faults[:5]))
print(f"{len(cases)} pipelines, {compared} pictures compared, {len(faults)} differ")
sys.exit(bool(faults) or compared < 3 * len(cases) // 2)
