#!/usr/bin/env python3
# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles programs of the grid for each message model. Runs each program on simulated
devices many times. Each time, one of the events and waits that order the interpreter's
queues is left out. `hostile-orderings` compares the races that are reported with a
graph of its own."""

import argparse
import pathlib
import random
import re
import sys
import tempfile

import grid
from hostile import MODELS

COUNTS = re.compile(r"each of (\d+) orderings left out, (\d+) of them needed")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tools", type=pathlib.Path, required=True)
    parser.add_argument("--programs", type=int, default=400)
    parser.add_argument("--stages", type=int, default=4, help="the most")
    options = parser.parse_args()
    # Remove receive windows. They are not allowed if opposite channels share a stream.
    descriptions = sorted(
        {re.sub(r"receive_window\(\d+\)", "", each) for each in grid.grid(options.stages)}
    )
    random.Random(4).shuffle(descriptions)
    with tempfile.TemporaryDirectory() as name:

        def one(numbered):
            number, description = numbered
            program = pathlib.Path(name) / f"{number}.chimera"
            model = MODELS[number % len(MODELS)]
            grid.compile_to(
                options.tools, description, program, "--messages", model
            )
            text = grid.run(options.tools / "hostile-orderings", program)
            program.unlink()
            return tuple(map(int, COUNTS.search(text).groups()))

        work = list(enumerate(descriptions[: options.programs]))
        counts = list(grid.in_parallel(one, work))
    orderings, needed = map(sum, zip(*counts))
    print(
        f"{len(work)} programs: each of {orderings} orderings left out, {needed} "
        f"of them needed and reported"
    )


if __name__ == "__main__":
    sys.exit(main())
