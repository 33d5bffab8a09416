#!/usr/bin/env python3
# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calibrates (`chimera-run --calibrate --device cuda`) on the software GPU. The ranks
are threads, and the stages are synthetic. The compiler and the planner must accept the
machine. Then checks which options are refused. The measured times are those of the
software GPU."""

import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import calibrate
import grid
from job import ENVIRONMENT, PATIENCE, tcp_environments

RANKS = 2
# In ns; at most 100 GFLOP/s then. A forward and a backward sleep for 0.1 s, because on a
# busy machine each sleep may take 50 ms longer.
UNIT = 1e-2
SYNTHETIC = ["--stages", "synthetic", "--unit-ns", UNIT]
MODEL = """
chimera.model @m gpt2 layers(2) heads(2) width(64) context(32) vocabulary(256)
"""


def check(args, folder, run):
    file = folder / "gpus.mlir"
    output = grid.run(
        run, "--calibrate", file, "--ranks", RANKS, "--device", "cuda", *SYNTHETIC
    )
    text = calibrate.check_machine(args, file, output, RANKS)
    assert f"// {RANKS} ranks, threads of one process, on GPUs" in text, text
    assert "memory(1024 MiB)" in text and "node_" not in text, text
    speed = float(re.search(r'speed\("([\d.]+) GFLOP/s"\)', text)[1])
    assert 10 < speed <= 100, text
    question = folder / "plan.mlir"
    question.write_text(text + MODEL)
    print(grid.run(args.tools / "chimera-plan", question, "--batch", 8))


def refuse(run, needle, *arguments, gpus=RANKS, job=()):
    processes = [
        subprocess.Popen(
            [str(word) for word in (run, *arguments)], stderr=subprocess.PIPE,
            text=True, env={**place, "CHIMERA_STAND_IN_GPUS": str(gpus)},
        )
        for place in job or [ENVIRONMENT]
    ]  # fmt: skip
    errors = "".join(process.communicate(timeout=PATIENCE)[1] for process in processes)
    assert all(process.returncode == 1 for process in processes), errors
    assert needle in errors, (needle, errors)


def check_errors(folder, run):
    file = folder / "refused.mlir"
    common = ["--calibrate", file, "--device", "cuda"]
    refuse(run, "--progress on is for hosts",
           *common, "--ranks", RANKS, "--progress", "on")  # fmt: skip
    none = "expected a GPU that CUDA can use, got none"
    refuse(run, none, *common, "--ranks", RANKS, *SYNTHETIC, gpus=0)
    refuse(run, none, *common, *SYNTHETIC, gpus=0, job=tcp_environments(RANKS, by_hand=True))
    assert not file.exists()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tools", type=pathlib.Path, required=True)
    args = parser.parse_args()
    run = args.tools / "software-gpu" / "chimera-run"
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        with concurrent.futures.ThreadPoolExecutor() as pool:
            refused = pool.submit(check_errors, folder, run)
            check(args, folder, run)
            refused.result()


if __name__ == "__main__":
    os.environ.update(ENVIRONMENT, CHIMERA_STAND_IN_GPUS=str(RANKS))
    sys.exit(main())
