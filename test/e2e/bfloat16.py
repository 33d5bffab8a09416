#!/usr/bin/env python3
# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trains a small GPT-2 whose stages compute in bfloat16, with weights of float32 or of
bfloat16. The schedules have one pipeline, two pipelines, or stages that read older
weights. Compares the result with

- `chimera-run --sequential`: bit by bit if the schedule sums gradients in the order of
  the micro-batches, otherwise by the norm of the first step's gradients;
- the same program over MPI, bit by bit, if --mpirun is given;
- the independent PyTorch script reference.py in bfloat16, by the norm of the first
  step's gradients, if a Python with torch is given;
- float32, from which it must differ.

Then trains with slow bfloat16. The run must print one note that says so.
"""

import argparse
import os
import pathlib
import tempfile

from exporting import check_each
from forks import restart_with_torch, run_script
from grid import run
from numerics import Checks, losses, same_bits

HERE = pathlib.Path(__file__).resolve().parent
DESCRIPTION = """
chimera.model @tiny gpt2 layers(4) heads(2) width(32) context(16)
    vocabulary(256) dropout({dropout}) {tied}
chimera.pipeline @train of @tiny stages(3) micro_batches(6)
    schedule({schedule}) micro_batch_size(2) {types} {options}
"""
MIXED, ALL = "activation_type(bf16)", "weight_type(bf16)"
# For each case: the types, the schedule, the dropout, options, whether the head is tied,
# and whether gradients are summed in the order of the micro-batches.
CASES = [
    (MIXED, "1f1b", 0.0, "", "", True),
    (MIXED, "gpipe", 0.1, "recompute(all)", "", True),
    (MIXED, "pipedream-2bw", 0.1, "", "", True),
    (MIXED, "pipedream", 0.0, "", "", True),
    (MIXED, "chimera", 0.1, "", "", False),
    (MIXED, "1f1b", 0.0, "split_backward", "tied", False),
    (ALL, "1f1b", 0.0, "", "", True),
    (ALL, "chimera", 0.1, "", "", False),
    (ALL, "interleaved-1f1b", 0.0, "split_backward", "tied", False),
]
# The model is so large that matrix products take most of the time.
SLOW = """
chimera.model @slow gpt2 layers(2) heads(2) width(256) context(128) vocabulary(256)
chimera.pipeline @train of @slow stages(2) micro_batches(2) schedule("1f1b")
    micro_batch_size(1) activation_type(bf16)
"""
# Tolerance for gradients computed in bfloat16 (8 bits of precision), relative to the
# norm of all gradients.
TOLERANCE = 1e-2


class Training:
    def __init__(self, folder, name, steps, launcher, args, program, *options):
        self.weights = folder / f"{name}.weights"
        self.gradients = folder / f"{name}.gradients"
        log = folder / f"{name}.log"
        # fmt: off
        run(*launcher, args.tools / "chimera-run", program, "--data", args.data,
            "--steps", steps, "--threads", 1, "--quiet", "--timeout", 300,
            "--save", self.weights, "--save-gradients", self.gradients,
            "--log", log, *options)
        # fmt: on
        self.losses = losses(log)
        self.held_out = losses(log, "held_out_loss")


def check_case(args, folder, narrow, schedule, dropout, options, tied, in_order):
    checks = Checks()
    case = f"{narrow} {schedule} {options} {tied} dropout {dropout}"
    programs = {}
    for types in ("", narrow):
        source = folder / f"program{len(types)}.mlir"
        workers = 3 if "pipedream" in schedule or schedule in ("1f1b", "gpipe") else 2
        stages = {"chimera": 2, "interleaved-1f1b": 4}.get(schedule, 3)
        source.write_text(
            DESCRIPTION.format(
                schedule=f'"{schedule}"', dropout=dropout, tied=tied, types=types,
                options=f"{options} workers({workers})" if stages > 3 else options,
            ).replace("stages(3)", f"stages({stages})")
        )  # fmt: skip
        programs[types] = source.with_suffix(".chimera")
        run(args.tools / "chimera-compile", source, "-o", programs[types])
    wide, program = programs.values()

    def train(name, steps, *options, launcher=(), of=program):
        return Training(folder, name, steps, launcher, args, of, *options)

    threads = train("threads", 3, "--check-replicas")
    if in_order:
        sequential = train("sequential", 3, "--sequential")
        same_bits(checks, f"{case} against sequential", threads, sequential)
    if args.mpirun:
        launcher = [args.mpirun, "--oversubscribe", "-n", workers]
        over_mpi = train("mpi", 3, "--check-replicas", launcher=launcher)
        same_bits(checks, f"{case} over MPI", over_mpi, threads)
    one = train("one", 1)
    float32 = train("float32", 1, of=wide)
    near = abs(one.losses[0] - float32.losses[0]) < 2e-3 * float32.losses[0]
    checks.check(
        near and one.losses != float32.losses,
        f"{case}: loss {one.losses[0]:.6f}, in float32 {float32.losses[0]:.6f}",
    )
    if args.torch_python:
        reference(checks, args, folder, case, program, one, source.read_text())
    return checks.lines, checks.failed


def reference(checks, args, folder, case, program, ours, model):
    dump, start = folder / "program.json", folder / "start"
    dump.write_text(
        run(args.tools / "chimera-translate", "--program-to-json", program)
    )
    # fmt: off
    run(args.tools / "chimera-run", program, "--data", args.data, "--sequential",
        "--steps", 0, "--quiet", "--evaluate-samples", 0, "--save", start)
    output = run_script(
        HERE / "reference.py", "--model", model, "--program-json", dump,
        "--data", args.data, "--steps", 1, "--weights", start,
        "--compare-gradients", ours.gradients, "--by-norm", "--tolerance", TOLERANCE)
    # fmt: on
    reports = [line for line in output.splitlines() if "tensors" in line]
    checks.check(len(reports) == 1, f"{case} against PyTorch: {'; '.join(reports)}")


def check_note(args):
    """Forbids oneDNN, which computes in bfloat16, to use instructions that are newer
    than AVX2. Then bfloat16 takes many times as long as float32 on every x86
    processor."""
    with tempfile.TemporaryDirectory() as folder:
        return check_note_in(args, pathlib.Path(folder))


def check_note_in(args, folder):
    checks = Checks()
    source, program = folder / "slow.mlir", folder / "slow"
    source.write_text(SLOW)
    run(args.tools / "chimera-compile", source, "-o", program)
    launchers = {"threads": []}
    if args.mpirun:
        launchers["MPI"] = [args.mpirun, "--oversubscribe", "-n", 2]
    for name, launcher in launchers.items():
        for options, expected in ([], 1), (["--quiet"], 0):
            # fmt: off
            output = run("env", "ONEDNN_MAX_CPU_ISA=AVX2", *launcher,
                         args.tools / "chimera-run", program, "--data", args.data,
                         "--steps", 1, "--threads", 1, "--timeout", 300, *options)
            # fmt: on
            notes = output.count("times as long in bfloat16 as in float32")
            checks.check(
                notes == expected,
                f"slow bfloat16 over {name} {' '.join(options)}: {notes} notes",
            )
    return checks.lines, checks.failed


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tools", type=pathlib.Path, required=True)
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--torch-python", help="a Python that has torch")
    parser.add_argument("--mpirun", help="also run over MPI")
    args = parser.parse_args()
    restart_with_torch(args.torch_python)
    check_each(
        lambda folder, case: check_case(args, folder, *case), CASES,
        at_end=lambda: check_note(args),
    )  # fmt: skip


if __name__ == "__main__":
    os.environ.setdefault("OMPI_ALLOW_RUN_AS_ROOT", "1")
    os.environ.setdefault("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
    main()
