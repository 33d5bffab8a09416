#!/usr/bin/env python3
# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Holds the bytes that each rank has at its peak against those that the program
states: stashes, whose tensors the allocator counts, to the byte, and all with the
arena, which the runtime allocates whole, within 10 %. Under four schedules, in all types,
with and without dropout, of the built-in GPT-2 and of exported models (with a Python
that has torch); and that recomputation lowers what stashes take."""

import argparse
import json
import pathlib

from exporting import PYTHON, check_each, export, has
from grid import run
from numerics import Checks

HALVING = '"chimera", {concatenation = "halving"}'
DESCRIPTION = """
chimera.model @model {model}
chimera.pipeline @train of @model stages(4) micro_batches(4)
    schedule({schedule}) micro_batch_size(4) {options}
"""
GPT2 = "gpt2 layers(4) heads(4) width(64) context(64) vocabulary(256) dropout({dropout})"
F64, BF16 = "weight_type(f64)", "activation_type(bf16)"
SCHEDULES = ('"chimera"', '"gpipe"', '"1f1b"', HALVING)
OPTIONS = (
    ("1.0e-1", ""),
    ("1.0e-1", "recompute(all)"),
    ("0.0", f"{F64}"),
    ("0.0", "split_backward"),
    ("1.0e-1", f"{F64} split_backward recompute([0, 2] fused)"),
    ("1.0e-1", f"{F64} split_backward"),
    ("0.0", BF16),
    ("1.0e-1", f"{BF16} split_backward"),
)
EXPORTED = (
    ("llama", "layers=4 heads=4 groups=2 width=64 context=64"),
    ("convolution", "layers=4 width=64 context=64"),
)


def stashes_of(worker):
    """The most bytes of stashes behind any instruction of a program's worker."""
    sizes = [
        buffer["bytes"] if "stash" in buffer["kind"] else 0 for buffer in worker["buffers"]
    ]
    most = live = 0
    for instruction in worker["instructions"]:
        live += sum(sizes[buffer] for buffer in instruction["results"])
        live -= sum(sizes[buffer] for buffer in instruction["operands"])
        most = max(most, live)
    return most


def measure(checks, options, folder, name, description, *more):
    """Compiles and runs a description, and checks each rank's bytes against what the
    program states. Returns the bytes of each rank's stashes at most."""
    source, program, log = (folder / f for f in ("d.mlir", "program", "log"))
    source.write_text(description)
    run(options.tools / "chimera-compile", source, "-o", program)
    run(
        options.tools / "chimera-run", program, "--data", options.data, "--steps", 2,
        "--quiet", "--evaluate-batches", 0, "--log", log, *more,
    )  # fmt: skip
    ranks = json.loads(log.read_text().splitlines()[-1])["summary"]["ranks"]
    dump = json.loads(run(options.tools / "chimera-translate", "--program-to-json", program))
    for rank, worker in zip(ranks, dump["workers"], strict=True):
        measured, stated = rank["stash_bytes"], stashes_of(worker)
        ratio = (rank["arena_bytes"] + measured) / rank["stated_peak_bytes"]
        checks.check(
            measured == stated > 0 and 0.9 <= ratio <= 1.1,
            f"{name} rank {rank['rank']}: {measured} bytes of stashes, stated "
            f"{stated}; with the arena {ratio:.3f} of the stated peak",
        )
    return [rank["stash_bytes"] for rank in ranks]


def built_in(options, folder, schedule):
    checks, whole = Checks(), None
    for dropout, more in OPTIONS:
        stashes = measure(
            checks, options, folder, f"{schedule} dropout {dropout} {more or 'whole'}",
            DESCRIPTION.format(
                model=GPT2.format(dropout=dropout), schedule=schedule, options=more
            ),
        )  # fmt: skip
        whole = whole or stashes
        if more == "recompute(all)":
            # Whoever holds more than one stash must now hold fewer.
            checks.check(
                sum(stashes) < 0.6 * sum(whole)
                and all(a <= b for a, b in zip(stashes, whole, strict=True)),
                f"{schedule} recomputed: stashes {stashes} instead of {whole}",
            )
    return checks.lines, checks.failed


def exported(options, folder, model, arguments):
    checks, package = Checks(), folder / "package"
    export(options.python, package, model, f"{arguments} samples=4")
    for more in ("", "split_backward"):
        measure(
            checks, options, folder, f"exported {model} {more or 'whole'}",
            DESCRIPTION.format(
                model=f'exported("{package}")', schedule='"1f1b"', options=more
            ),
            "--load", package / "values.safetensors",
        )  # fmt: skip
    return checks.lines, checks.failed


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tools", type=pathlib.Path, required=True)
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--python", default=PYTHON)
    options = parser.parse_args()
    cases = [(built_in, schedule) for schedule in SCHEDULES]
    if has(options.python, "torch"):
        cases += [(exported, *model) for model in EXPORTED]
    check_each(lambda folder, case: case[0](options, folder, *case[1:]), cases)


if __name__ == "__main__":
    main()
