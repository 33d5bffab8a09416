#!/usr/bin/env python3
# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prints what it saves to compute the last linear layer and the cross-entropy as one call
(runtime/model/graph/LinearCrossEntropy.h): the time of the last stage (a forward and a
backward of a micro-batch), the time of a step, and the peak resident memory of the last
rank. Each is divided by that of a model that keeps all logits of a micro-batch: the same
model exported without this call. The model is the built-in GPT-2 with 124 million
parameters, on two ranks with one thread each, which are processes over TCP.

    test/bench/many_classes.py [--rounds 3] [--steps 2] [--micro-batches 2] [--vocabulary 50257]

The first step of a run is left out. Every second round measures the models in the
opposite order.
"""

import argparse
import json
import os
import pathlib
import statistics
import sys
import tempfile
import typing

import machine
import two_ranks

ROOT = pathlib.Path(__file__).resolve().parents[2]
SIZES = {"layers": 12, "heads": 12, "width": 768}
# Exports as chimera-export does, but as if the classes were few.
KEEPS_LOGITS = """
import sys
from chimera_export import linear_cross_entropy
linear_cross_entropy.FEWEST_CLASSES = 1 << 60
from chimera_export import command
sys.exit(command.main())
"""


class Run(typing.NamedTuple):
    stage: float  # of a micro-batch, in seconds
    step: float  # in seconds
    peak: int  # bytes


class Bench:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.text = folder / "text"
        two_ranks.write_text(self.text)

    def exported(self):
        """Exports the model so that it keeps its logits. Returns its clause in a
        description."""
        options, package = self.options, self.folder / "package"
        machine.execute(
            "env", f"PYTHONPATH={ROOT / 'tools/export'}", options.python, "-c", KEEPS_LOGITS,
            ROOT / "examples/models/gpt2.py", *(f"{n}={v}" for n, v in SIZES.items()),
            f"context={options.context}", f"vocabulary={options.vocabulary}",
            f"samples={options.samples}", "positions=1024", "tied=True", "--no-values",
            "--compute", "float32", "-o", package,
        )  # fmt: skip
        return f'exported("{package}")'

    def built_in(self):
        sizes = " ".join(f"{n}({v})" for n, v in SIZES.items())
        options = self.options
        return f"gpt2 {sizes} context({options.context}) vocabulary({options.vocabulary}) tied"

    def compile(self, name, model):
        options = self.options
        source, program = self.folder / f"{name}.mlir", self.folder / f"{name}.chimera"
        source.write_text(
            f"chimera.model @model {model}\n"
            "chimera.pipeline @bench of @model stages(2) "
            f'micro_batches({options.micro_batches}) schedule("1f1b") '
            f"micro_batch_size({options.samples})\n"
        )
        machine.execute(options.tools / "chimera-compile", source, "-o", program)
        return program

    def run(self, program):
        peaks = [self.folder / f"peak{rank}" for rank in range(two_ranks.RANKS)]
        profile = self.folder / "profile"
        jobs = [
            (
                two_ranks.peak_of(peaks[rank], [
                    self.options.tools / "chimera-run", program, "--data", self.text,
                    "--tokens", "bytes", "--threads", 1, "--steps", 1 + self.options.steps,
                    "--evaluate-samples", 0, "--quiet", "--profile", profile,
                    "--transport", "tcp",
                ]),
                environment,
            )
            for rank, environment in enumerate(two_ranks.rank_environments())
        ]  # fmt: skip
        two_ranks.execute_together(self.folder, *jobs)
        measured = json.loads(profile.read_text())
        last = measured["stages"][-1]
        stage = last["forward"]["median"] + last["backward"]["median"]
        made = Run(
            stage / 1e9, measured["steps"]["later"]["median"] / 1e9, int(peaks[-1].read_text())
        )
        for file in (*peaks, profile):
            file.unlink()
        return made


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tools", type=pathlib.Path, default=machine.TOOLS)
    parser.add_argument("--python", type=pathlib.Path, default=ROOT / "build/venv/bin/python")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument("--micro-batches", type=int, default=2)
    parser.add_argument("--samples", type=int, default=4, help="of a micro-batch")
    parser.add_argument("--context", type=int, default=256)
    parser.add_argument("--vocabulary", type=int, default=50257)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, machine.OtherLoad() as load:
        bench = Bench(options, pathlib.Path(name))
        models = {"one call": bench.built_in(), "all logits": bench.exported()}
        programs = {
            what: bench.compile(f"program{number}", model)
            for number, (what, model) in enumerate(models.items())
        }
        runs = {what: [] for what in programs}
        for number in range(options.rounds):
            for what in list(programs)[:: 1 if number % 2 == 0 else -1]:
                runs[what].append(bench.run(programs[what]))
            print(f"round {number + 1} of {options.rounds}", file=sys.stderr, flush=True)
    print(f"{os.cpu_count()} cores; other load {load.cores:.2f} cores.\n")
    print("| | last stage, s | step, s | last rank's peak, MiB |\n|---|---|---|---|")
    for what, own in runs.items():
        stage, step, peak = (statistics.median(column) for column in zip(*own))
        print(f"| {what} | {stage:.2f} | {step:.1f} | {peak / 2**20:,.0f} |")
    (call, mine), *others = runs.items()
    for what, theirs in others:
        ratios = [
            [a / b for a, b in zip(*columns)] for columns in zip(zip(*mine), zip(*theirs))
        ]
        cells = (f"{statistics.median(r):.3f} ({min(r):.3f}–{max(r):.3f})" for r in ratios)
        print(f"| {call} / {what} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
