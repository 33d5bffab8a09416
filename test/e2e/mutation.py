#!/usr/bin/env python3
# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles programs of every scheme and option. `hostile-mutate` makes mutants of them.
For each mutant, verifyProgram must refuse it, or it must compute the same integers as
one device, under hostile seeds. If a mutant is refused for a deadlock, it must stop. If
a mutant keeps the meaning of the program, it must be accepted. Prints for each kind of
change how many mutants each rule refused, and which mutants were wrong."""

import argparse
import pathlib
import random
import subprocess
import sys
import tempfile

import grid
from hostile import messages


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tools", type=pathlib.Path, required=True)
    parser.add_argument("--full", action="store_true", help="200000 mutants")
    parser.add_argument("--mutants", type=int, help="how many; 4000 if not full")
    parser.add_argument("--first", type=int, default=0, help="the first mutant")
    parser.add_argument("--programs", type=int, help="60, or 400 in full")
    options = parser.parse_args()
    mutants = options.mutants or (200000 if options.full else 4000)
    programs = options.programs or (400 if options.full else 60)
    # Use small programs: their mutants test as much as the mutants of large programs.
    descriptions = [
        each for each in grid.grid(4) if "micro_batches(1)" not in each
    ]
    random.Random(1).shuffle(descriptions)
    with tempfile.TemporaryDirectory() as name:

        def compiled(numbered):
            number, description = numbered
            program = pathlib.Path(name) / f"{number}.chimera"
            grid.compile_to(
                options.tools, description, program, *messages(number, description)
            )
            return program

        # fmt: off
        files = list(grid.in_parallel(
            compiled, enumerate(descriptions[:programs])))
        return subprocess.run(
            [options.tools / "hostile-mutate", "--mutants", str(mutants),
             "--first", str(options.first), *files],
        ).returncode
        # fmt: on


if __name__ == "__main__":
    sys.exit(main())
