#!/usr/bin/env python3
# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs a command and appends the peak resident bytes of its process to a file, as a
line. Ends with the command's status.

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
    # A single write, so that lines of processes that end together are not mixed.
    with open(file, "a") as peaks:
        peaks.write(f"{used.ru_maxrss * 1024}\n")
    code = os.waitstatus_to_exitcode(status)
    sys.exit(code if code >= 0 else 128 - code)


if __name__ == "__main__":
    main()
