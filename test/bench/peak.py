#!/usr/bin/env python3
# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs a command, appends to a file a line with the most bytes of memory that its
process had resident, and ends as the command ended.

    test/bench/peak.py FILE COMMAND…
"""

import os
import signal
import subprocess
import sys


def main():
    file, *command = sys.argv[1:]
    process = subprocess.Popen(command)
    signal.signal(signal.SIGTERM, lambda *_: process.terminate())
    _, status, used = os.wait4(process.pid, 0)
    # One write, so that lines of processes that end together stay whole.
    with open(file, "a") as peaks:
        peaks.write(f"{used.ru_maxrss * 1024}\n")
    code = os.waitstatus_to_exitcode(status)
    sys.exit(code if code >= 0 else 128 - code)


if __name__ == "__main__":
    main()
