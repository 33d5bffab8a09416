#!/usr/bin/env python3
# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks that tools/setup.sh shows the progress of apt and pip: all of it in a
terminal, and otherwise at most one line every ten seconds. Nothing is installed,
because scripts replace apt-get, dpkg-query and pip. Exits non-zero if a check fails."""

import os
import pathlib
import pty
import re
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
# With PAUSE=0.5 these scripts take 14 s, so setup.sh must print a line after ten seconds. On
# a busy machine it may begin to read later. So they go on until the file SEEN exists, for at
# most ten minutes.
APT = """#!/bin/bash
case "$*" in *update*) exit ;; esac
echo "Reading package lists..."
for i in {0..28}; do
  echo "dlstatus:$i:$i.1234:Retrieving file $i of 28 (1min 2s remaining)"
  sleep $PAUSE
done
turns=0
until [ -z "$SEEN" ] || [ -e "$SEEN" ] || ((turns++ >= 1200)); do
  echo "dlstatus:28:28.1234:Retrieving file 28 of 28 (1min 2s remaining)"
  sleep $PAUSE
done
[ ! -e "$0.fails" ] || { echo "E: no such package" >&2; exit 100; }
"""
PIP = """#!/bin/bash
case "$*" in
--version) echo "pip 25.3 from here"; exit ;;
*"--progress-bar raw"*) ;;
*) echo "pip's own bar"; exit ;;
esac
echo "Collecting torch"
echo "  Downloading torch-2.0-cp311.whl (530.6 MB)"
for i in {0..28}; do
  echo "Progress ${i}000000 of 28000000"
  sleep $PAUSE
done
turns=0
until [ -z "$SEEN" ] || [ -e "$SEEN" ] || ((turns++ >= 1200)); do
  echo "Progress 28000000 of 28000000"
  sleep $PAUSE
done
echo "Installing collected packages: torch"
[ ! -e "$0.fails" ] || { echo "ERROR: no space" >&2; exit 1; }
"""


def make(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def in_terminal(command, environment):
    """Runs the command in a pseudo-terminal. Returns its status and output."""
    main, inner = pty.openpty()
    with subprocess.Popen(command, stdout=inner, stderr=inner, env=environment) as process:
        os.close(inner)
        output = b""
        while True:
            try:
                part = os.read(main, 4096)
            except OSError:  # the terminal is closed
                break
            if not part:
                break
            output += part
    os.close(main)
    return process.returncode, output.decode()


def main():
    failed = 0

    def expect(what, good, output):
        nonlocal failed
        print(f"ok   {what}" if good else f"FAIL {what}\n{output}", flush=True)
        failed += not good

    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        make(folder / "bin/apt-get", APT)
        make(folder / "bin/id", "#!/bin/sh\necho 0\n")
        make(folder / "venv/bin/pip", PIP)
        environment = {**os.environ, "PATH": f"{folder}/bin:{os.environ['PATH']}"}
        environment.pop("CHIMERA_TORCH_DIR", None)
        environment |= {"PAUSE": "0", "SEEN": ""}
        apt = [ROOT / "tools/setup.sh", "--compiler"]
        pip = [ROOT / "tools/setup.sh", "--runtime", "--cuda", "--venv", folder / "venv"]

        def run(command):
            done = subprocess.run(
                command, capture_output=True, text=True, env=environment
            )
            return done.returncode, done.stdout + done.stderr

        def is_sparse(command, line):
            """Whether the command prints a line that matches `line`, at most every ten
            seconds. Also returns the output."""
            seen, output = folder / "seen", ""
            seen.unlink(missing_ok=True)
            started = time.monotonic()
            with subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                env={**environment, "PAUSE": "0.5", "SEEN": str(seen)},
            ) as process:  # fmt: skip
                for text in process.stdout:
                    output += text
                    if re.search(line, text):
                        seen.touch()
            # The script counts whole seconds, so the first interval may be shorter.
            most = (time.monotonic() - started + 1) / 10
            count = len(re.findall(line, output, re.MULTILINE))
            good = process.returncode == 0 and 1 <= count <= most
            return good and "Reading" not in output and "Progress" not in output, output

        def has(installed):
            make(folder / "bin/dpkg-query", f"#!/bin/sh\necho {installed}\n")

        has("")
        expect("apt in a log", *is_sparse(
            apt, r"^setup: \d+ %: Retrieving file \d+ of 28 \(1min 2s remaining\)$"
        ))  # fmt: skip
        status, output = in_terminal(apt, environment)
        expect("apt in a terminal", status == 0 and "\rsetup: 28 %: " in re.sub(
            "\x1b\\[K", "", output
        ) and output.count("Retrieving") == 29, output)  # fmt: skip
        (folder / "bin/apt-get.fails").touch()
        status, output = run(apt)
        expect("apt fails", status == 1 and "E: no such package" in output
               and "apt-get failed; its log is " in output, output)  # fmt: skip

        has("install ok installed")
        expect("pip in a log", *is_sparse(
            pip, r"^setup: \d+ of 28 MB of torch-2\.0-cp311\.whl$"
        ))  # fmt: skip
        (folder / "venv/.installed").unlink()
        status, output = in_terminal(pip, environment)
        expect("pip in a terminal", status == 0 and "pip's own bar" in output, output)
        (folder / "venv/.installed").unlink()
        (folder / "venv/bin/pip.fails").touch()
        status, output = run(pip)
        expect("pip fails", status == 1 and "ERROR: no space" in output
               and not (folder / "venv/.installed").exists(), output)  # fmt: skip
    sys.exit(f"{failed} checks failed" if failed else 0)


if __name__ == "__main__":
    main()
