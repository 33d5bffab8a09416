#!/usr/bin/env python3
# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles every scheme of the registry (D <= 8, N <= 4 D, every option, whole and
split backwards, recomputes, one and two copies; every third program has a tied model).
Each message model gets a quarter of the programs. Runs each program by `hostile-run`
under many seeds. There must be no deadlock, every two uses of memory must be ordered,
and the losses, weights and gradients must equal those of one device. Each program also
runs under every other message model. If the proof accepts the program for this model,
it must run to its end. If the proof refuses it, it must stop. The short form takes a
sample of the programs, and the full form takes all. A failure names the description and
the seed."""

import argparse
import pathlib
import random
import re
import sys
import tempfile

import grid

MODELS = ("rendezvous", "stream-per-direction", "stream-per-pair",
          "stream-per-device")  # fmt: skip
COUNTS = re.compile(r"(\d+) times accepted, (\d+) times refused for a deadlock, of "
                    r"which (\d+) end where hosts do not wait\n(\d+) programs, "
                    r"(\d+) runs, (\d+) instructions, 0 runs failed")


def messages(number, description):
    """The options that choose the message model for a description. If opposite channels
    share a stream, both ends of a channel post messages in the same order. Such models
    have no receive windows."""
    models = MODELS[:2] if "receive_window" in description else MODELS
    return "--messages", models[number % len(models)]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tools", type=pathlib.Path, required=True)
    parser.add_argument("--full", action="store_true", help="the whole grid")
    parser.add_argument("--programs", type=int, default=300, help="of a sample")
    parser.add_argument("--seeds", type=int, help="a program; 3, or 6 in full")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    options = parser.parse_args()
    seeds = options.seeds or (6 if options.full else 3)
    descriptions = list(grid.grid(8))
    whole = len(descriptions)
    if not options.full:
        random.Random(options.first).shuffle(descriptions)
        descriptions = descriptions[: options.programs]

    with tempfile.TemporaryDirectory() as name:

        def one(numbered):
            number, description = numbered
            program = pathlib.Path(name) / f"{number}.chimera"
            try:
                grid.compile_to(
                    options.tools, description, program, *messages(number, description)
                )
                # Each program has seeds of its own.
                first = options.first + number * seeds
                # fmt: off
                text = grid.run(options.tools / "hostile-run", program,
                                "--first", first, "--seeds", seeds, "--models")
                # fmt: on
            except RuntimeError as error:
                raise RuntimeError(f"{description}{error}") from None
            program.unlink()
            return tuple(map(int, COUNTS.search(text).groups()))

        counts = list(grid.in_parallel(one, enumerate(descriptions)))
    accepted, refused, ending, programs, runs, instructions = map(sum, zip(*counts))
    print(
        f"{programs} of {whole} programs ran under {runs} seeds, "
        f"{instructions} instructions: no deadlock, every run equals one device\n"
        f"under every model of messages: {accepted} times accepted, and run; "
        f"{refused} times refused for a deadlock, and stop, but for {ending} where "
        "hosts do not wait"
    )


if __name__ == "__main__":
    sys.exit(main())
