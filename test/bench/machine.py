# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Helpers of the benchmarks: starting programs, and measuring the machine's other
load."""

import os
import pathlib
import resource
import subprocess
import sys
import time

TOOLS = pathlib.Path(__file__).resolve().parents[2] / "build/release/bin"

os.environ.setdefault("OMPI_ALLOW_RUN_AS_ROOT", "1")
os.environ.setdefault("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")


def mpirun(ranks):
    return ["mpirun", "--oversubscribe", "-n", ranks]


def execute(*command):
    """Runs a command and returns its output. If it fails, the script ends."""
    words = [str(word) for word in command]
    result = subprocess.run(words, capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"{' '.join(words)}:\n{result.stdout}{result.stderr}")
    return result


class OtherLoad:
    """Measures other load: `with OtherLoad() as load: …`. Afterwards `load.cores` is
    the mean number of cores that other processes kept busy. Other processes are all but
    this script and the processes that it started and waited for."""

    def __enter__(self):
        self.begin = time.perf_counter(), self._busy(), self._own()
        return self

    def __exit__(self, *_):
        begin, busy, own = self.begin
        others = (self._busy() - busy) - (self._own() - own)
        self.cores = max(0.0, others / (time.perf_counter() - begin))

    @staticmethod
    def _busy():
        with open("/proc/stat") as stat:
            fields = [int(field) for field in stat.readline().split()[1:9]]
        # Sum all times except idle time and waits for a disk. The sum includes time
        # that the host gave to other virtual machines.
        ticks = sum(fields) - fields[3] - fields[4]
        return ticks / os.sysconf("SC_CLK_TCK")

    @staticmethod
    def _own():
        return sum(
            usage.ru_utime + usage.ru_stime
            for usage in map(
                resource.getrusage,
                (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN),
            )
        )
