#!/usr/bin/env python3
# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prints the project's targets for GPUs and the measured values, one line each:

- forward and backward of GPT-2's stages, compared with PyTorch, eager and compiled;
- the same stages with dropout, compared with those without;
- AdamW: the memory bandwidth that it reaches, as a part of a copy's;
- the time per instruction if stages compute almost nothing;
- the time of an update that checks that its gradients are finite (as with --save),
  compared with the time of one that does not;
- the time of a step and the peak bytes of a rank, compared with the predictions from
  the profile of another run and from the program.

Times are medians by the clock of the GPU, except for the time per instruction, which is
that of a whole run. If a row cannot be measured, it says why. Writes everything to --to
as JSON. A missed target is no failure, because this is a measurement.
"""

import argparse
import json
import pathlib
import platform
import subprocess
import sys
import tempfile

import launch

# The targets for forward and backward together, relative to PyTorch and to no dropout.
EAGER, COMPILED, DROPOUT = 1.0, 0.95, 1.1
# The bytes per weight that AdamW reads and writes. It reads the gradient, the weight
# and two averages, and writes the weight and the averages. If stages compute in
# bfloat16, it then reads the weight and writes a copy of it.
TRAFFIC, TRAFFIC_OF_COPY = 28, 6
ADAMW = 0.85
PREDICTED = 0.03


class Table:
    def __init__(self, to, machine):
        self.to, self.machine, self.rows = to, machine, []

    def add(self, what, measured, unit, reference, target, is_met):
        self.rows.append(
            {"what": what, "measured": measured, "unit": unit,
             "reference": reference, "target": target, "is_met": is_met}
        )  # fmt: skip
        ratio = f"{measured / reference:9.3f}" if reference else " " * 9
        met = {True: "met", False: "MISSED", None: ""}[is_met]
        against = f"{reference:12.4g}" if reference else " " * 12
        print(
            f"{what:<58}{measured:12.4g} {unit:<5}{against}{ratio}  {target:<9}{met}",
            flush=True,
        )
        self.write()

    def skip(self, what, reason):
        self.rows.append({"what": what, "skipped": str(reason)})
        print(f"{what:<58}skipped: {reason}", flush=True)
        self.write()

    def write(self):
        """Writes all rows so far, because a time limit may end the script before the
        end."""
        if self.to:
            self.to.write_text(
                json.dumps({"machine": self.machine, "rows": self.rows}, indent=1)
                + "\n"
            )


def execute(*command):
    """Runs a command and returns its output. If it fails, raises an error with the last
    line of its error output."""
    result = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True
    )
    if result.returncode != 0:
        lines = (result.stderr or result.stdout).strip().splitlines() or ["nothing"]
        raise RuntimeError(f"{pathlib.Path(command[0]).name}: {lines[-1]}")
    return result.stdout


def name_of(each):
    return f"{each['model']} {each['type']}"


def own_times(options, each, *more):
    return json.loads(
        execute(options.bin / "stage_times", options.programs / each["program"],
                "--device", options.device, "--repeats", options.repeats, *more)
    )  # fmt: skip


def add_stages(table, what, ours, reference, target):
    """Adds a row for each stage, with its forward and backward together."""
    for number, (a, b) in enumerate(
        zip(ours["stages"], reference["stages"], strict=True)
    ):
        milliseconds = a["forward_ms"] + a["backward_ms"]
        expected = b["forward_ms"] + b["backward_ms"]
        table.add(f"{what}, stage {number}", milliseconds, "ms", expected,
                  f"<= {target}", milliseconds <= target * expected)  # fmt: skip


def stage_rows(table, options, each):
    """Adds the rows about the stages of a program. Returns the times of the stages."""
    pytorch = [
        options.python, pathlib.Path(__file__).parent / "stage_times_pytorch.py",
        "--programs", options.programs, "--program", each["program"],
        "--device", "cuda" if options.device == "cuda" else "cpu",
        "--repeats", options.repeats,
    ]  # fmt: skip
    first = None
    for how, more, theirs, target in (
        ("eager", [], [], EAGER),
        ("compiled", ["--graphs"], ["--compile"], COMPILED),
    ):
        what = f"{name_of(each)}, {'graphs' if more else 'no graphs'} against {how}"
        if more and options.device != "cuda":
            table.skip(what, "there are graphs on GPUs only")
            continue
        try:
            ours = own_times(options, each, *more)
            first = first or ours
            reference = json.loads(execute(*pytorch, *theirs))
        except RuntimeError as error:
            table.skip(what, error)
            continue
        add_stages(table, what, ours, reference, target)
    return first


def dropout_rows(table, options, each, without):
    what = f"{name_of(each)}, dropout against none"
    if not without:
        table.skip(what, "the stages without dropout were not timed")
        return
    try:
        add_stages(table, what, own_times(options, each), without, DROPOUT)
    except RuntimeError as error:
        table.skip(what, error)


def adamw_rows(table, each, times):
    for stage in times["stages"]:
        what = f"{name_of(each)}, AdamW, stage {stage['stage']}"
        if "copy_bytes_per_second" not in times:
            table.skip(what, "only a GPU's copies are timed")
            continue
        bytes_ = TRAFFIC + (TRAFFIC_OF_COPY if each["type"] == "bfloat16" else 0)
        rate = stage["parameters"] * bytes_ / stage["optimizer_ms"] * 1e3
        whole = times["copy_bytes_per_second"]
        table.add(what, rate / 1e9, "GB/s", whole / 1e9, f">= {ADAMW}",
                  rate >= ADAMW * whole)  # fmt: skip


def train(options, program, *more, profiled=False, saved=False):
    """Trains. Returns the summary, and the profile if `profiled`. If `saved`, updates
    check that their gradients are finite, as in every run with --save."""
    with tempfile.TemporaryDirectory() as folder:
        log, profile, save = (pathlib.Path(folder) / name for name in
                              ("log", "profile", "weights.safetensors"))  # fmt: skip
        wanted = ["--profile", profile] if profiled else []
        wanted += ["--save", save] if saved else []
        # fmt: off
        execute(options.bin / "chimera-run", program, "--data",
                options.programs / "text", "--tokens", "bytes", "--device",
                options.device, "--steps",
                options.steps, "--evaluate-samples", 0, "--quiet", "--log", log,
                "--timeout", launch.TIMEOUT, *wanted, *more)
        # fmt: on
        summary = json.loads(log.read_text().splitlines()[-1])["summary"]
        return summary, json.loads(profile.read_text()) if profiled else None


def instruction_rows(table, options, each):
    for more in ([], ["--cuda-graphs"]):
        what = f"an instruction, {'graphs' if more else 'no graphs'}"
        if more and options.device != "cuda":
            table.skip(what, "there are graphs on GPUs only")
            continue
        try:
            summary, _ = train(options, options.programs / each["program"], *more)
        except RuntimeError as error:
            table.skip(what, error)
            continue
        most = max(rank["instructions"] for rank in summary["ranks"])
        table.add(what, summary["seconds"] / most * 1e6, "us", None, "", None)


def predicted_rows(table, options, each):
    """Adds the rows about predictions for a program with one rank. Its step is the sum
    of its instructions. For several ranks, test/bench/predict.py tests the
    predictions."""
    name = name_of(each)
    program = options.programs / each["program"]
    try:
        _, profile = train(options, program, profiled=True)
        summary, again = train(options, program, profiled=True)
        _, checked = train(options, program, profiled=True, saved=True)
    except RuntimeError as error:
        table.skip(f"{name}, a step", error)
        return
    (stage,) = profile["stages"]
    batches = each["micro_batches"]
    predicted = sum(
        batches * stage[action]["median"]
        for action in ("load", "forward", "backward")
        if action in stage
    )
    predicted += stage["optimizer_step"]["median"]
    measured = again["steps"]["later"]["median"]
    table.add(f"{name}, a step, predicted", measured / 1e6, "ms", predicted / 1e6,
              f"{PREDICTED:.0%}", abs(measured / predicted - 1) <= PREDICTED)  # fmt: skip
    checked, unchecked = (
        of["stages"][0]["optimizer_step"]["median"] for of in (checked, again)
    )
    table.add(f"{name}, an update that checks its gradients", checked / 1e6, "ms",
              unchecked / 1e6, "", None)  # fmt: skip
    (rank,) = summary["ranks"]
    stated, peak = rank["stated_peak_bytes"], rank["peak_bytes"]
    table.add(f"{name}, bytes at the peak, stated", peak / 2**20, "MiB",
              stated / 2**20, f"{PREDICTED:.0%}",
              abs(peak / stated - 1) <= PREDICTED)  # fmt: skip
    if "device_bytes" in rank:
        table.add(f"{name}, bytes of the GPU beside the plan",
                  rank["unplanned_bytes"] / 2**20, "MiB", None, "", None)  # fmt: skip


def machine(options):
    found = {"host": platform.machine(), "python": platform.python_version()}
    query = ("name", "driver_version", "memory.total", "clocks.sm", "clocks.max.sm")
    try:
        found["gpus"] = execute(
            "nvidia-smi", f"--query-gpu={','.join(query)}", "--format=csv,noheader"
        ).strip().splitlines()  # fmt: skip
    except (OSError, RuntimeError):
        found["gpus"] = []
    try:
        found["torch"] = execute(
            options.python, "-c", "import torch; print(torch.__version__)"
        ).strip()
    except (OSError, RuntimeError):
        found["torch"] = "none"
    return found


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--programs", type=pathlib.Path, required=True)
    parser.add_argument("--to", type=pathlib.Path, help="a file")
    parser.add_argument("--device", default="cuda", choices=("cuda", "host"))
    parser.add_argument("--models", nargs="*", help="those that begin so")
    parser.add_argument("--python", default=sys.executable, help="one with torch")
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--steps", type=int, default=20)
    options = parser.parse_args()
    every = json.loads((options.programs / "table.json").read_text())
    wanted = options.models or ["GPT-2", "instructions"]
    table = Table(options.to, machine(options))
    print(json.dumps(table.machine))
    print(f"{'':<58}{'measured':>12} {'':<5}{'against':>12}{'ratio':>9}  target")
    times = {}  # of a model's stages without dropout
    for each in every:
        if not name_of(each).startswith(tuple(wanted)):
            continue
        if each["model"] == "instructions":
            instruction_rows(table, options, each)
        elif "-step-" in each["program"]:
            predicted_rows(table, options, each)
        elif "-dropout-" in each["program"]:
            dropout_rows(table, options, each, times.get(name_of(each)))
        elif found := stage_rows(table, options, each):
            times[name_of(each)] = found
            adamw_rows(table, each, found)
    if not any("measured" in row for row in table.rows):
        sys.exit("nothing could be measured")


if __name__ == "__main__":
    main()
