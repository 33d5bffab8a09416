#!/usr/bin/env python3
# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Stops runs with checkpoints by signals, and asks for checkpoints by SIGUSR2. A run that
resumes must have the weights of a run without signals.

usage: resume_signals.py --tools BIN [--mpirun MPIRUN]
"""

import os
import re
import shutil
import signal
import subprocess
import unittest

from job import APART, Job, TcpJob
from trainings import OPTIONS, RANKS, Trainings, parse


def may_unshare():
    return subprocess.run([*APART, "true"], capture_output=True).returncode == 0


class ResumeSignals(Trainings):
    def test_signals(self):
        whole = self.folder / "whole"
        for over in ["threads", "sequential"] + ["mpi"] * (OPTIONS.mpirun is not None):
            for number in (signal.SIGUSR1, signal.SIGTERM, signal.SIGINT):
                with self.subTest(over, signal=number.name):
                    shutil.rmtree(self.kept, ignore_errors=True)
                    self.check_signal(over, number, whole)

    def check_signal(self, over, number, whole):
        ranks = 4 if over == "mpi" else 0
        # mpirun forwards SIGINT as SIGTERM.
        if ranks and number == signal.SIGINT:
            return
        more = ["--sequential"] if over == "sequential" else []
        # The signal comes to a rank and not from mpirun, which would not wait so long.
        more += ["--grace", "60"] if ranks else []
        stopped_weights = self.folder / "stopped"
        stopped_weights.unlink(missing_ok=True)
        more += ["--save", stopped_weights, "--evaluate-samples", 1]
        with Job(OPTIONS.tools / "chimera-run", self.shared / "chimera", ranks,
                 *self.command("chimera", "--steps", 10**8, "--checkpoint", self.kept,
                               *more)[2:]) as job:
            job.wait_for_steps()
            os.kill(job.ranks[2] if ranks else job.process.pid, number)
            output, errors, *_ = job.end()
        stopped = re.search(rf"^stopped by {number.name} after step (\d+) of",
                            output, re.MULTILINE)
        self.assertTrue(stopped, output + errors)
        isAsked = number == signal.SIGUSR1
        if not ranks:
            self.assertEqual(job.process.returncode, 0 if isAsked else 128 + number)
        step = int(stopped[1])
        self.assertEqual(
            [name for name in os.listdir(self.kept) if name != ".lock"],
            [f"step-{step:08}"], errors)
        # The checkpoint has the weights, so they are saved only if that was asked for.
        self.assertEqual(stopped_weights.exists(), isAsked)
        self.assertFalse(stopped_weights.with_suffix(".last-finite").exists())
        self.assertEqual("no evaluation, because steps are left: --resume "
                         f"{self.kept} continues\n" in output, isAsked, output)
        if not isAsked:
            self.assertIn(f"ended by {number.name}; --resume {self.kept} continues\n",
                          errors)
        steps = step + 3
        self.train("chimera", "--steps", steps, "--resume", self.kept, "--save",
                   self.folder / "saved", over="threads")
        self.train("chimera", "--steps", steps, "--save", whole)
        if over == "sequential":
            self.assert_close(self.folder / "saved", whole)
        else:
            self.assertEqual((self.folder / "saved").read_bytes(), whole.read_bytes())

    def start(self, program, over, *arguments):
        """A job that trains for a long time."""
        more = ["--sequential"] if over == "sequential" else []
        arguments = self.command(program, "--steps", 10**8, *arguments, *more)[2:]
        of = (OPTIONS.tools / "chimera-run", self.shared / program)
        if over in ("tcp", "containers"):
            return TcpJob(*of, RANKS[program], *arguments, apart=over == "containers")
        return Job(*of, RANKS[program] if over == "mpi" else 0, *arguments)

    def test_checkpoints_on_request(self):
        """After SIGUSR2 to one rank, the run writes a checkpoint and goes on."""
        for program, over in (
                ("chimera", "threads"), ("chimera", "sequential"), ("chimera", "tcp"),
                ("chimera", "containers"), ("chimera", "mpi"), ("pipedream", "threads"),
                ("pipedream-2bw", "tcp"), ("idle", "threads"), ("idle", "tcp")):
            if (over == "mpi" and not OPTIONS.mpirun
                    or over == "containers" and not may_unshare()):
                continue
            with self.subTest(program=program, over=over):
                shutil.rmtree(self.kept, ignore_errors=True)
                self.check_request(program, over)

    def check_request(self, program, over):
        whole, saved = self.folder / "whole", self.folder / "saved"
        with self.start(program, over, "--checkpoint", self.kept, "--keep", 0, "--save",
                        whole) as job:
            job.wait_for_steps()
            victim = job.ranks[RANKS[program] - 1] if job.ranks else job.process.pid
            for _ in range(2):
                os.kill(victim, signal.SIGUSR2)
                job.wait_for_line("checkpoint ")
            os.kill(victim, signal.SIGUSR1)
            output, errors, *_ = job.end()
        if over != "containers":  # whose ranks cannot be watched
            # On a busy machine, ranks say that they wait for others to start.
            self.assertEqual([line for line in errors.splitlines()
                              if line and "still waiting" not in line], [])
        steps = [int(name[5:]) for name in sorted(os.listdir(self.kept))
                 if name != ".lock"]
        self.assertIn(f"stopped by SIGUSR1 after step {steps[-1]} of", output)
        self.assertEqual(len(steps), 3)
        for step in steps[:2]:
            self.train(program, "--steps", steps[-1], "--resume",
                       self.kept / f"step-{step:08}", "--save", saved,
                       over="sequential" if over == "sequential" else "threads")
            # With another number of steps before a checkpoint, a schedule without a
            # flush would give other weights.
            if step == steps[1] or "pipedream" not in program:
                self.assertEqual(saved.read_bytes(), whole.read_bytes())

    def test_requests_without_a_folder(self):
        for over in ["threads", "sequential"] + ["mpi"] * (OPTIONS.mpirun is not None):
            with self.subTest(over), self.start("chimera", over) as job:
                job.wait_for_steps()
                ranks = list(job.ranks.values()) or [job.process.pid]
                os.kill(ranks[-1], signal.SIGUSR2)
                self.assertEqual(  # after an empty line
                    job.process.stderr.readline() + job.process.stderr.readline(),
                    "\nchimera-run: SIGUSR2: this run "
                    "writes no checkpoint, because --checkpoint is not given. It goes "
                    "on\n")
                os.kill(ranks[0], signal.SIGUSR2)
                os.kill(ranks[0], signal.SIGUSR1)
                output, errors, *_ = job.end()
                self.assertIn("stopped by SIGUSR1 after step", output)
                self.assertNotIn("SIGUSR2", errors)


if __name__ == "__main__":
    unittest.main(argv=parse())
