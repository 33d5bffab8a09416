#!/usr/bin/env python3
# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kills training while it writes checkpoints, and resumes it. The final weights must be
those of an undisturbed run, bit by bit.

usage: resume_kills.py --tools BIN [--mpirun MPIRUN] [--torchrun TORCHRUN] [--kills 3]
                       [--every-call 80]

With --kills N, a run is killed N times at random moments, and resumed each time. With
--every-call N, a run is killed at every N-th system call that writes, syncs or renames
a part of a checkpoint (KillAtCall.cpp).
"""

import os
import random
import re
import shutil
import signal
import subprocess
import time
import unittest

from job import ENVIRONMENT, PATIENCE, Job, send
from torchrun_jobs import TorchrunJobs
from trainings import OPTIONS, RANKS, STEPS, Trainings, parse


class ResumeKills(Trainings):
    def test_kills_at_random_moments(self):
        """SIGKILL of one rank, of all ranks, of mpirun, and of torchrun, three times each.
        The killed jobs have so many steps that no kill can come too late. Then the
        training is resumed and ends with the next multiple of 60 steps."""
        generator = random.Random(7)
        victims = ["threads"]
        if OPTIONS.mpirun:
            victims += ["rank", "mpirun", "all"]
        if OPTIONS.torchrun:
            victims += ["torchrun"]
        for kill in range(OPTIONS.kills):
            victim = victims[kill % len(victims)]
            with self.subTest(kill=kill, victim=victim):
                shutil.rmtree(self.kept, ignore_errors=True)
                self.kill(victim, generator)
                reached = max((int(name[5:]) for name in os.listdir(self.kept)
                               if re.fullmatch(r"step-\d+", name)), default=0)
                steps = (reached // 60 + 1) * 60
                saved = self.folder / "saved"
                self.train("chimera", "--steps", steps, "--checkpoint", self.kept,
                           "--checkpoint-every", 1, "--resume", self.kept, "--save",
                           saved)
                self.assertEqual(saved.read_bytes(),
                                 self.uninterrupted("chimera", steps=steps).read_bytes())
                names = os.listdir(self.kept)
                self.assertFalse([name for name in names if "partial" in name])

    def kill(self, victim, generator):
        """Starts the job and kills it at a random step, and so twice more."""
        for _ in range(3):
            if victim == "torchrun":
                self.kill_torchrun(generator)
            else:
                self.kill_job(victim, generator)

    def kill_job(self, victim, generator):
        """Kills ranks that are threads, or ranks of mpirun, or mpirun."""
        ranks = 0 if victim == "threads" else 4
        with Job(OPTIONS.tools / "chimera-run", self.shared / "chimera", ranks,
                 *self.command("chimera", "--steps", 10**8, "--checkpoint",
                               self.kept, "--checkpoint-every", 1, "--resume",
                               self.kept)[2:], mpirun_waits=1) as job:
            job.wait_for_steps()
            time.sleep(generator.random() * 0.3)
            if victim == "rank":
                pids = [job.ranks[generator.randrange(4)]]
            elif victim == "all":
                pids = list(job.ranks.values())
            else:
                pids = [job.process.pid]
            for pid in pids:
                send(pid, signal.SIGKILL)
            job.end()
            self.assertNotEqual(job.process.returncode, 0)

    def kill_torchrun(self, generator):
        """Kills torchrun at a random step, and its ranks a random time later."""
        arguments = self.command("chimera", "--steps", 10**8)[2:]
        with TorchrunJobs(self.shared / "chimera", 1, self.kept, *arguments,
                          every=1) as job:
            job.wait_for_text("^step ")
            time.sleep(generator.random() * 0.3)
            job.kill_torchrun(and_ranks_after=generator.random() * 0.3)

    def test_kills_at_every_call(self):
        """A kill before each call that changes files of a checkpoint: of all ranks, or
        of one rank of a job."""
        if not OPTIONS.every_call:
            self.skipTest("no --every-call")
        self.kill_at_calls([], {}, OPTIONS.every_call, 100)
        if not OPTIONS.mpirun:
            return
        job = [OPTIONS.mpirun, "-n", str(RANKS["chimera"]), "--oversubscribe"]
        for rank in range(0, RANKS["chimera"], 3):
            with self.subTest(rank=rank):
                self.kill_at_calls(job, {"KILL_RANK": str(rank)}, 2 * OPTIONS.every_call,
                                   20)

    def kill_at_calls(self, launcher, more, every, least):
        """Kills a run at every `every`-th call, of which there must be more than
        `least`."""
        library = OPTIONS.tools / "kill-at-call.so"
        expected = self.uninterrupted("chimera").read_bytes()
        counts = self.folder / "count"
        arguments = ["--checkpoint", self.kept, "--resume", self.kept,
                     "--checkpoint-every", 5, "--keep", 1]
        environment = dict(ENVIRONMENT, LD_PRELOAD=str(library),
                           KILL_IN_FOLDER=str(self.kept), **more)

        def killed_at(call):
            return subprocess.run(
                [*launcher, *self.command("chimera", "--steps", STEPS, *arguments)],
                capture_output=True, text=True, timeout=PATIENCE,
                env=environment | {"KILL_AT_CALL": str(call),
                                   "KILL_COUNT": str(counts)})

        shutil.rmtree(self.kept, ignore_errors=True)
        self.assertEqual(killed_at(10**9).returncode, 0)
        calls = int(counts.read_text())
        self.assertGreater(calls, least)
        kills = 0
        chosen = range(1, calls + 1, every)
        for call in chosen:
            shutil.rmtree(self.kept, ignore_errors=True)
            # Threads of ranks write in another order each time. So the last calls may
            # not come.
            status = killed_at(call).returncode
            if not launcher:
                self.assertIn(status, (-signal.SIGKILL, 0))
            kills += status != 0
            saved = self.folder / "saved"
            self.train("chimera", "--steps", STEPS, *arguments, "--save", saved)
            self.assertEqual(saved.read_bytes(), expected, f"killed at call {call}")
        self.assertGreater(kills, 0.9 * len(chosen))
        of = f" of rank {more['KILL_RANK']}" if more else ""
        print(f"{calls} calls{of}, killed at {kills} of them.", flush=True)


if __name__ == "__main__":
    unittest.main(argv=parse())
