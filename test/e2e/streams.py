#!/usr/bin/env python3
# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles programs of every scheme and option for two message models: one stream of
operations per pair of workers, and one per device. The compiler must prove that these
programs have no deadlock."""

import argparse
import pathlib
import random
import re
import tempfile

import grid

MODELS = ("stream-per-pair", "stream-per-device")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tools", type=pathlib.Path, required=True)
    parser.add_argument("--programs", type=int, help="how many of them; else all")
    parser.add_argument("--stages", type=int, default=5, help="the most")
    options = parser.parse_args()
    # Remove receive windows. In these models both ends of a message post in the same
    # order, so there are no windows.
    descriptions = sorted(
        {re.sub(r"receive_window\(\d+\)", "", each) for each in grid.grid(options.stages)}
    )
    random.Random(1).shuffle(descriptions)
    with tempfile.TemporaryDirectory() as name:

        def one(numbered):
            number, description = numbered
            program = pathlib.Path(name) / f"{number}.chimera"
            for model in MODELS:
                grid.compile_to(
                    options.tools, description, program, "--messages", model
                )
            program.unlink()

        work = list(enumerate(descriptions[: options.programs]))
        for _ in grid.in_parallel(one, work):
            pass
    print(f"{len(work)} descriptions compile for {' and '.join(MODELS)}")


if __name__ == "__main__":
    main()
