#!/usr/bin/env python3
# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares the peak bytes of each rank with the bytes that the program states. The
bytes of stashes, whose tensors the allocator counts, must be exactly equal. The total
with the arena, which the runtime allocates at once, must agree within 10 %. Runs four
schedules, all types, with and without dropout, with the built-in GPT-2 and with
exported models (if a Python has torch and numpy). Also checks that recomputation lowers
the bytes of stashes. In short form, the schedules take other options in turn. With
--full, each schedule has all of them.

Also compares the peak resident memory of a run's processes with the stated peaks, over
each transport. The run is GPipe with long messages to a rank that is slow to receive
them. It is compared with the same program with short messages."""

import argparse
import json
import pathlib
import subprocess

from exporting import PYTHON, check_each, export
from forks import restart_with
from grid import run
from job import ENVIRONMENT, tcp_environments
from numerics import Checks

# A script that writes the peak memory of a process after the process has ended.
PEAK = pathlib.Path(__file__).parents[1] / "bench/peak.py"
HALVING = '"chimera", {concatenation = "halving"}'
DESCRIPTION = """
chimera.model @model {model}
chimera.pipeline @train of @model stages(4) micro_batches(4)
    schedule({schedule}) micro_batch_size({samples}) {options}
"""
GPT2 = "gpt2 layers(4) heads(4) width(64) context(64) vocabulary(256) dropout({dropout})"
F64, BF16 = "weight_type(f64)", "activation_type(bf16)"
ALL_BF16 = "weight_type(bf16)"
SCHEDULES = ('"chimera"', '"gpipe"', '"1f1b"', HALVING)
OPTIONS = (
    ("1.0e-1", ""),
    ("1.0e-1", "recompute(all)"),
    ("0.0", f"{F64}"),
    ("0.0", "split_backward"),
    ("1.0e-1", f"{F64} split_backward recompute([0, 2] fused)"),
    ("1.0e-1", f"{F64} split_backward"),
    ("0.0", BF16),
    ("1.0e-1", f"{BF16} split_backward"),
    ("1.0e-1", f"{ALL_BF16} split_backward"),
)
# Models of examples/models with their arguments, and options for runs.
EXPORTED = (
    ("llama", "layers=4 heads=4 groups=2 width=64 context=64"),
    ("convolution", "layers=4 width=64 context=64"),
    # The backward of the last layer computes the loss.
    ("gpt2", "layers=4 heads=4 width=32 context=64 vocabulary=4096"),
    # A mask of tokens, and pairs of sentences.
    ("bert", "layers=4 heads=4 width=64 context=64", "--mask=256", "--pairs=257,258,259"),
    ("vit", "layers=4 heads=4 width=64 patch=4 size=32"),
)

# One package serves each of these sizes of micro-batches and types.
SIZES = (
    (1, '"1f1b"', "split_backward"),
    (3, '"1f1b"', ""),
    (3, '"1f1b"', BF16),
    (3, '"1f1b"', f"{BF16} split_backward"),
    (8, '"1f1b"', "split_backward"),
    (8, '"1f1b"', f"{F64} split_backward"),
)
HALVES = (8, HALVING, "")

# A forward takes so long on the second rank that the first rank could send all 24
# messages of a step before the second rank receives one.
SLOW = """
chimera.pipeline @slow stages(2) micro_batches(24) schedule("gpipe") time_unit(ns)
    receive_window(1) {{
  chimera.stage 0 cost <forward = 1000, backward = 1000>
    bytes <weights = 8, optimizer = 16, stash = 8, boundary = {boundary}>
  chimera.stage 1 cost <forward = 40000000, backward = 1000>
    bytes <weights = 8, optimizer = 16, stash = 8, boundary = {boundary}>
}}
"""
SHORT, LONG = 4096, 16 << 20
# Further bytes that the allocators, the threads and the transport of a process may use.
# Open MPI uses most of them. Over TCP a rank keeps 128 KiB for each other rank.
MORE = 16 << 20


def stashes_of(worker):
    """The largest sum of stash bytes after any instruction of a program's worker."""
    sizes = [
        buffer["bytes"] if "stash" in buffer["kind"] else 0 for buffer in worker["buffers"]
    ]
    most = live = 0
    for instruction in worker["instructions"]:
        live += sum(sizes[buffer] for buffer in instruction["results"])
        live -= sum(sizes[buffer] for buffer in instruction["operands"])
        most = max(most, live)
    return most


def images(folder):
    """Options for chimera-run with the data of the vision transformer. Needs numpy."""
    import numpy

    fields = {
        "pixels": numpy.zeros((160, 3, 32, 32), numpy.float32),
        "classes": numpy.arange(160) % 10,
    }
    for field, values in fields.items():
        numpy.save(folder / f"{field}.npy", values)
        yield f"--data={field}={folder / field}.npy"


def measure(checks, options, folder, name, description, *more):
    """Compiles and runs a description, with `more` options. Compares each rank's bytes
    with the bytes that the program states. Returns the peak bytes of each rank's
    stashes."""
    source, program, log = (folder / f for f in ("d.mlir", "program", "log"))
    source.write_text(description)
    run(options.tools / "chimera-compile", source, "-o", program)
    run(
        options.tools / "chimera-run", program, "--steps", 2, "--quiet",
        "--evaluate-samples", 0, "--log", log, *more,
    )  # fmt: skip
    ranks = json.loads(log.read_text().splitlines()[-1])["summary"]["ranks"]
    dump = json.loads(run(options.tools / "chimera-translate", "--program-to-json", program))
    for rank, worker in zip(ranks, dump["workers"], strict=True):
        measured, stated = rank["stash_bytes"], stashes_of(worker)
        ratio = (rank["arena_bytes"] + measured) / rank["stated_peak_bytes"]
        checks.check(
            measured == stated > 0 and 0.9 <= ratio <= 1.1,
            f"{name} rank {rank['rank']}: {measured} bytes of stashes, stated "
            f"{stated}; with the arena {ratio:.3f} of the stated peak",
        )
    return [rank["stash_bytes"] for rank in ranks]


def text(options):
    """Options for chimera-run with the data of models of tokens."""
    return ["--data", options.data, "--tokens", "bytes"]


def options_of(schedule, full):
    """The options with which a schedule runs: the first two, and all or some others."""
    turn = SCHEDULES.index(schedule)
    return OPTIONS[:2] + (OPTIONS[2:] if full else OPTIONS[2 + turn :: len(SCHEDULES)])


def built_in(options, folder, schedule):
    checks, whole = Checks(), None
    for dropout, more in options_of(schedule, options.full):
        stashes = measure(
            checks, options, folder, f"{schedule} dropout {dropout} {more or 'whole'}",
            DESCRIPTION.format(
                model=GPT2.format(dropout=dropout), schedule=schedule, options=more,
                samples=4,
            ),
            *text(options),
        )  # fmt: skip
        whole = whole or stashes
        if more == "recompute(all)":
            # Recomputation must reduce the stashes of every rank that held several.
            checks.check(
                sum(stashes) < 0.6 * sum(whole)
                and all(a <= b for a, b in zip(stashes, whole, strict=True)),
                f"{schedule} recomputed: stashes {stashes} instead of {whole}",
            )
    return checks.lines, checks.failed


def exported(options, folder, model, arguments, *more):
    checks, package = Checks(), folder / "package"
    export(package, model, f"{arguments} samples=2")
    data = [*images(folder)] if model == "vit" else text(options)
    # The buffers of halves of the small convolution net do not fill the arena.
    halves = [HALVES] if model != "convolution" else []
    for samples, schedule, clauses in [*SIZES, *halves]:
        measure(
            checks, options, folder,
            f"exported {model}, {schedule}, {samples} samples, {clauses or 'whole'}",
            DESCRIPTION.format(
                model=f'exported("{package}")', schedule=schedule, options=clauses,
                samples=samples,
            ),
            "--load", package / "values.safetensors", *data, *more,
        )  # fmt: skip
    return checks.lines, checks.failed


def resident(options, folder, transport, boundary):
    """(peak resident bytes, stated peak bytes) of each process of a run."""
    source, program, log, peaks = (folder / f for f in ("s.mlir", "slow", "log", "peaks"))
    source.write_text(SLOW.format(boundary=boundary))
    run(options.tools / "chimera-compile", source, "-o", program)
    # fmt: off
    command = [PEAK, peaks, options.tools / "chimera-run", program, "--stages",
               "synthetic", "--unit-ns", 1, "--steps", 2, "--quiet", "--log", log,
               "--transport", transport]
    # fmt: on
    environments = [ENVIRONMENT]
    if transport == "tcp":
        environments = tcp_environments(2)
    elif transport == "mpi":
        command = [options.mpirun, "-n", 2, "--oversubscribe", *command]
    command = [str(word) for word in command]
    processes = [subprocess.Popen(command, env=each) for each in environments]
    if any([process.wait() for process in processes]):
        raise RuntimeError(f"{transport}: a run failed")
    ranks = json.loads(log.read_text().splitlines()[-1])["summary"]["ranks"]
    stated = [rank["stated_peak_bytes"] for rank in ranks]
    measured = sorted(map(int, peaks.read_text().split()))
    peaks.unlink()
    return measured, [sum(stated)] if len(measured) == 1 else sorted(stated)


def over(options, folder, transport):
    checks = Checks()
    base, least = resident(options, folder, transport, SHORT)
    measured, stated = resident(options, folder, transport, LONG)
    for process in range(len(base)):
        more = measured[process] - base[process]
        allowed = stated[process] - least[process] + MORE
        checks.check(
            0 < more <= allowed,
            f"{transport} process {process}: with long messages {more >> 20} MiB more "
            f"resident, at most {allowed >> 20}",
        )
    return checks.lines, checks.failed


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tools", type=pathlib.Path, required=True)
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--python", default=PYTHON)
    parser.add_argument("--mpirun", help="its path, to measure over MPI too")
    parser.add_argument("--full", action="store_true", help="all options with each schedule")
    options = parser.parse_args()
    cases = [(built_in, schedule) for schedule in SCHEDULES]
    if restart_with(options.python, "torch", "numpy"):
        cases += [(exported, *model) for model in EXPORTED]
    for transport in ("in-process", *["mpi"] * bool(options.mpirun), "tcp"):
        cases.append((over, transport))
    check_each(lambda folder, case: case[0](options, folder, *case[1:]), cases)


if __name__ == "__main__":
    main()
