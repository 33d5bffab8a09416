# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs a command whose standard output is a terminal with COLUMNS columns, and
prints its output: terminal.py COLUMNS COMMAND..."""

import fcntl
import os
import struct
import subprocess
import sys
import termios

ours, its = os.openpty()
fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 24, int(sys.argv[1]), 0, 0))
process = subprocess.Popen(sys.argv[2:], stdout=its)
os.close(its)
text = b""
try:
    while chunk := os.read(ours, 4096):
        text += chunk
except OSError:  # Linux's way to say that nobody writes any more.
    pass
sys.stdout.write(text.decode().replace("\r\n", "\n"))
sys.exit(process.wait())
