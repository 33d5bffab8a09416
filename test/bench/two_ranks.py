#!/usr/bin/env python3
# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prints, as a Markdown table, how many tokens per second two ranks with one thread
each train in a pipeline. Compares them with two sequential processes of one thread.
Each of these trains the whole model alone (`chimera-run --sequential`), at the same
time as the other and without communication. Their tokens/s are added. With two free
cores, this sum is what the cores can do. So the tokens/s of the pipeline divided by
this sum is the efficiency of the pipeline.

    test/bench/two_ranks.py [--tools build/release/bin] [--rounds 9]
        [--concatenation eager] [--before BIN] [--python build/venv/bin/python]
        [--only sequential]

The schedule is Chimera's. The ranks are threads of a process, or processes over MPI or
TCP. --before adds another build to the same rounds, also with two sequential processes.
It uses direct concatenation, which every build has. --python, which needs torch, adds
three things: the same GPT-2 exported from PyTorch; the schedules of
torch.distributed.pipelining, over gloo with two processes of one thread; and two
independent PyTorch processes (two_ranks_pytorch.py). --only leaves out the rows whose
name does not have that word. All rows train the same sizes of GPT-2 with the same
batches. Memory is the sum of the peak resident memory of a row's processes, including
libraries and the Python interpreter. PyTorch 2.15 keeps the N gradient sends of a stage
alive until the end of a step, unless max_outstanding_sends limits it. All micro-batches
have the same number of rows: 2.15 evaluates ten rows in four micro-batches as twelve,
and returns twelve, without an error (2.11 raises one).

Each round measures every row once, next to a measurement of the two sequential
processes. The ratio is computed from this pair of measurements. Two more lines compare
the tokens/s over MPI and over TCP with the tokens/s in-process in the same round. Every
second round measures the rows in the opposite order. The first step of a run is left
out.

Ranks with equal shares of a step are as slow as the slower core. Sequential processes
each depend only on their own core. So the last line gives the speed of the slower core,
step by step, relative to the mean of both. It is 1 if the host gives both cores the
same time. Otherwise it is the highest ratio that such ranks could reach.
"""

import argparse
import contextlib
import json
import math
import operator
import os
import pathlib
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import typing

import machine

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
from job import tcp_environments  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
RANKS = 2
PYTORCH = {
    "sequential": "two independent processes",
    "gpipe": "GPipe",
    "1f1b": "1F1B",
    "interleaved-1f1b": "interleaved 1F1B",
    "interleaved-zero-bubble": "interleaved zero-bubble",
}
SIZES = {
    "layers": 8,
    "heads": 4,
    "width": 256,
    "context": 128,
    "vocabulary": 256,
    "micro-batch-size": 4,
    "micro-batches": 8,
}


def write_text(path):
    """Writes some 400 KB of text from a thousand made-up words. Word k of the list is
    drawn with a probability proportional to 1/k."""
    source = random.Random(1)
    words = [
        "".join(source.choices("etaoinshrdlu", k=source.randint(2, 9)))
        for _ in range(1000)
    ]
    weights = [1 / rank for rank in range(1, len(words) + 1)]
    path.write_text(" ".join(source.choices(words, weights, k=60_000)))


def peak_of(file, command):
    """A command that runs `command` and appends its peak memory to `file`."""
    return [sys.executable, HERE / "peak.py", file, *command]


def execute_together(folder, *jobs):
    """Starts all jobs and returns when all have ended. A job is a command and the
    variables to add to its environment. If a job fails, the script ends with the output
    of all jobs."""
    with contextlib.ExitStack() as stack:
        processes, outputs = [], []
        for number, (command, additions) in enumerate(jobs):
            outputs.append(folder / f"output{number}")
            with outputs[-1].open("w") as output:
                process = subprocess.Popen(
                    [str(word) for word in command],
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    env={**os.environ, **additions},
                )
            # Calling terminate has no effect on a process that has ended.
            stack.callback(process.terminate)
            processes.append(process)
        for process in processes:
            if process.wait(timeout=600) != 0:
                texts = "\n".join(path.read_text() for path in outputs)
                sys.exit(f"{' '.join(map(str, process.args))}:\n{texts}")


def rank_environments():
    """The environment that torchrun gives each rank of a job on this host."""
    return tcp_environments(RANKS)


class Run(typing.NamedTuple):
    speed: float  # tokens/s
    memory: int  # bytes


class Bench:
    """Runs the programs that are compared. Each method with the name of a program
    returns a `Run`."""

    def __init__(self, args, folder):
        self.args, self.folder = args, folder
        self.sizes = {name: getattr(args, name.replace("-", "_")) for name in SIZES}
        self.tokens = math.prod(
            self.sizes[name]
            for name in ("context", "micro-batch-size", "micro-batches")
        )
        self.text = folder / "text"
        write_text(self.text)
        self.logs = [folder / f"log{rank}" for rank in range(RANKS)]
        self.peaks = folder / "peaks"
        # Two sequential processes together do the work of two ranks. So each of them
        # needs only half as many steps, rounded up. It runs one more step, to keep its
        # core busy until the other process has also done the steps that are measured.
        self.steps = 1 + args.steps
        self.sequential_steps = 1 + math.ceil(args.steps / RANKS) + 1
        self.slower = []  # the slower sequential process's speed, relative to the mean

    def compile(self, tools, name, concatenation, package=None, training=""):
        """Compiles a program file with the compiler in `tools`, if there is one. Uses
        the exported model of `package` if it is given. `training` has clauses of
        chimera.training."""
        source, program = self.folder / "description.mlir", self.folder / name
        own = (
            "gpt2 layers({layers}) heads({heads}) width({width}) context({context}) "
            "vocabulary({vocabulary})".format(**self.sizes)
        )
        model = f'exported("{package}")' if package else own
        source.write_text(
            f"chimera.model @model {model}\n"
            f"chimera.training @training {training}\n"
            "chimera.pipeline @bench of @model with @training stages({ranks}) "
            "micro_batches({micro-batches}) "
            'schedule("chimera", {{concatenation = "{concatenation}"}}) '
            "micro_batch_size({micro-batch-size})\n".format(
                ranks=RANKS, concatenation=concatenation, **self.sizes
            )
        )
        compiler = tools / "chimera-compile"
        if not compiler.exists():
            compiler = self.args.tools / "chimera-compile"
        machine.execute(compiler, source, "-o", program)
        return program

    def ends(self, log, steps):
        """The time when each step ended, in seconds."""
        entries = [json.loads(line) for line in log.read_text().splitlines()]
        log.unlink()
        entries = [entry for entry in entries if "loss" in entry]
        losses = [entry["loss"] for entry in entries]
        if len(losses) != steps:
            sys.exit(f"expected {steps} steps, got {len(losses)}")
        if not all(map(math.isfinite, losses)) or not losses[-1] < losses[0]:
            sys.exit(f"expected finite losses that fall, got {losses}")
        return [entry["seconds"] for entry in entries]

    def speed(self, ends):
        """Tokens/s, without the first step."""
        return self.tokens * (len(ends) - 1) / (ends[-1] - ends[0])

    def memory(self):
        """The sum of the peaks of all processes since the last call."""
        peaks = [int(line) for line in self.peaks.read_text().split()]
        self.peaks.unlink()
        return sum(peaks)

    def chimera_command(self, tools, program, steps, log, *options):
        # fmt: off
        return peak_of(self.peaks, [
            tools / "chimera-run", program, "--data", self.text, "--threads", 1,
            "--steps", steps, "--evaluate-samples", 0, "--quiet", "--log", log,
            *options,
        ])
        # fmt: on

    def export(self):
        """Exports the same GPT-2, written in PyTorch. Returns the package."""
        package = self.folder / "package"
        sizes = [
            f"{name}={self.sizes[name]}"
            for name in ("layers", "heads", "width", "context", "vocabulary")
        ]
        machine.execute(
            self.args.python, ROOT / "tools/export/chimera-export",
            ROOT / "examples/models/gpt2.py", *sizes,
            f"samples={self.sizes['micro-batch-size']}", "-o", package,
        )  # fmt: skip
        return package

    def chimera(self, tools, program, transport, *options):
        command = self.chimera_command(
            tools, program, self.steps, self.logs[0], "--transport", transport, *options
        )
        if transport == "tcp":
            jobs = [(command, more) for more in rank_environments()]
        elif transport == "mpi":
            jobs = [([*machine.mpirun(RANKS), *command], {})]
        else:
            jobs = [(command, {})]
        execute_together(self.folder, *jobs)
        return Run(self.speed(self.ends(self.logs[0], self.steps)), self.memory())

    def chimera_sequential(self, tools, program):
        runs = self.sequential(
            lambda log: self.chimera_command(
                tools, program, self.sequential_steps, log, "--sequential"
            )
        )
        for times in zip(*(map(operator.sub, ends[1:], ends) for ends in runs)):
            speeds = [1 / time for time in times]
            self.slower.append(min(speeds) / statistics.mean(speeds))
        return Run(sum(map(self.speed, runs)), self.memory())

    def pytorch_command(self, schedule, steps, log):
        # fmt: off
        return peak_of(self.peaks, [
            self.args.python, HERE / "two_ranks_pytorch.py", "--schedule", schedule,
            "--data", self.text, "--steps", steps, "--log", log,
            *(word for name, size in self.sizes.items()
              for word in (f"--{name}", size)),
        ])
        # fmt: on

    def pytorch(self, schedule):
        command = self.pytorch_command(schedule, self.steps, self.logs[0])
        local = {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
        execute_together(
            self.folder, *((command, {**e, **local}) for e in rank_environments())
        )
        return Run(self.speed(self.ends(self.logs[0], self.steps)), self.memory())

    def pytorch_sequential(self):
        runs = self.sequential(
            lambda log: self.pytorch_command("sequential", self.sequential_steps, log)
        )
        return Run(sum(map(self.speed, runs)), self.memory())

    def sequential(self, command):
        """The ends of the measured steps, for each of the two independent processes."""
        one_thread = {"OMP_NUM_THREADS": "1"}
        execute_together(
            self.folder, *((command(log), one_thread) for log in self.logs)
        )
        return [self.ends(log, self.sequential_steps)[:-1] for log in self.logs]


def rows_of_build(bench, tools, name, program):
    """(name of the row, function that measures it) for each transport of a build's
    chimera-run."""
    usage = machine.execute(tools / "chimera-run", "--help").stdout
    transports = {"in-process": "in-process"}
    if shutil.which("mpirun"):
        transports["mpi"] = "over MPI"
    if "tcp" in usage:
        transports["tcp"] = "over TCP"
    return [
        (f"{name}, {words}", lambda t=transport: bench.chimera(tools, program, t))
        for transport, words in transports.items()
    ]


def rows_of_pytorch(bench):
    return [
        (
            f"PyTorch, {words}",
            bench.pytorch_sequential
            if schedule == "sequential"
            else lambda s=schedule: bench.pytorch(s),
        )
        for schedule, words in PYTORCH.items()
    ]


def measure(rows, yardstick, rounds):
    """Returns the runs of each row, the run of the yardstick next to each of these, and
    all runs of the yardstick."""
    runs = {name: [] for name, _ in rows}
    beside = {name: [] for name, _ in rows}
    yardsticks = []
    for number in range(rounds):
        order = rows[::-1] if number % 2 else rows
        # Run the yardstick between two rows, so that both are next to the same run.
        for first in range(0, len(order), 2):
            pair = order[first : first + 2]
            results = [pair[0][1]()]
            yardsticks.append(yardstick())
            results += [run() for _, run in pair[1:]]
            for (name, _), result in zip(pair, results):
                runs[name].append(result)
                beside[name].append(yardsticks[-1])
        print(f"round {number + 1} of {rounds}", file=sys.stderr, flush=True)
    return runs, beside, yardsticks


def print_table(runs, beside, yardsticks):
    def row(name, runs, ratio):
        speed = statistics.median(run.speed for run in runs)
        memory = statistics.median(run.memory for run in runs) / 2**20
        print(f"| {name} | {speed:,.0f} | {ratio} | {memory:,.0f} |")

    print(
        "| what | tokens/s | ratio to two sequential processes (least–most) "
        "| memory, MiB |\n"
        "|---|---|---|---|"
    )
    row("chimera, two sequential processes", yardsticks, 1)
    for name, own in runs.items():
        ratios = [run.speed / base.speed for run, base in zip(own, beside[name])]
        median = statistics.median(ratios)
        row(name, own, f"{median:.3f} ({min(ratios):.3f}–{max(ratios):.3f})")


def print_transports(runs):
    """Compares the speeds over MPI and TCP with the speed in-process in the same
    round."""
    base = runs.get("chimera, in-process", [])
    for name, own in runs.items():
        if base and name in ("chimera, over MPI", "chimera, over TCP"):
            ratios = [run.speed / other.speed for run, other in zip(own, base)]
            print(
                f"{name}: {statistics.median(ratios):.3f} of in-process in the same "
                f"round ({min(ratios):.3f}–{max(ratios):.3f})."
            )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tools", type=pathlib.Path, default=machine.TOOLS)
    parser.add_argument(
        "--before",
        type=pathlib.Path,
        help="another folder with a chimera-run, and if need be a chimera-compile",
    )
    parser.add_argument(
        "--python", type=pathlib.Path, help="a Python with torch, to compare with"
    )
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument(
        "--steps", type=int, default=4, help="of a run of two ranks that count"
    )
    parser.add_argument(
        "--concatenation", default="eager", help="how Chimera's units follow each other"
    )
    parser.add_argument("--only", default="", help="rows whose names have this")
    for name, size in SIZES.items():
        parser.add_argument(f"--{name}", type=int, default=size)
    args = parser.parse_args()
    if min(args.rounds, args.steps) < 1:
        parser.error("expected at least 1 round and 1 step")
    with tempfile.TemporaryDirectory() as name, machine.OtherLoad() as load:
        bench = Bench(args, pathlib.Path(name))
        program = bench.compile(args.tools, "program", args.concatenation)
        rows = rows_of_build(bench, args.tools, "chimera", program)
        if args.before:
            before = bench.compile(args.before, "before", "direct")
            rows += rows_of_build(bench, args.before, "chimera before", before)
            rows.append(
                (
                    "chimera before, two sequential processes",
                    lambda: bench.chimera_sequential(args.before, before),
                )
            )
        if args.python:
            package = bench.export()
            exported = bench.compile(
                args.tools, "exported", args.concatenation, package
            )
            values = package / "values.safetensors"
            rows.append(
                (
                    "chimera, exported from PyTorch, in-process",
                    lambda: bench.chimera(
                        args.tools, exported, "in-process", "--load", values
                    ),
                )
            )
            rows += rows_of_pytorch(bench)
        rows = [row for row in rows if args.only in row[0]]
        if not rows:
            parser.error(f"expected a word of a row with --only, got '{args.only}'")
        results = measure(
            rows, lambda: bench.chimera_sequential(args.tools, program), args.rounds
        )
    print(
        f"{os.cpu_count()} cores, median of {args.rounds} rounds; other load "
        f"{load.cores:.2f} cores.\n"
    )
    print_table(*results)
    print()
    print_transports(results[0])
    print(
        f"The slower of two sequential processes: {statistics.mean(bench.slower):.3f} "
        "of their mean."
    )


if __name__ == "__main__":
    main()
