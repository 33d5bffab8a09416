#!/usr/bin/env python3
# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs the programs of programs.py on GPUs with exact stages. The digests of their
weights must equal the digests of one device. The ranks are threads of one process, or
processes. Several ranks may share a GPU."""

import argparse
import json
import pathlib
import re
import sys

import launch

DIGEST = re.compile(r"digest of the weights (\w+)")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", required=True, help="chimera-run")
    parser.add_argument("--programs", type=pathlib.Path, required=True)
    parser.add_argument("--processes", action="store_true", help="a process a rank")
    parser.add_argument("--every", type=int, default=1, help="one of so many programs")
    parser.add_argument("--only", default="", help="those with this in their name")
    options = parser.parse_args()
    every = json.loads((options.programs / "programs.json").read_text())
    failed = ran = 0
    for each in every[:: options.every]:
        if options.only not in each["program"]:
            continue
        # fmt: off
        command = [options.run, options.programs / each["program"], "--device",
                   "cuda", "--stages", "exact", "--steps", each["steps"],
                   "--check-replicas", "--timeout", launch.TIMEOUT]
        # fmt: on
        text, is_well = launch.run(command, options.processes and each["ranks"])
        digest = DIGEST.search(text)
        ran += 1
        if not is_well or not digest or digest[1] != each["digest"]:
            failed += 1
            print(
                f"{each['program']}: expected the digest {each['digest']}, got:\n"
                f"{each['description']}{text}"
            )
    if failed or not ran:
        sys.exit(f"{failed} of {ran} programs failed")
    print(f"{ran} programs give on GPUs what they give on one device")


if __name__ == "__main__":
    main()
