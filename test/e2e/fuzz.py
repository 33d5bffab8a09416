#!/usr/bin/env python3
# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs the fuzzers of program files side by side. Their inputs are programs that the
compiler makes and, with --seconds, inputs that earlier runs found interesting. Prints
how many inputs each fuzzer tried. If an input fails, keeps it and prints its name. With
--coverage, then prints how many lines of the reader and the verifier were reached."""

import argparse
import json
import pathlib
import random
import re
import shutil
import subprocess
import sys
import time

import grid

FUZZERS = ("reader", "programs")
HEADER = 32
# Limits for one input. Larger inputs find nothing new. After TIMEOUT seconds an input
# counts as hung; without --seconds the machine may be busy.
LIMITS = ("-max_len=4194304", "-len_control=0", "-rss_limit_mb=4096",
          "-print_funcs=0", "-report_slow_units=60")
TIMEOUT, BUSY_TIMEOUT = 60, 600
# The files of the reader and the verifier. Code that writes files or computes the costs
# of layers is left out.
COVERED = re.compile(
    r"/runtime/(proof/\w+|program/(SharedBytes|File|BackwardPieces|Printable|Program))"
    r"\.(cpp|h)$"
)


def make_seeds(tools, folder, count):
    """Compiles programs and writes each one with a file header and, for the reader's
    fuzzer, without."""
    descriptions = list(grid.grid(3))
    random.Random(1).shuffle(descriptions)
    for fuzzer in FUZZERS:
        (folder / fuzzer).mkdir(parents=True, exist_ok=True)

    def compile_one(numbered):
        number, description = numbered
        program = folder / f"{number}.chimera"
        grid.compile_to(tools, description, program)
        content = program.read_bytes()
        (folder / "programs" / f"seed-{number}").write_bytes(content)
        (folder / "reader" / f"seed-{number}").write_bytes(content[HEADER:])
        program.unlink()

    list(grid.in_parallel(compile_one, enumerate(descriptions[:count])))


class Run:
    """A fuzzer that is running."""

    def __init__(self, options, fuzzer):
        self.fuzzer = fuzzer
        self.found = options.work / f"found-{fuzzer}-"
        self.log = options.work / f"{fuzzer}.log"
        self.profile = options.work / f"{fuzzer}.profraw"
        corpus = options.work / "corpus" / fuzzer
        corpus.mkdir(parents=True, exist_ok=True)
        for file in options.work.glob(f"{self.found.name}*"):
            file.unlink()
        limits = [f"-runs={options.runs}", f"-timeout={BUSY_TIMEOUT}"]
        if options.seconds:
            limits = [f"-max_total_time={options.seconds}", f"-timeout={TIMEOUT}"]
        with open(self.log, "w") as log:
            # fmt: off
            self.process = subprocess.Popen(
                [options.fuzzers / f"fuzz-{fuzzer}", *LIMITS, *limits,
                 f"-seed={options.seed}", f"-artifact_prefix={self.found}",
                 corpus, options.work / "seeds" / fuzzer],
                stdout=log, stderr=subprocess.STDOUT,
                env={"LLVM_PROFILE_FILE": str(self.profile),
                     "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1"})
            # fmt: on

    def end(self):
        """Waits until the fuzzer has ended by itself. Returns whether no input
        failed."""
        status = self.process.wait()
        text = self.log.read_text(errors="replace")
        counts = re.findall(rf"^fuzz-{self.fuzzer}: .*$", text, re.MULTILINE)
        if status == 0 and counts:
            print(counts[-1])
            return True
        lines = [each for each in text.splitlines() if not each.startswith("#")]
        print(f"fuzz-{self.fuzzer} ended with {status}:", *lines[-60:], sep="\n")
        for file in sorted(self.found.parent.glob(f"{self.found.name}*")):
            print(f"the input is {file}")
        return False


def report_coverage(options):
    merged = options.work / "all.profdata"
    raw = [options.work / f"{fuzzer}.profraw" for fuzzer in FUZZERS]
    subprocess.run(["llvm-profdata-19", "merge", "-o", merged, *raw], check=True)
    programs = [options.fuzzers / f"fuzz-{fuzzer}" for fuzzer in FUZZERS]
    # fmt: off
    text = subprocess.run(
        ["llvm-cov-19", "export", "-summary-only", f"-instr-profile={merged}",
         programs[0], "-object", programs[1]],
        check=True, stdout=subprocess.PIPE).stdout
    # fmt: on
    covered = lines = 0
    for file in json.loads(text)["data"][0]["files"]:
        if not COVERED.search(file["filename"]):
            continue
        count = file["summary"]["lines"]
        covered += count["covered"]
        lines += count["count"]
        name = pathlib.Path(file["filename"]).name
        print(f"{name:28} {count['covered']:5} of {count['count']:5} lines")
    share = 100 * covered / lines
    print(f"reader and verifier: {covered} of {lines} lines, {share:.1f} %")
    return share >= options.coverage


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tools", type=pathlib.Path, required=True)
    parser.add_argument("--fuzzers", type=pathlib.Path, required=True)
    # fmt: off
    parser.add_argument("--work", type=pathlib.Path, required=True,
                        help="a folder for seeds, corpus, logs and findings, "
                        "which is kept")
    parser.add_argument("--runs", type=int, default=500, help="inputs for each")
    parser.add_argument("--seconds", type=int, help="this long instead")
    parser.add_argument("--seeds", type=int, default=40, help="compiled programs")
    parser.add_argument("--seed", type=int, default=1, help="of all chances")
    parser.add_argument("--coverage", type=float, metavar="PERCENT",
                        help="fail where less lines are reached")
    # fmt: on
    options = parser.parse_args()
    for fuzzer in FUZZERS:
        if not (options.fuzzers / f"fuzz-{fuzzer}").exists():
            print(f"skipped: no fuzz-{fuzzer} in {options.fuzzers}: it needs clang")
            return 0
    # Remove the seeds of another version: the reader would only refuse them.
    shutil.rmtree(options.work / "seeds", ignore_errors=True)
    if not options.seconds:
        shutil.rmtree(options.work / "corpus", ignore_errors=True)
    make_seeds(options.tools, options.work / "seeds", options.seeds)
    runs = [Run(options, fuzzer) for fuzzer in FUZZERS]
    # Stop after the first failure.
    while all(each.process.poll() in (None, 0) for each in runs):
        if all(each.process.poll() == 0 for each in runs):
            break
        time.sleep(0.1)
    ended = [each for each in runs if each.process.poll() is not None]
    for each in runs:
        each.process.kill()
    good = all([each.end() for each in ended])
    if good and options.coverage is not None:
        good = report_coverage(options)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
