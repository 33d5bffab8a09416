#!/usr/bin/env python3
# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Starts chimera-run as one process, whose ranks are threads, or as a process for
each rank. These need no launcher. Both may share a GPU."""

import os
import socket
import subprocess
import sys

SECONDS = 180


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def start(command, ranks):
    """The processes: with no `ranks`, one for all of them."""
    place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    if ranks:
        place |= {"WORLD_SIZE": str(ranks), "LOCAL_WORLD_SIZE": str(ranks)}
    return [
        subprocess.Popen(
            [str(word) for word in command],
            env=os.environ | place | ({"RANK": str(rank)} if ranks else {}),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(ranks or 1)
    ]


def finish(processes, seconds=SECONDS):
    """What they wrote, together, and whether all ended well."""
    texts = []
    for process in processes:
        try:
            texts.append(process.communicate(timeout=seconds)[0])
        except subprocess.TimeoutExpired:
            process.kill()
            texts.append(process.communicate()[0] + f"\nkilled after {seconds} s\n")
    return "".join(texts), all(process.returncode == 0 for process in processes)


def run(command, ranks=0):
    return finish(start(command, ranks))


def main():
    """launch.py RANKS COMMAND…: a process for each rank."""
    text, is_well = run(sys.argv[2:], int(sys.argv[1]))
    sys.stdout.write(text)
    sys.exit(0 if is_well else 1)


if __name__ == "__main__":
    main()
