#!/usr/bin/env python3
# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs examples/torchrun.sh: torchrun must start all ranks again after one was killed,
and the run must resume and end with the weights of an undisturbed run. Also with two
torchruns, as on two hosts, whose counts of restarts may differ. slurm.py runs the job
script for Slurm.

usage: jobs.py --tools BIN --torchrun TORCHRUN
"""

import os
import re
import signal
import unittest

from torchrun_jobs import TorchrunJobs
from trainings import OPTIONS, Trainings, parse


class Jobs(Trainings):
    def job(self, hosts, *arguments, **how):
        arguments = self.command("chimera", *arguments)[2:]
        return TorchrunJobs(self.shared / "chimera", hosts, self.kept, *arguments, **how)

    def check_restarts(self, hosts, victims):
        """The job has so many steps that no kill can come too late. SIGUSR1 ends it."""
        saved = self.folder / "saved"
        with self.job(hosts, "--steps", 10**8, "--save", saved) as job:
            for victim in victims:
                job.wait_for_checkpoint()
                before = len(job.attempts())
                os.kill(job.wait_for_ranks()[victim], signal.SIGKILL)
                job.wait_for(lambda: len(job.attempts()) > before, "a resume")
            job.wait_for_checkpoint()
            os.kill(job.wait_for_ranks()[0], signal.SIGUSR1)
            statuses = job.end()
            self.assertEqual(statuses, [0] * hosts, job.text())
            self.assertIn(f"no checkpoint in {self.kept} yet", job.text())
            stopped = re.search(r"^stopped by SIGUSR1 after step (\d+) of", job.text(),
                                re.MULTILINE)
            self.assertTrue(stopped, job.text())
        self.assertEqual(
            saved.read_bytes(),
            self.uninterrupted("chimera", steps=int(stopped[1])).read_bytes())

    def test_torchrun_starts_killed_ranks_again(self):
        self.check_restarts(1, [2, 0])

    def test_two_torchruns(self):
        self.check_restarts(2, [3, 0])

    def test_no_restarts_left(self):
        with self.job(1, "--steps", 10**8, restarts=0) as job:
            job.wait_for_text("^checkpoint ")
            os.kill(job.wait_for_ranks()[1], signal.SIGKILL)
            self.assertEqual(job.end(), [1], job.text())
            self.assertRegex(job.text(), r"rank 1 \(worker 1\), process \d+, died")

    def test_a_killed_torchrun(self):
        """The next job resumes what the killed jobs left."""
        for _ in range(3):
            with self.job(1, "--steps", 10**8) as job:
                job.wait_for_text("^checkpoint ")
                job.kill_torchrun()
        newest = sorted(name for name in os.listdir(self.kept)
                        if re.fullmatch(r"step-\d+", name))[-1]
        steps = int(newest.removeprefix("step-")) + 5
        saved = self.folder / "saved"
        with self.job(1, "--steps", steps, "--save", saved) as job:
            self.assertEqual(job.end(), [0], job.text())
            self.assertIn(f"resumes from {self.kept}/{newest}", job.text())
        self.assertEqual(saved.read_bytes(),
                         self.uninterrupted("chimera", steps=steps).read_bytes())

    def test_the_end_of_torchrun(self):
        """torchrun passes SIGTERM on. The ranks save, and the script continues."""
        saved = self.folder / "saved"
        with self.job(1, "--steps", 10**8) as job:
            job.wait_for_text("^step ")
            job.torchruns[0].terminate()
            job.end()
            stopped = re.search(r"^stopped by SIGTERM after step (\d+)", job.text(),
                                re.MULTILINE)
            self.assertTrue(stopped, job.text())
        steps = int(stopped[1]) + 5
        with self.job(1, "--steps", steps, "--save", saved) as job:
            self.assertEqual(job.end(), [0], job.text())
            self.assertIn(f"after {stopped[1]} steps", job.text())
        self.assertEqual(saved.read_bytes(),
                         self.uninterrupted("chimera", steps=steps).read_bytes())


if __name__ == "__main__":
    unittest.main(argv=parse())
