#!/usr/bin/env python3
# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks that a long run takes no more memory than a short one. Runs many short steps
as threads, over MPI and over TCP: of exact stages in two directions, with all-reduces of
several buckets; and of a small GPT-2 that clips its gradients, reads samples ahead,
writes a checkpoint every hundred steps, and keeps two. Near the last step, the resident
memory of each rank's process may be at most 1 % larger than after the first thousand
steps.

The log is a pipe. While memory is measured, nobody reads the pipe, so the run waits.
Therefore the result depends only on the number of steps.

usage: soak.py --tools BIN --data TEXT [--mpirun MPIRUN] [--steps 20000]
"""

import argparse
import fcntl
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from job import ENVIRONMENT, rank_of, stat_of, tcp_environments

RANKS = 4
FIRST = 1000  # steps before the first measurement
# So many lines fit into the pipe. The run is ahead of the reader by at most this number
# of steps.
PIPED = 100
LIMIT = 1.01
EVERY = 100  # steps per checkpoint
TWO_COPIES = 'schedule("chimera") all_reduce(eager_opt) bucket_bytes(2048)'
STAGE = """  chimera.stage {} cost <forward = 1, backward = 2>
    bytes <weights = 8192, optimizer = 16384, stash = 64, boundary = 4096>
"""
EXACT = (
    f"chimera.pipeline @soak stages({RANKS}) micro_batches({RANKS}) {TWO_COPIES} {{\n"
    + "".join(map(STAGE.format, range(RANKS)))
    + "}\n"
)
TRAINING = f"""
chimera.model @tiny gpt2 layers(2) heads(2) width(16) context(8) vocabulary(256) tied
chimera.training @training clip_norm(1.0)
chimera.pipeline @soak of @tiny with @training stages({RANKS}) micro_batches({RANKS})
    {TWO_COPIES}
"""
DESCRIPTIONS = {"exact stages": EXACT, "training": TRAINING}


def resident(pid):
    """The resident bytes of a process. The counter of /proc/PID/status is wrong by up
    to half a megabyte."""
    text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
    return int(re.search(r"^Rss: +(\d+) kB$", text, re.MULTILINE)[1]) * 1024


def children_of(launcher):
    """The processes of mpirun's ranks, in the order of the ranks."""
    ranks = {}
    for entry in filter(str.isdigit, os.listdir("/proc")):
        stat = stat_of(entry)
        if stat and stat[1] == launcher and (rank := rank_of(int(entry))) is not None:
            ranks[rank] = int(entry)
    return [ranks[rank] for rank in sorted(ranks)]


class Run:
    """A run of chimera-run over one transport. This object reads the run's log."""

    def __init__(self, options, kind, transport, program, folder):
        self.log = folder / f"log-{transport}"
        os.mkfifo(self.log)
        # fmt: off
        command = [options.tools / "chimera-run", program,
                   "--steps", options.steps, "--quiet", "--threads", 1,
                   "--log", self.log]
        if kind == "training":
            command += ["--data", options.data, "--evaluate-samples", 0, "--checkpoint",
                        folder / f"kept-{transport}", "--checkpoint-every", EVERY,
                        "--keep", 2]
        else:
            command += ["--stages", "exact"]
        # fmt: on
        command = [str(word) for word in command]
        if transport == "mpi":
            launch = [options.mpirun, "-n", str(RANKS), "--oversubscribe"]
            jobs = [([*launch, *command], ENVIRONMENT)]
        elif transport == "tcp":
            jobs = [
                ([*command, "--transport", "tcp"], environment)
                for environment in tcp_environments(RANKS)
            ]
        else:
            jobs = [([*command, "--transport", "in-process"], ENVIRONMENT)]
        self.name = f"{kind}, {transport}"
        self.processes = [
            subprocess.Popen(job, env=environment, stdout=subprocess.DEVNULL)
            for job, environment in jobs
        ]

    def __enter__(self):
        # Open the log only for reading, so that the lines end when the run ends.
        self.lines = self.log.open()
        fcntl.fcntl(self.lines, fcntl.F_SETPIPE_SZ, 4096)
        return self

    def __exit__(self, *_):
        self.lines.close()
        for process in self.processes:
            process.kill()
            process.wait()

    def read_to(self, step):
        for line in self.lines:
            if json.loads(line).get("step") == step:
                return
        sys.exit(f"soak.py: {self.name}: the run ended before step {step}")

    def memory(self):
        """The resident bytes of each process."""
        pids = [process.pid for process in self.processes]
        if self.name.endswith("mpi"):
            pids = children_of(*pids)
            if len(pids) != RANKS:
                sys.exit(f"soak.py: found {len(pids)} ranks of mpirun")
        return [resident(pid) for pid in pids]

    def end(self):
        for _ in self.lines:
            pass
        for process in self.processes:
            if process.wait() != 0:
                sys.exit(f"soak.py: {self.name}: status {process.returncode}")


def soak(options, kind, transport, program, folder):
    """Returns whether the memory of no process grew."""
    with Run(options, kind, transport, program, folder) as run:
        run.read_to(FIRST)
        before = run.memory()
        run.read_to(options.steps - PIPED)
        after = run.memory()
        run.end()
    pairs = list(zip(before, after, strict=True))
    texts = (f"{a / 2**20:.1f} -> {b / 2**20:.1f}" for a, b in pairs)
    isFlat = all(b <= LIMIT * a for a, b in pairs)
    print(
        f"{run.name}: {options.steps} steps, MiB after {FIRST} and at the end: "
        f"{', '.join(texts)}{'' if isFlat else ': grows'}",
        flush=True,
    )
    return isFlat


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tools", type=pathlib.Path, required=True)
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--mpirun", help="its path, to run over MPI too")
    parser.add_argument("--steps", type=int, default=20000)
    options = parser.parse_args()
    if options.steps < FIRST + 2 * PIPED:
        parser.error(f"expected at least {FIRST + 2 * PIPED} steps")
    transports = ["in-process", *["mpi"] * bool(options.mpirun), "tcp"]
    flat = []
    for kind, description in DESCRIPTIONS.items():
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            source, program = folder / "soak.mlir", folder / "program"
            source.write_text(description)
            subprocess.run(
                [options.tools / "chimera-compile", source, "-o", program], check=True
            )
            flat += [soak(options, kind, each, program, folder) for each in transports]
    sys.exit(0 if all(flat) else 1)


if __name__ == "__main__":
    main()
