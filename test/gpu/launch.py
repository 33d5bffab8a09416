#!/usr/bin/env python3
# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Starts chimera-run as one process, whose ranks are threads, or as one process
per rank. Needs no launcher. Ranks may share a GPU in both cases."""

import os
import socket
import subprocess
import sys
import tempfile
import time

SECONDS = 180


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def start(command, ranks):
    """Starts the processes. Without `ranks`, one process runs all ranks."""
    place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    if ranks:
        place |= {"WORLD_SIZE": str(ranks), "LOCAL_WORLD_SIZE": str(ranks)}
    processes = []
    for rank in range(ranks or 1):
        # A full pipe that nobody reads would stop its process, so use a file.
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
    """The processes' output together, and whether all ended successfully within
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
    """launch.py RANKS COMMAND…: one process per rank."""
    text, is_well = run(sys.argv[2:], int(sys.argv[1]))
    sys.stdout.write(text)
    sys.exit(0 if is_well else 1)


if __name__ == "__main__":
    main()
