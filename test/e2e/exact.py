#!/usr/bin/env python3
# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs every schedule of the registry on exact stages, for many numbers of stages,
micro-batches and copies, with many options, whole and split backwards, and recomputes.
Losses, weights and gradients must be the same integers as on one device. A wrong
operand, a missing or doubled summand, or a message to the wrong place changes these
integers. Each program runs by `hostile-run`, with one thread per rank and under two
seeds. Some programs also run by `chimera-run`. All --sequential runs of the same work
must be equal, whatever the schedule."""

import argparse
import itertools
import pathlib
import re
import sys
import tempfile

import grid
from grid import COPIED, RECOMPUTES

DIGEST = re.compile(r"digest of the weights (\w+)")
EVERY = 12  # every 12th program also runs by chimera-run


def cases():
    """Yields (schedule with its options, stages, micro-batches, copies, options of the
    pipeline)."""
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
    # All concatenations (direct, eager, doubling, halving) with recomputation.
    sizes = [(2, 4), (2, 7), (4, 8), (4, 11), (4, 5), (5, 10), (8, 16)]
    for i, (stages, batches) in enumerate(sizes):
        for j, concatenation in enumerate(("direct", "eager", "doubling", "halving")):
            schedule = f'"chimera", {{concatenation = "{concatenation}"}}'
            recompute = RECOMPUTES[(i + j) % len(RECOMPUTES)]
            split = " split_backward" if (i + j // 2) % 2 else ""
            yield schedule, stages, batches, 1 + i % 2, recompute + split
            if concatenation != "direct":
                yield schedule, stages, batches, 1, split
    for scheme in ("gems", "1f1b", "gpipe"):
        for recompute in RECOMPUTES[1:]:
            yield f'"{scheme}"', 4, 6, 2, recompute
    for reduction in (
        "all_reduce(eager)",
        "all_reduce(eager_opt) bucket_bytes(24)",
        "bucket_bytes(32)",
    ):
        for stages, pipelines, batches in ((2, 2, 4), (4, 2, 7), (5, 2, 10), (8, 4, 9)):
            schedule = f'"chimera", {{pipelines = {pipelines}}}'
            yield schedule, stages, batches, 1 + batches % 2, reduction
        for schedule in ('"gems"', '"1f1b"', '"pipedream"', '"pipedream-2bw"'):
            yield schedule, 4, 6, 2, reduction
    # A worker posts receives one or two ahead. If messages take time, the simulator
    # chooses the number.
    windows = ("receive_window(1)", "receive_window(2)", "link <latency = 3, receive = 1>")
    for i, window in enumerate(windows):
        for schedule in ('"gems"', '"1f1b"', '"gpipe"', '"pipedream"', '"chimera"'):
            yield schedule, 4, 7 + i, 1 + i % 2, window
        for concatenation in ("doubling", "halving"):
            schedule = f'"chimera", {{concatenation = "{concatenation}"}}'
            yield schedule, 4, 8, 2, f"{window} {RECOMPUTES[i]}"
    many = '"chimera", {pipelines = 4, concatenation = "halving"}'
    yield many, 8, 12, 1, "recompute(all)"
    for schedule in (f'"{scheme}"' for scheme in grid.WITHOUT_FLUSH):
        for stages in (2, 3, 4, 8):
            for batches in (stages, stages + 1, 2 * stages + 3):
                split = "split_backward" if batches % 2 else ""
                yield schedule, stages, batches, 1 + stages % 2, split
                again = RECOMPUTES[1 + (stages + batches) % 3]
                yield schedule, stages, batches, 1 + batches % 2, f"{again} {split}"


def chunked_cases(variants):
    """Like cases(), for schedules with several stages per worker. The options take
    turns."""
    variants = itertools.cycle(variants)
    for workers in (1, 2, 3, 4):
        for batches in (1, workers, 2 * workers, 4 * workers):
            for chunks in (1, 2, 3):
                options = f"workers({workers}) {next(variants)}"
                looped = '"interleaved-1f1b"'
                yield looped, workers * chunks, batches, 1 + batches % 2, options
            for more in (0, 1):
                options = f"workers({workers}) {next(variants)}"
                yield '"zb-v"', 2 * workers, batches + more, 1 + more, options


CHUNKED = RECOMPUTES + (
    "split_backward",
    "receive_window(2)",
    "link <latency = 3, receive = 1>",
    "all_reduce(eager) bucket_bytes(24)",
    "all_reduce(eager_opt) split_backward",
)


def tied_cases():
    """Like cases(), for models whose first and last stage have the same matrix. In
    every second case, each stage also holds a copy of its parameters, which has no
    gradient."""
    for stages in (2, 4, 8):
        schedules = ['"chimera"', '"gems"', '"1f1b"', '"gpipe"']
        if stages > 2:
            schedules.append('"chimera", {pipelines = 4}')
        for i, schedule in enumerate(schedules):
            for j, reduction in enumerate(
                ("", "all_reduce(eager)", "all_reduce(eager_opt) bucket_bytes(16)")
            ):
                options = f"{reduction} {RECOMPUTES[j] if i % 2 else 'split_backward'}"
                if (i + j) % 2:
                    options += f" {COPIED}"
                yield schedule, stages, stages + i, 1 + j % 2, options


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tools", type=pathlib.Path, required=True)
    tools = parser.parse_args().tools
    with tempfile.TemporaryDirectory() as name:

        def one(numbered):
            number, (tied, (schedule, stages, batches, width, options)) = numbered
            model = grid.tied_model(stages) if tied else ""
            description = (
                f"{model}chimera.pipeline @p {'of @m ' if tied else ''}"
                f"stages({stages}) micro_batches({batches}) "
                f"schedule({schedule}) data_parallel({width}) {options}\n"
            )
            program = pathlib.Path(name) / f"{number}.chimera"
            try:
                # Some programs have one stream per pair of workers or per device. They
                # have no receive windows.
                how = ["--check"]
                stream = {1: "pair", 3: "device"}.get(number % 4)
                if stream and "receive_window" not in options:
                    how += ["--messages", f"stream-per-{stream}"]
                grid.compile_to(tools, description, program, *how)
                # fmt: off
                text = grid.run(tools / "hostile-run", program, "--threads",
                                "--first", 2 * number, "--seeds", 2)
                # fmt: on
                digest = DIGEST.search(text)[1]
                # Only some programs also run by chimera-run, because it takes longer to
                # start.
                for how in ("--check-replicas", "--sequential"):
                    if number % EVERY:
                        break
                    # fmt: off
                    text = grid.run(tools / "chimera-run", program, "--stages",
                                    "exact", "--steps", 3, how)
                    # fmt: on
                    if DIGEST.search(text)[1] != digest:
                        raise RuntimeError(f"chimera-run {how}: {text}")
            except RuntimeError as error:
                raise RuntimeError(f"{description}{error}") from None
            program.unlink()
            # The result on one device depends on the numbers of stages, micro-batches
            # and parts of micro-batches. It depends on the number of copies only if
            # each micro-batch makes an update.
            if schedule.strip('"') in grid.WITHOUT_FLUSH:
                key = (stages, batches, width, schedule)
            else:
                kind = tied, COPIED in options
                key = (kind, stages, batches * width, "halving" in schedule)
            return description, key, digest

        first = {}
        ran = 0
        every = [(False, case) for case in cases()]
        every += [(True, case) for case in tied_cases()]
        every += [(False, case) for case in chunked_cases(CHUNKED)]
        # With only one stage, the first stage is also the last one, so there is nothing
        # to tie.
        every += [
            (True, case)
            for case in chunked_cases(("", "split_backward", COPIED))
            if case[1] > 1
        ]
        for description, key, digest in grid.in_parallel(one, enumerate(every)):
            ran += 1
            other = first.setdefault(key, (description, digest))
            if other[1] != digest:
                sys.exit(f"one device differs:\n{description}{other[0]}")
    print(f"{ran} programs equal the sequential run")


if __name__ == "__main__":
    main()
