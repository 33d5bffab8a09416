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
import pathlib
import re
import signal
import subprocess
import tempfile
import time
import unittest

from job import ENVIRONMENT, PATIENCE, free_port, rank_of, send, stat_of
from trainings import OPTIONS, RANKS, Trainings, parse

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "examples" / "torchrun.sh"


def ranks_below(pids):
    """The processes of chimera-run, by rank, whose parents are the torchruns `pids`."""
    found = {}
    for entry in os.listdir("/proc"):
        stat = stat_of(entry) if entry.isdigit() else None
        if not stat or stat[0] == "Z" or stat[1] not in pids:
            continue
        try:
            with open(f"/proc/{entry}/comm") as name:
                if name.read() != "chimera-run\n":
                    continue
        except OSError:
            continue
        rank = rank_of(int(entry), b"RANK")
        if rank is not None:
            found[rank] = int(entry)
    return found


class TorchrunJobs:
    """A run of the script on this host, or on so many hosts that are this one."""

    def __init__(self, program, hosts, kept, *arguments, restarts=3):
        environment = dict(
            ENVIRONMENT, CHECKPOINTS=str(kept), CHECKPOINT_EVERY="10",
            RESTARTS=str(restarts), RANKS=str(RANKS[program.name] // hosts),
            PATH=f"{OPTIONS.tools}:{pathlib.Path(OPTIONS.torchrun).parent}:"
                 + os.environ["PATH"])
        if hosts > 1:
            # On a busy machine a torchrun may be late to start, and silent for a while.
            environment["TORCHRUN_OPTIONS"] = (
                f"--nnodes {hosts} --rdzv-backend c10d --rdzv-id test "
                f"--rdzv-endpoint 127.0.0.1:{free_port()} "
                f"--rdzv-conf read_timeout={PATIENCE},keep_alive_max_attempt=100")
        self.ranks_expected = RANKS[program.name]
        self.output = tempfile.TemporaryFile()
        self.torchruns = [
            subprocess.Popen([str(word) for word in (SCRIPT, program, *arguments)],
                             env=environment, stdout=self.output,
                             stderr=subprocess.STDOUT)
            for _ in range(hosts)]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        ranks = self.ranks()
        for torchrun in self.torchruns:
            torchrun.kill()
            torchrun.wait()
        for pid in ranks.values():
            send(pid, signal.SIGKILL)

    def ranks(self):
        return ranks_below([torchrun.pid for torchrun in self.torchruns])

    def text(self):
        # The job's processes write at this file's offset, so reading must not move it.
        file = self.output.fileno()
        return os.pread(file, os.fstat(file).st_size, 0).decode(errors="replace")

    def attempts(self):
        """The output of each attempt to start the ranks."""
        return re.split(r"^resumes from ", self.text(), flags=re.MULTILINE)

    def wait_for_checkpoint(self):
        """Waits until the newest attempt has written a checkpoint."""
        self.wait_for(
            lambda: re.search(r"^checkpoint ", self.attempts()[-1], re.MULTILINE),
            "the first checkpoint")

    def wait_for(self, is_true, what):
        begin = time.monotonic()
        while not is_true():
            if time.monotonic() - begin > PATIENCE:
                raise AssertionError(f"{what} took more than {PATIENCE} s\n"
                                     + self.text())
            time.sleep(0.05)

    def wait_for_ranks(self):
        self.wait_for(lambda: len(self.ranks()) == self.ranks_expected,
                      "the start of all ranks")
        return self.ranks()

    def wait_for_text(self, pattern):
        self.wait_for(lambda: re.search(pattern, self.text(), re.MULTILINE),
                      f"'{pattern}'")

    def end(self):
        """Waits until all torchruns have ended. Returns their statuses."""
        return [torchrun.wait(timeout=PATIENCE) for torchrun in self.torchruns]


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
        """After SIGKILL of torchrun, its ranks live on. A scheduler kills them too."""
        for _ in range(3):
            with self.job(1, "--steps", 10**8) as job:
                job.wait_for_text("^checkpoint ")
                ranks = job.wait_for_ranks()
                job.torchruns[0].kill()
                self.assertEqual(job.end(), [-signal.SIGKILL])
                for pid in ranks.values():
                    send(pid, signal.SIGKILL)
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
