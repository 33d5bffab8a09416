#!/usr/bin/env python3
# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs every schedule of the registry on exact stages, over a grid of stages,
micro-batches, options, widths, whole or split backwards and recomputes, and
holds the weights against `--sequential`: equal integers. A wrong operand, a
missing or a doubled summand, or a mixed-up message changes them."""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

STEPS = 3
# One device keeps older weights for these, each by its own rule.
WITHOUT_FLUSH = ('"pipedream"', '"pipedream-2bw"')
RECOMPUTES = ("", "recompute(all)", "recompute(all fused)", "recompute([0])")


def cases():
    """(schedule with options, D, N, W, options of the pipeline)"""
    for stages in (2, 3, 4, 5, 8):
        for batches in (1, stages - 1, stages, 2 * stages, 2 * stages + 3):
            for schedule in ('"chimera"', '"gems"', '"1f1b"', '"gpipe"'):
                split = "split_backward" if batches % 2 else ""
                yield schedule, stages, batches, 1 + batches % 2, split
    for stages, pipelines in ((4, 4), (8, 4), (8, 8), (12, 6)):
        for batches in (stages, stages + 3, 2 * stages):
            options = f'"chimera", {{pipelines = {pipelines}}}'
            yield options, stages, batches, 2, ""
    for stages in (3, 4, 8):
        for batches in (2 * stages, 3 * stages, 2 * stages + 3):
            doubling = '"chimera", {concatenation = "fine-tuned-doubling"}'
            yield doubling, stages, batches, 1, ""
    # Forwards of two micro-batches, backwards of halves, and recomputation.
    grid = [(2, 4), (2, 7), (4, 8), (4, 11), (4, 5), (5, 10), (8, 16)]
    for i, (stages, batches) in enumerate(grid):
        for j, concatenation in enumerate(("direct", "doubling", "halving")):
            schedule = f'"chimera", {{concatenation = "{concatenation}"}}'
            recompute = RECOMPUTES[(i + j) % len(RECOMPUTES)]
            split = " split_backward" if (i + j // 2) % 2 else ""
            yield schedule, stages, batches, 1 + i % 2, recompute + split
            if concatenation != "direct":
                yield schedule, stages, batches, 1, split
    for scheme in ("gems", "1f1b", "gpipe"):
        for recompute in RECOMPUTES[1:]:
            yield f'"{scheme}"', 4, 6, 2, recompute
    many = '"chimera", {pipelines = 4, concatenation = "halving"}'
    yield many, 8, 12, 1, "recompute(all)"
    for schedule in WITHOUT_FLUSH:
        for stages in (2, 3, 4, 8):
            for batches in (stages, stages + 1, 2 * stages + 3):
                split = "split_backward" if batches % 2 else ""
                yield schedule, stages, batches, 1 + stages % 2, split
                again = RECOMPUTES[1 + (stages + batches) % 3]
                yield schedule, stages, batches, 1 + batches % 2, f"{again} {split}"


def run(*command):
    result = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True
    )
    if result.returncode != 0:
        sys.exit(
            f"{' '.join(map(str, command))}\nended with {result.returncode}:\n"
            f"{result.stdout}{result.stderr}"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tools", type=pathlib.Path, required=True)
    tools = parser.parse_args().tools
    ran = failed = 0
    sequential = {}
    with tempfile.TemporaryDirectory() as name:
        source, program, log = (
            pathlib.Path(name) / file for file in ("d.mlir", "program", "log")
        )

        def digest(*options):
            # fmt: off
            run(tools / "chimera-run", program, "--stages", "exact", "--steps",
                STEPS, "--quiet", "--log", log, *options)
            # fmt: on
            summary = json.loads(log.read_text().splitlines()[-1])["summary"]
            return summary["weights_digest"]

        for schedule, stages, batches, width, options in cases():
            source.write_text(
                f"chimera.pipeline @p stages({stages}) micro_batches({batches}) "
                f"schedule({schedule}) data_parallel({width}) {options}\n"
            )
            run(tools / "chimera-compile", source, "-o", program, "--check")
            # One device knows of stages, micro-batches and their parts only,
            # and of copies where their micro-batches make an update.
            halves = "halving" in schedule
            key = (stages, batches * width, halves)
            if schedule in WITHOUT_FLUSH:
                key = (stages, batches, width, schedule)
            if key not in sequential:
                sequential[key] = digest("--sequential")
            good = digest("--check-replicas") == sequential[key]
            ran += 1
            failed += not good
            if not good:
                print(
                    f"FAIL schedule({schedule}) D={stages} N={batches} "
                    f"W={width} {options}: differs from --sequential"
                )
    print(f"{ran - failed} of {ran} programs equal the sequential run")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
