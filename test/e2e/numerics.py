#!/usr/bin/env python3
# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trains a small GPT-2 in float64 for five steps, with D stages and W copies, under the
schedules of the registry. The learning rate rises and falls, and gradients are clipped
unless the schedule has no flush. Backwards are whole, or split into input and weight
gradient, or a mixture of both. Compares the result with

- `chimera-run --sequential`: a run on one device, without a pipeline, with whole
  backwards, and with the older weights that a schedule without a flush reads;
- the independent PyTorch script reference.py, if a Python with torch is given (only with
  whole backwards);
- the same program on software GPUs, if --gpus is given, and without dropout as graphs:
  the first and the last run of a schedule, with --full each;
- the same program over MPI, bit by bit, if --mpirun is given. The first schedules run
  without options and with all of them, tied models without. Variants run only with
  fused recomputes. Exported models run with all options.

Also compares runs with recomputes with the same runs without, bit by bit. If --mpirun
is given, does the same with runs whose gradients are reduced early and in buckets.
--package trains an exported model instead, from its values. --order trains in the order
of a schedule file of PyTorch instead of the schedules of the registry. With --tied, the
first and the last stage share a matrix: the head multiplies by the token embedding.

All ranks also evaluate each run on held-out text: at the end and, if the schedule has a
flush, between steps.

The values of a rank must not take more bytes than its program says.

Weights and last-step gradients agree if in each tensor the largest difference is at
most 1e-10 * max(1, the largest element). Prints a line for each comparison and exits
non-zero if one fails.
"""

import argparse
import array
import json
import math
import os
import pathlib
import random
import re
import struct
import sys
import tempfile

import order_text
from forks import restart_with_torch, run_script
from grid import in_parallel, run

HERE = pathlib.Path(__file__).resolve().parent
STEPS = 5
EVERY = "--evaluate-every"
TOLERANCE = 1e-10
# Name: the schedule with its options, and the number of micro-batches per stage.
SCHEDULES = {
    "chimera": ('"chimera"', 1),
    "gpipe": ('"gpipe"', 1),
    "1f1b": ('"1f1b"', 1),
}
VARIANTS = {
    "chimera-direct": ('"chimera"', 2),
    "chimera-fine-tuned": ('"chimera", {concatenation = "fine-tuned-doubling"}', 2),
    "chimera-doubling": ('"chimera", {concatenation = "doubling"}', 2),
    "chimera-halving": ('"chimera", {concatenation = "halving"}', 2),
    "chimera-4-pipelines": ('"chimera", {pipelines = 4}', 1),
    "chimera-few": ('"chimera"', 1 / 2),
    "chimera-rest": ('"chimera"', 7 / 4),
    "chimera-all-pipelines": ('"chimera", {pipelines = STAGES}', 3 / 2),
    "1f1b-rest": ('"1f1b"', 7 / 4),
    "gpipe-few": ('"gpipe"', 1 / 2),
    "gems": ('"gems"', 1),
    "interleaved-1f1b": ('"interleaved-1f1b"', 1),
    "zb-v": ('"zb-v"', 1),
    "mixed-1f1b": ('"1f1b"', 2),
    "mixed-zb-v": ('"zb-v"', 1),
    "pipedream": ('"pipedream"', 2),
    "pipedream-2bw": ('"pipedream-2bw"', 2),
}
# The name of the schedule of --order.
GIVEN = "given"
# The schedules of --tied.
TIED = (
    "gpipe", "1f1b", "chimera", "chimera-4-pipelines", "gems",
    "interleaved-1f1b", "zb-v",
)  # fmt: skip
# The schedules with two stages per worker.
CHUNKED = {"interleaved-1f1b", "zb-v", "mixed-zb-v"}
# The orders of these schedules are given as text, with whole and split backwards.
MIXED = {"mixed-1f1b", "mixed-zb-v"}
# For some schedules, the number of stages must be a multiple of this number.
NEEDS_MULTIPLE = {"chimera-4-pipelines": 4, "chimera-all-pipelines": 2} | dict.fromkeys(
    CHUNKED, 2
)
# The schedules without a flush.
WITHOUT_FLUSH = {"pipedream", "pipedream-2bw"}
# The schedules that are also run with recomputes.
RECOMPUTED = (
    {"chimera-direct", "chimera-doubling", "chimera-halving", GIVEN}
    | CHUNKED | WITHOUT_FLUSH
) - MIXED  # fmt: skip
# Of the variants, only these are compared with PyTorch.
AGAINST_TORCH = (
    {"chimera-doubling", "chimera-halving"} | CHUNKED | MIXED | WITHOUT_FLUSH
)

# The model has eight layers, including embedding and head, so it can have eight stages.
TRAINING = "learning_rate(1.0e-2) lr_schedule(cosine) warmup(2) min_lr(2.0e-3)"
CLIPPED = "clip_norm(0.75)"
DROPOUT = "dropout(1.0e-1)"
MODEL = f"""
chimera.model @tiny gpt2 layers(6) heads(2) width(16) context(8)
    vocabulary(256) {DROPOUT} {{tied}}
"""
DESCRIPTION = """
{model}
chimera.training @training seed(7) {training}
chimera.pipeline @train of @tiny with @training stages({stages}) micro_batches({batches})
    {schedule} micro_batch_size(2) data_parallel({width})
    weight_type(f64) {options} {body}
"""


def read_tensors(path):
    data = path.read_bytes()
    (length,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8 : 8 + length])
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        kind = {"F64": "d", "F32": "f", "BF16": "f"}[entry["dtype"]]
        elements = data[begin:end]
        if entry["dtype"] == "BF16":  # each is the upper half of a float32
            elements = b"".join(
                b"\0\0" + elements[i : i + 2] for i in range(0, len(elements), 2)
            )
        tensors[name] = array.array(kind, elements)
    return tensors


def worst_difference(ours, theirs):
    if ours.keys() != theirs.keys():
        sys.exit(f"different tensors: {sorted(ours.keys() ^ theirs.keys())}")
    worst = 0.0
    for name, tensor in ours.items():
        scale = max(1.0, max(map(abs, tensor)))
        for a, b in zip(tensor, theirs[name], strict=True):
            difference = abs(a - b) / scale
            if math.isnan(difference):
                return math.inf
            worst = max(worst, difference)
    return worst


def losses(log, kind="loss"):
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    return [row[kind] for row in rows if kind in row and "step" in row]


class Training:
    """One training run: its weights, gradients and losses."""

    def __init__(self, folder, name, launcher, tools, program, data, *options,
                 steps=STEPS):  # fmt: skip
        self.weights = folder / f"{name}.weights"
        self.gradients = folder / f"{name}.gradients"
        log = folder / f"{name}.log"
        # fmt: off
        run(*launcher, tools / "chimera-run", program, "--data", data,
            "--steps", steps, "--threads", 1, "--quiet", "--timeout", 300,
            "--evaluate-samples", 1, "--save", self.weights,
            "--save-gradients", self.gradients, "--log", log, *options)
        # fmt: on
        self.losses = losses(log)
        self.held_out = losses(log, "held_out_loss")
        summary = json.loads(log.read_text().splitlines()[-1])["summary"]
        self.is_captured = summary.get("cuda_graphs", False)
        self.ranks = summary.get("ranks", [])  # empty for one device
        self.every = options[options.index(EVERY) + 1] if EVERY in options else 0


class Checks:
    def __init__(self):
        self.lines = []
        self.failed = 0

    def check(self, good, line):
        self.lines.append(f"{'ok  ' if good else 'FAIL'} {line}")
        self.failed += not good


def compare(checks, what, ours, theirs):
    for part in ("weights", "gradients"):
        worst = worst_difference(
            read_tensors(getattr(theirs, part)), read_tensors(getattr(ours, part))
        )
        checks.check(worst <= TOLERANCE, f"{what}: {part} differ by {worst:.2g}")
    evaluations = len(range(ours.every, STEPS, ours.every)) + 1 if ours.every else 1
    for of, count in (("losses", STEPS), ("held_out", evaluations)):
        own, other = getattr(ours, of), getattr(theirs, of)
        checks.check(
            len(own) == count
            and all(
                abs(a - b) <= TOLERANCE * max(1, abs(b))
                for a, b in zip(own, other, strict=True)
            ),
            f"{what}: {of} {own[0]:.6f} … {own[-1]:.6f}",
        )


def same_bits(checks, what, ours, theirs):
    for part in ("weights", "gradients"):
        equal = getattr(ours, part).read_bytes() == getattr(theirs, part).read_bytes()
        checks.check(equal, f"{what}: {part} to the last bit")
    equal = (ours.losses, ours.held_out) == (theirs.losses, theirs.held_out)
    checks.check(equal, f"{what}: losses to the last bit")


def check_peaks(checks, what, training):
    """Checks that the values of no rank take more bytes than its program says."""
    peaks = [(rank["peak_bytes"], rank["stated_peak_bytes"]) for rank in training.ranks]
    over = [f"{peak} for {stated}" for peak, stated in peaks if peak > stated]
    found = "; ".join(over) or "as stated"
    checks.check(peaks and not over, f"{what}: bytes of {len(peaks)} ranks {found}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tools", type=pathlib.Path, required=True)
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--stages", type=int, required=True)
    parser.add_argument("--width", type=int, required=True)
    parser.add_argument(
        "--variants", action="store_true", help="other schedules than the first three"
    )
    parser.add_argument(
        "--tied", action="store_true", help="a head tied to the token embedding"
    )
    parser.add_argument(
        "--package", type=pathlib.Path,
        help="of an exported model to train instead, in float64, for micro-batches "
        "of 2 samples and halves of them",
    )  # fmt: skip
    parser.add_argument(
        "--order", type=pathlib.Path, help="a schedule file of PyTorch with --stages stages"
    )
    parser.add_argument("--mask", help="chimera-run's, for --package")
    parser.add_argument("--pairs", help="likewise")
    parser.add_argument("--torch-python", help="a Python that has torch")
    parser.add_argument("--mpirun", help="also run over MPI")
    parser.add_argument("--gpus", action="store_true", help="also run on software GPUs")
    parser.add_argument("--full", action="store_true", help="each run on software GPUs")
    args = parser.parse_args()
    restart_with_torch(args.torch_python)
    schedules = [
        schedule
        for schedule in (
            (GIVEN,) if args.order
            else TIED if args.tied
            else VARIANTS if args.variants
            else SCHEDULES
        )
        if args.stages % NEEDS_MULTIPLE.get(schedule, 1) == 0
    ]
    failed = 0
    with tempfile.TemporaryDirectory() as name:

        def one(schedule):
            folder = pathlib.Path(name) / schedule
            folder.mkdir()
            return check_schedule(args, folder, schedule)

        for checks in in_parallel(one, schedules):
            print("\n".join(checks.lines), flush=True)
            failed += checks.failed
    sys.exit(f"{failed} comparisons failed" if failed else 0)


def option_lists(args, schedule):
    """The options of each run of a schedule: a list for whole and a list for split
    backwards. The runs of a list must be equal bit by bit."""
    lists = []
    # A given order says which backwards are split.
    for split in ("",) if args.order else ("", "split_backward"):
        more = [""]
        if schedule in RECOMPUTED:
            more.append("recompute(all)" if split else "recompute(all fused)")
        if args.mpirun and not args.variants:
            more.append("all_reduce(eager) bucket_bytes(4096)")
        lists.append([f"{split} {each}".strip() for each in more])
    return lists


def check_schedule(args, folder, schedule):
    checks = Checks()
    lists = option_lists(args, schedule)
    sequential = None
    for of_split in lists:
        kept = None
        for options in of_split:
            is_end = options in (lists[0][0], lists[-1][-1])
            sequential, threads = train(checks, args, folder, schedule, options, is_end,
                                        sequential, kept)  # fmt: skip
            kept = kept or threads
    return checks


def order_of(args, path):
    """The numbers of micro-batches and workers, and the body of a pipeline, of the order
    in --order."""
    run(args.tools / "chimera-show", args.order, "--description", path)
    head, body = re.search(
        r"chimera\.pipeline @order ([^{]*)(\{[^}]*\})", path.read_text()
    ).groups()
    batches, workers = (
        int(re.search(rf"{name}\((\d+)\)", head)[1])
        for name in ("micro_batches", "workers")
    )
    return batches, workers, body


def train(checks, args, folder, schedule, options, is_end, sequential, kept):
    """Trains with ranks as threads, and over MPI and on software GPUs as the head of this
    file says. `is_end`: this is the first or the last run of the schedule. Returns the
    sequential run, and the run with threads. The sequential run is made only if
    `sequential` is None. The run with threads must equal `kept`, if it is a run, bit by
    bit."""
    tied = "tied" if args.tied else ""
    case = f"{schedule} {options} D={args.stages} W={args.width} {tied}"
    name = "".join(filter(str.isalnum, schedule + options))
    source = folder / f"{name}.mlir"
    if args.order:
        clause = ""
        batches, workers, body = order_of(args, folder / "order.mlir")
    else:
        clause, factor = (SCHEDULES | VARIANTS)[schedule]
        clause = f"schedule({clause.replace('STAGES', str(args.stages))})"
        batches = max(1, int(factor * args.stages))
        workers = args.stages // (2 if schedule in CHUNKED else 1)
        body = ""
    source.write_text(
        DESCRIPTION.format(
            model=f'chimera.model @tiny exported("{args.package.resolve()}")'
            if args.package
            else MODEL.format(tied=tied),
            stages=args.stages,
            batches=batches,
            width=args.width,
            schedule=clause,
            body=body,
            options=f"workers({workers}) {options}",
            training=TRAINING
            if schedule in WITHOUT_FLUSH
            else f"{TRAINING} {CLIPPED}",
        )
    )
    if schedule in MIXED:
        text = order_text.written(args.tools, source.read_text(), source)
        source.write_text(order_text.mixed(text, random.Random(name)))
    program = folder / f"{name}.chimera"
    run(args.tools / "chimera-compile", source, "-o", program)
    common = (args.tools, program, args.data)
    values = args.package and args.package / "values.safetensors"
    loaded = ("--load", values) if values and values.exists() else ()
    loaded += ("--tokens", "bytes") if args.package else ()
    for option in ("mask", "pairs"):
        if value := getattr(args, option):
            loaded += (f"--{option}", value)
    if schedule not in WITHOUT_FLUSH:
        loaded += (EVERY, 2)
    if not sequential:
        sequential = Training(
            folder, f"{name}.sequential", [], *common, "--sequential", *loaded
        )
    checked = ("--check-replicas", *loaded)
    threads = Training(folder, f"{name}.threads", [], *common, *checked)
    check_peaks(checks, case, threads)
    if kept:
        same_bits(checks, f"{case} against the same without", threads, kept)
    else:
        compare(checks, f"{case} against sequential", threads, sequential)
    over_mpi = (
        "fused" in options
        or args.package
        or (schedule in CHUNKED | MIXED | {GIVEN} and not options)
        if args.variants or args.order
        else not options or (is_end and not args.tied)
    )
    if args.mpirun and over_mpi:
        ranks = workers * args.width
        launcher = [args.mpirun, "--oversubscribe", "-n", ranks]
        mpi = Training(folder, f"{name}.mpi", launcher, *common, *checked)
        same_bits(checks, f"{case} over MPI", mpi, threads)
    if args.gpus and (is_end or args.full):
        train_on_gpus(checks, args, case, source, workers * args.width, checked, threads,
                      captures=schedule not in WITHOUT_FLUSH)  # fmt: skip
    if args.torch_python and not options:
        if not args.variants or schedule in AGAINST_TORCH:
            reference(
                checks, args, folder, case, program, threads, MODEL.format(tied=tied)
            )
    return sequential, threads


def attention_drops(node):
    """Whether an attention in the JSON of a package drops probabilities. Such a package
    cannot run as graphs."""
    if isinstance(node, list):
        return any(map(attention_drops, node))
    if not isinstance(node, dict):
        return False
    if node.get("operator") == "chimera::attention":
        return node["arguments"][4]["numbers"] > [0]
    return any(map(attention_drops, node.values()))


def train_on_gpus(checks, args, case, source, ranks, options, expected, captures):
    """Trains the program of the file `source` on software GPUs, and compares the run with
    `expected`. If `captures`, also trains the program as graphs, without dropout in an
    attention."""
    folder, gpus = source.parent, args.tools / "software-gpu"
    launcher = ["env", f"CHIMERA_STAND_IN_GPUS={ranks}"]

    def training(source, *more):
        program = source.with_suffix(".gpus")
        run(args.tools / "chimera-compile", source, "--messages", "stream-per-device",
            "-o", program)  # fmt: skip
        name = source.stem + ".gpus" + "".join(more)
        return Training(folder, name, launcher, gpus, program, args.data, *options,
                        "--device", "cuda", *more)  # fmt: skip

    compare(checks, f"{case} on software GPUs", training(source), expected)
    package = json.loads((args.package / "model.json").read_text()) if args.package else {}
    if captures and not attention_drops(package):
        plain = folder / f"{source.stem}.plain.mlir"
        plain.write_text(source.read_text().replace(DROPOUT, ""))
        graphs = training(plain, "--cuda-graphs")
        checks.check(graphs.is_captured, f"{case} runs as graphs")
        same_bits(
            checks, f"{case} as graphs of software GPUs", graphs, training(plain)
        )


def reference(checks, args, folder, case, program, ours, model):
    """Compares the run `ours` with reference.py. `model` is the model, as in a
    description."""
    dump = folder / "program.json"
    dump.write_text(
        run(args.tools / "chimera-translate", "--program-to-json", program)
    )
    start = folder / "start"
    # fmt: off
    run(args.tools / "chimera-run", program, "--data", args.data, "--sequential",
        "--steps", 0, "--quiet", "--evaluate-samples", 0, "--save", start)
    output = run_script(
        HERE / "reference.py", "--model", model, "--program-json", dump,
        "--data", args.data, "--steps", STEPS, "--weights", start,
        "--compare", ours.weights, "--compare-gradients", ours.gradients)
    # fmt: on
    reports = [line for line in output.splitlines() if "tensors" in line]
    checks.check(len(reports) == 2, f"{case} against PyTorch: {'; '.join(reports)}")


if __name__ == "__main__":
    os.environ.setdefault("OMPI_ALLOW_RUN_AS_ROOT", "1")
    os.environ.setdefault("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
    main()
