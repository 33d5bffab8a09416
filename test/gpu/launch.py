#!/usr/bin/env python3
# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Starts chimera-run as one process whose ranks are threads, or as one process per
rank. Needs no launcher. In both cases, several ranks may share a GPU."""

import os
import pathlib
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
from job import free_port  # noqa: E402

# After so many seconds a program counts as hung, and after TIMEOUT seconds the wait of a
# rank for another one (--timeout). On a busy machine both take many times as long as on an
# idle one.
SECONDS = 900
TIMEOUT = 300


def start(command, ranks):
    """Starts one process per rank. If `ranks` is 0, starts one process that runs all
    ranks."""
    place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    if ranks:
        place |= {"WORLD_SIZE": str(ranks), "LOCAL_WORLD_SIZE": str(ranks)}
    processes = []
    for rank in range(ranks or 1):
        # Write the output to files. A process stops when it writes to a full pipe that
        # nobody reads.
        output = tempfile.TemporaryFile("w+")
        processes.append(
            subprocess.Popen(
                [str(word) for word in command],
                env=os.environ | place | ({"RANK": str(rank)} if ranks else {}),
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        )
        processes[-1].output = output
    return processes


def finish(processes, seconds=SECONDS):
    """Returns the output of all processes, and whether all ended successfully within
    `seconds`."""
    texts = []
    end = time.monotonic() + seconds
    for process in processes:
        killed = ""
        try:
            process.wait(max(0, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            killed = f"\nkilled after {seconds} s\n"
        process.output.seek(0)
        texts.append(process.output.read() + killed)
    return "".join(texts), all(process.returncode == 0 for process in processes)


def run(command, ranks=0):
    return finish(start(command, ranks))


def main():
    """launch.py RANKS COMMAND…: runs the command in one process per rank."""
    text, is_well = run(sys.argv[2:], int(sys.argv[1]))
    sys.stdout.write(text)
    sys.exit(0 if is_well else 1)


if __name__ == "__main__":
    main()
