#!/usr/bin/env python3
# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares the step times that the compiler predicts for a GPU with measured ones, for
GPT-2 in two types, with several micro-batch sizes, with and without recomputation. The
predictions use profiles of programs in which each layer is a stage of its own, with
micro-batches of the smallest and of the largest size.

On a machine with a GPU, --run measures all programs and writes the results to --to. On
a machine with a compiler, --tools reads this file, predicts the steps, and prints the
predicted and the measured steps with the spread of the latter. These may be different
machines.
"""

import argparse
import json
import pathlib
import statistics
import sys
import tempfile

import launch

# There is one rank, so no links are needed. The speed of the device is in the profiles.
MACHINE = "chimera.machine @one devices(1) memory(80 GiB) profile({profiles})\n"


def execute(*command):
    output, is_well = launch.run(command)
    if not is_well:
        sys.exit(f"{' '.join(map(str, command))}:\n{output}")


def measure(options, cases):
    """Runs each case and adds the profile of the run to it. The profile also has the
    times of the steps. Writes all cases measured so far after each run, because a time
    limit may end the script."""
    for number, case in enumerate(cases, 1):
        with tempfile.TemporaryDirectory() as name:
            profile = pathlib.Path(name) / "profile"
            # fmt: off
            execute(options.run, options.programs / case["program"], "--device",
                    options.device, "--data", options.programs / "text", "--tokens",
                    "bytes", "--steps", options.steps, "--evaluate-samples", 0,
                    "--quiet", "--timeout", launch.TIMEOUT, "--profile", profile)
            # fmt: on
            case["profile"] = json.loads(profile.read_text())
        options.to.write_text(json.dumps(cases[:number]))
        print(f"{case['program']}: {steps_of(case)['median'] / 1e6:.2f} ms", flush=True)


def steps_of(case):
    return case["profile"]["steps"]["later"]


def predict(options, cases):
    """Adds to each plan the step time that the compiler predicts, in ns."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        source, report = folder / "plan.mlir", folder / "report.json"
        for case in cases:
            profiles = []
            for other in cases:
                alike = all(other[key] == case[key] for key in ("model", "type"))
                if alike and other["is_profiled"]:
                    profiles.append(folder / f"{other['program']}.json")
                    profiles[-1].write_text(json.dumps(other["profile"]))
            machine = MACHINE.format(profiles=", ".join(f'"{p}"' for p in profiles))
            source.write_text(
                machine + case["description"].replace("of @m ", "of @m on @one ")
            )
            # fmt: off
            execute(options.tools / "chimera-opt", source, "--chimera-to-allocated",
                    f"--chimera-report=costs=stages format=json output={report}",
                    "-o", "/dev/null")
            # fmt: on
            (pipeline,) = json.loads(report.read_text())
            case["predicted"] = pipeline["step"]


def print_table(cases):
    print(f"{'':<32}{'predicted':>12}{'measured':>12}{'error':>9}{'spread':>9}")
    errors = []
    for case in cases:
        steps = steps_of(case)
        median = steps["median"]
        error = 100 * (case["predicted"] / median - 1)
        spread = 100 * (steps["max"] - steps["min"]) / median
        if not case["is_profiled"]:
            errors.append(abs(error))
        print(
            f"{case['program']:<32}{case['predicted'] / 1e6:>9.2f} ms"
            f"{median / 1e6:>9.2f} ms{error:>+7.1f} %{spread:>7.1f} %"
        )
    print(
        f"of the {len(errors)} that were not profiled: median error "
        f"{statistics.median(errors):.1f} %, largest {max(errors):.1f} %"
    )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--run", type=pathlib.Path, help="chimera-run: measure")
    parser.add_argument("--programs", type=pathlib.Path, help="a folder, to measure")
    parser.add_argument("--tools", type=pathlib.Path, help="a folder: predict")
    parser.add_argument("--to", type=pathlib.Path, required=True, help="a file")
    parser.add_argument("--model", default="GPT-2 124M")
    parser.add_argument("--device", default="cuda", choices=("cuda", "host"))
    parser.add_argument("--steps", type=int, default=6)
    options = parser.parse_args()
    if bool(options.run) != bool(options.programs):
        parser.error("expected --run and --programs together")
    if not (options.run or options.tools):
        parser.error("expected --run, to measure, or --tools, to predict")
    if options.run:
        every = json.loads((options.programs / "plans.json").read_text())
        cases = [case for case in every if case["model"] == options.model]
        measure(options, cases)
    if options.tools:
        cases = json.loads(options.to.read_text())
        predict(options, cases)
        print_table(cases)


if __name__ == "__main__":
    main()
