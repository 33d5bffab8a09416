# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs of examples/torchrun.sh, for jobs.py and resume_kills.py."""

import os
import pathlib
import re
import signal
import subprocess
import tempfile
import time

from job import ENVIRONMENT, PATIENCE, free_port, rank_of, running, send, stat_of
from trainings import OPTIONS, RANKS

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

    def __init__(self, program, hosts, kept, *arguments, restarts=3, every=10):
        environment = dict(
            ENVIRONMENT, CHECKPOINTS=str(kept), CHECKPOINT_EVERY=str(every),
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
        self.output.close()

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

    def kill_torchrun(self, and_ranks_after=0):
        """Kills the only torchrun, which must not have ended before. Its ranks live on.
        Kills them `and_ranks_after` seconds later, as a scheduler does."""
        ranks = self.wait_for_ranks().values()
        self.torchruns[0].kill()
        if self.end() != [-signal.SIGKILL]:
            raise AssertionError("torchrun ended before it was killed\n" + self.text())
        time.sleep(and_ranks_after)
        for pid in ranks:
            send(pid, signal.SIGKILL)
        self.wait_for(lambda: not any(map(running, ranks)), "the end of killed ranks")

    def end(self):
        """Waits until all torchruns have ended. Returns their statuses."""
        return [torchrun.wait(timeout=PATIENCE) for torchrun in self.torchruns]
