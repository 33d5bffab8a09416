#!/usr/bin/env python3
# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kills or stops a rank that trains on a GPU. The other ranks must end within 5 s:
after the kill or, if the rank was stopped, after the timeout. One of them must name the
rank and report the state of all ranks."""

import argparse
import json
import pathlib
import re
import signal
import sys
import time

import launch

SECONDS = 5
# A rank may start later than the first rank by at most this time.
TIMEOUT = 15


def disturb(options, each, victim, how):
    """Sends the signal `how` to a rank. Returns the seconds until the other ranks had
    ended, and their output."""
    # fmt: off
    processes = launch.start(
        [options.run, options.programs / each["program"], "--device", "cuda",
         "--data", options.programs / "text", "--steps", 1000000, "--timeout",
         TIMEOUT, "--quiet", "--evaluate-samples", 0], each["ranks"])
    # fmt: on
    time.sleep(options.after)
    ended = [process for process in processes if process.poll() is not None]
    if ended:
        return None, launch.finish(processes, 1)[0]
    processes[victim].send_signal(how)
    begin = time.monotonic()
    others = [each for rank, each in enumerate(processes) if rank != victim]
    limit = SECONDS + (TIMEOUT if how == signal.SIGSTOP else 0)
    while any(each.poll() is None for each in others):
        if time.monotonic() - begin > 4 * limit:
            break
        time.sleep(0.01)
    took = time.monotonic() - begin
    processes[victim].kill()
    return took, launch.finish(processes, 1)[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", required=True, help="chimera-run")
    parser.add_argument("--programs", type=pathlib.Path, required=True)
    parser.add_argument("--after", type=float, default=20, help="seconds to train")
    options = parser.parse_args()
    each = json.loads((options.programs / "models.json").read_text())[0]
    is_well = True
    for how in (signal.SIGKILL, signal.SIGSTOP):
        limit = SECONDS + (TIMEOUT if how == signal.SIGSTOP else 0)
        for victim in range(each["ranks"]):
            took, text = disturb(options, each, victim, how)
            names = re.search(rf"rank {victim} \(worker \d+\)", text)
            explained = names and text.count("the ranks at that moment:") == 1
            good = took is not None and took <= limit and explained
            is_well = is_well and good
            print(
                f"{how.name} of rank {victim}: "
                + ("it ended before" if took is None else f"others ended in {took:.2f} s")
                + (", one report" if explained else f", expected one report:\n{text}")
            )
    sys.exit(0 if is_well else "a killed rank is not explained in time")


if __name__ == "__main__":
    main()
