#!/usr/bin/env python3
# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prints what checkpoints, clipping and Muon cost: the tokens per second of two ranks
with each of them, divided by those of a run without that follows or precedes it. The
ranks are threads of a process, with the model, the schedule and the batches of
two_ranks.py.

    test/bench/run_options.py [--rounds 9] [--steps 20] [--every 50] [--only clipping]

A run with checkpoints has 2 × --every + 1 steps, the others 1 + --steps. The first step
is left out. Every second round measures a pair in the opposite order.

Also prints by how much checkpoints raise the memory of a rank, which is a process here,
beside what the run says beforehand.
"""

import argparse
import fcntl
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import machine
import two_ranks

STEPS_PER_COPY = 3  # when memory is measured
QUIET = 5  # measurements of 0.2 s without work, after which ranks count as stopped
STATED = re.compile(r"a copy of its state, at most ([0-9.]+) (kB|MB|GB)")
BYTES = {"kB": 1e3, "MB": 1e6, "GB": 1e9}


def cpu_seconds(process):
    """The processor time that a process has used."""
    fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Pair:
    """Runs with and without something, both with `steps` steps."""

    def __init__(self, name, steps, without, run_with):
        self.name, self.steps = name, steps
        self.runs = {False: without, True: run_with}
        self.ratios = []

    def measure(self, first):
        speed = {which: self.runs[which](self.steps) for which in (first, not first)}
        self.ratios.append(speed[True] / speed[False])

    def row(self):
        median = statistics.median(self.ratios)
        return (
            f"| {self.name} | {median:.3f} ({min(self.ratios):.3f}–{max(self.ratios):.3f}) "
            f"| {len(self.ratios)} of {self.steps - 1} steps |"
        )


class Bench(two_ranks.Bench):
    def remove_checkpoints(self):
        shutil.rmtree(self.folder / "kept", ignore_errors=True)

    def train(self, program, *options):
        """Returns a function of the number of steps that trains `program` with threads
        as ranks, and returns its tokens/s."""

        def run(steps):
            self.remove_checkpoints()
            log = self.logs[0]
            command = self.chimera_command(
                self.args.tools, program, steps, log, "--transport", "in-process", *options
            )
            two_ranks.execute_together(self.folder, (command, {}))
            return self.speed(self.ends(log, steps))

        return run

    def memory_of_ranks(self, program, *options):
        """The anonymous resident bytes of each rank, as processes over TCP. Pages of
        libraries are left out, since their number varies. The log is a pipe that nobody
        reads, so all ranks stop at the same step, and memory is read then."""
        self.remove_checkpoints()
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        command = [
            self.args.tools / "chimera-run", program, "--data", self.text, "--threads", 1,
            "--steps", 10**6, "--evaluate-samples", 0, "--quiet", "--transport", "tcp",
            "--log", pipe, *options,
        ]  # fmt: skip
        reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        fcntl.fcntl(reader, fcntl.F_SETPIPE_SZ, 4096)
        errors = open(self.folder / "errors", "w+")
        ranks = [
            subprocess.Popen(list(map(str, command)), env=os.environ | place, stderr=errors)
            for place in two_ranks.rank_environments()
        ]
        used = []
        while not used or sum(used[-QUIET:]) > 0.01 * QUIET:
            before = sum(map(cpu_seconds, ranks))
            time.sleep(0.2)
            used.append(sum(map(cpu_seconds, ranks)) - before)
            if len(used) < 10 * QUIET:  # a rank may wait for another at its start
                used[-1] = 1
            if any(rank.poll() is not None for rank in ranks):
                statuses = [rank.wait() for rank in ranks]  # -11 for a segmentation fault
                errors.seek(0)
                sys.exit(f"ranks ended early, statuses {statuses}:\n{errors.read()}")
        status = (pathlib.Path(f"/proc/{rank.pid}/status").read_text() for rank in ranks)
        memory = [int(re.search(r"RssAnon:\s+(\d+) kB", text)[1]) * 1024 for text in status]
        for rank in ranks:
            rank.kill()
            rank.wait()
        os.close(reader)
        pipe.unlink()
        return memory

    def memory_of_checkpoints(self, program):
        """The stated bytes of the largest copy, and the mean growth of the ranks' memory
        in each round. All ranks have copies of nearly the same size. The heap of a rank
        varies by several MB from run to run, so one round tells little."""
        saving = ["--checkpoint", self.folder / "kept", "--checkpoint-every", STEPS_PER_COPY]
        grown = [
            statistics.mean(self.memory_of_ranks(program, *saving))
            - statistics.mean(self.memory_of_ranks(program))
            for _ in range(self.args.rounds)
        ]
        self.remove_checkpoints()
        # fmt: off
        said = machine.execute(
            self.args.tools / "chimera-run", program, "--data", self.text, "--steps", 1,
            "--threads", 1, "--evaluate-samples", 0, *saving,
        ).stdout
        # fmt: on
        stated = STATED.search(said)
        if not stated:
            sys.exit(f"expected the memory of a copy for checkpoints, got:\n{said}")
        return float(stated[1]) * BYTES[stated[2]], grown


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tools", type=pathlib.Path, default=machine.TOOLS)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--steps", type=int, default=20, help="of a run that count")
    parser.add_argument("--every", type=int, default=50, help="steps per checkpoint")
    parser.add_argument("--only", default="", help="rows whose names have this")
    for name, size in two_ranks.SIZES.items():
        parser.add_argument(f"--{name}", type=int, default=size)
    args = parser.parse_args()
    if min(args.rounds, args.steps, args.every) < 1:
        parser.error("expected at least 1 round, 1 step and 1 step per checkpoint")
    with tempfile.TemporaryDirectory() as name, machine.OtherLoad() as load:
        bench = Bench(args, pathlib.Path(name))
        plain, clipped, muon = (
            bench.compile(args.tools, name, "eager", training=training)
            for name, training in (
                ("plain", ""),
                # A limit that changes no gradient costs as much.
                ("clipped", "clip_norm(1.0e6)"),
                ("muon", "optimizer(muon) momentum(0.95)"),
            )
        )
        saving = ["--checkpoint", bench.folder / "kept", "--checkpoint-every", args.every]
        steps = 1 + args.steps
        # fmt: off
        pairs = [
            Pair(f"a checkpoint every {args.every} steps", 1 + 2 * args.every,
                 bench.train(plain), bench.train(plain, *saving)),
            Pair("clipping", steps, bench.train(plain), bench.train(clipped)),
            Pair("Muon in place of AdamW", steps, bench.train(plain), bench.train(muon)),
        ]
        # fmt: on
        pairs = [pair for pair in pairs if args.only in pair.name]
        if not pairs:
            parser.error(f"expected a word of a row with --only, got '{args.only}'")
        for number in range(args.rounds):
            for pair in pairs:
                pair.measure(first=number % 2 == 1)
            print(f"round {number + 1} of {args.rounds}", file=sys.stderr, flush=True)
        memory = None
        if pairs[0].name.startswith("a checkpoint"):
            memory = bench.memory_of_checkpoints(plain)
    print(f"{os.cpu_count()} cores; other load {load.cores:.2f} cores.\n")
    print("| with | tokens/s, of those without (least–most) | pairs |\n|---|---|---|")
    for pair in pairs:
        print(pair.row())
    if memory:
        stated, grown = memory
        median = statistics.median(grown)
        print(
            f"\nA rank's copy for checkpoints: {stated / 1e6:.1f} MB stated, its memory grew "
            f"by {median / 1e6:.1f} MB ({min(grown) / 1e6:.1f}–{max(grown) / 1e6:.1f}, "
            f"{median / stated:.3f} of it)."
        )


if __name__ == "__main__":
    main()
