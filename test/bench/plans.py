#!/usr/bin/env python3
# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares the planner's predictions with measured times, for plans of a small GPT-2 on
two ranks of this machine with one thread each. With --ranks 4, four ranks share the
cores if there are fewer than four. The profiled programs always have two ranks.

Calibrates the machine (chimera-run --calibrate), profiles each layer as a stage of its
own (--profile), asks chimera-plan for plans, and draws some of them by a seed. Runs in
turns these plans, the planner's pick and the profiled programs. The prediction uses one
profile: the medians of several runs, made before the plans are drawn. A machine has
fast and slow minutes. So the prediction is scaled by the time of the profiled programs
in the rounds, divided by their time in the profile. Slow minutes affect small
micro-batches more than large ones, so each profiled size has a factor of its own.

    test/bench/plans.py [--plans 10] [--seed 1] [--rounds 9] [--ranks 2]

Prints for each plan the predicted step time and the median over the rounds, the
planner's bytes of the largest worker and the bytes that its program allocates, and how
the pick compares with the best plan. --limit sets limits: the median error is at most 3
%, each error is at most 5 %, bytes differ by at most 5 %, and the pick is not slower
than the best plan by more than the spread of the best plan's rounds. Then the script
fails if each of --attempts attempts exceeds a limit.
"""

import argparse
import json
import pathlib
import random
import statistics
import sys
import tempfile

import machine

MODEL = (
    "chimera.model @small gpt2 layers(6) heads(4) width(256) context(128) "
    "vocabulary(512)\n"
)
# A program that gives the costs of the layers. Each layer is a stage, including
# embedding and head, on two workers. The workers are busy most of the time, as in good
# plans.
LAYERS = (
    "chimera.pipeline @layers of @small stages(8) micro_batches(16) "
    'schedule("interleaved-1f1b") workers(2) micro_batch_size({size})\n'
)
MEDIAN, EACH, BYTES = 3, 5, 5  # limits, percent
BETWEEN = 5  # plans between two turns of the profiled programs


class Bench:
    def __init__(self, args, folder):
        self.args, self.folder = args, folder
        self.text = folder / "text"
        # The times do not depend on the text.
        self.text.write_bytes(bytes(random.Random(1).choices(range(256), k=1 << 20)))

    def tool(self, name, *arguments):
        return machine.execute(self.args.tools / name, *arguments)

    def train(self, program, steps, *options):
        self.tool(
            "chimera-run", program, "--data", self.text, "--tokens", "bytes",
            "--steps", steps, "--threads", 1, "--quiet", *options,
        )  # fmt: skip

    def calibrate(self):
        """Calibrates this machine. Returns its description."""
        file = self.folder / "machine.mlir"
        self.tool(
            "chimera-run", "--calibrate", file, "--ranks", self.args.ranks,
            "--threads", 1,
        )  # fmt: skip
        return file.read_text()

    def make_layers(self):
        """Makes a program for each profiled micro-batch size."""
        self.layers = []
        for size in self.args.profile_sizes:
            source, program = (
                self.folder / f"layers-{size}{end}" for end in (".mlir", ".chimera")
            )
            source.write_text(MODEL + LAYERS.format(size=size))
            self.tool("chimera-compile", source, "-o", program)
            self.layers.append(program)

    def profile(self, label):
        """Profiles the program of each micro-batch size. Returns [(file, its
        content)]."""
        found = []
        for program in self.layers:
            file = program.with_suffix(f".{label}.json")
            self.train(program, self.args.profile_steps, "--profile", file)
            found.append((file, json.loads(file.read_text())))
        return found

    def first_profile(self):
        """Profiles each micro-batch size several times. Returns (files, steps): for
        each size, a file with the medians, and the mean step in this file, in ns."""
        rounds = [self.profile("first") for _ in range(self.args.profiles)]
        files, steps = [], []
        for runs in zip(*rounds):
            files.append(runs[0][0])
            profile = median_of([profile for _, profile in runs])
            files[-1].write_text(json.dumps(profile))
            steps.append(mean(profile["steps"]["later"]))
        return files, steps

    def draw(self, description, profiles):
        """Asks for plans and draws some. Returns [(name, program, plan)]; the first is
        the pick."""
        found = self.folder / "plans.json"
        command = [
            "chimera-plan", description, "--batch", self.args.batch,
            "--costs-from", ",".join(map(str, profiles)), "--devices", self.args.ranks,
            "--micro-batch-size", ",".join(map(str, self.args.sizes)),
            "--split-backward", "no", "--top", self.args.of,
        ]  # fmt: skip
        self.tool(*command, "--json", found)
        plans = json.loads(found.read_text())["plans"]
        numbers = random.Random(self.args.seed).sample(
            range(1, len(plans)), min(self.args.plans - 1, len(plans) - 1)
        )
        drawn = []
        for number in [0, *sorted(numbers)]:
            source, program = (
                self.folder / f"plan-{number}{end}" for end in (".mlir", ".chimera")
            )
            self.tool(*command, "--pick", number + 1, "-o", source)
            self.tool("chimera-compile", source, "-o", program)
            drawn.append((self.name(plans[number]), program, plans[number]))
        return drawn

    @staticmethod
    def name(plan):
        options = plan["options"]
        words = [plan["schedule"]]
        if options:
            words.append(", ".join(f"{key} {value}" for key, value in options.items()))
        words += [
            f"D={plan['workers']}", f"W={plan['data_parallel']}",
            f"S={plan['stages']}", f"N={plan['micro_batches']}",
            f"B={plan['micro_batch_size']}",
        ]  # fmt: skip
        return " ".join(words)

    def report(self, program, profiles):
        """The compiler's report on the plan, with costs from these profiles."""
        report = self.folder / "report.json"
        self.tool(
            "chimera-opt", program.with_suffix(".mlir"),
            f"--chimera-costs-from=profiles={','.join(map(str, profiles))}",
            "--chimera-to-allocated",
            f"--chimera-report=costs=stages format=json output={report}",
            "-o", "/dev/null",
        )  # fmt: skip
        return json.loads(report.read_text())[0]

    def step(self, program):
        """Runs a program. Returns the median step, in ns."""
        profile = self.folder / "run.json"
        self.train(program, self.args.steps + 1, "--profile", profile)
        return json.loads(profile.read_text())["steps"]["later"]["median"]

    def measure(self, drawn):
        """Runs everything in turns. Returns, in ns, the steps of each plan in all
        rounds, and for each micro-batch size the median step of the profiled program in
        all its runs."""
        steps, profiled = [[] for _ in drawn], [[] for _ in self.layers]
        for _ in range(self.args.rounds):
            for index, (_, program, _) in enumerate(drawn):
                if index % BETWEEN == 0:
                    for times, (_, profile) in zip(profiled, self.profile("now")):
                        times.append(profile["steps"]["later"]["median"])
                steps[index].append(self.step(program))
        return steps, [statistics.median(times) for times in profiled]


def mean(times):
    return times["total"] / times["count"]


def between(size, sizes, values):
    """The value at `size`. `values` are at ascending `sizes`, with straight lines
    between them."""
    if size <= sizes[0]:
        return values[0]
    for low, high, at_low, at_high in zip(sizes, sizes[1:], values, values[1:]):
        if size <= high:
            return at_low + (at_high - at_low) * (size - low) / (high - low)
    return values[-1]


def median_of(profiles):
    """A profile in which each time is the median of the means in `profiles`."""
    first = profiles[0]
    if isinstance(first, list):
        return [median_of(parts) for parts in zip(*profiles)]
    if not isinstance(first, dict):
        return first
    if "total" in first:
        typical = statistics.median(map(mean, profiles))
        return first | {"total": round(typical * first["count"])}
    return {key: median_of([profile[key] for profile in profiles]) for key in first}


def attempt(args, folder):
    """Prints a table. Returns the limits that were exceeded, and the other load in
    cores."""
    bench = Bench(args, folder)
    with machine.OtherLoad() as load:
        description = folder / "question.mlir"
        description.write_text(bench.calibrate() + MODEL)
        bench.make_layers()
        profiles, then = bench.first_profile()
        drawn = bench.draw(description, profiles)
        steps, now = bench.measure(drawn)
    drift = [after / before for before, after in zip(then, now)]
    print(
        f"{len(drawn)} of the {args.of} fastest plans on {args.ranks} ranks, seed "
        f"{args.seed}, "
        f"{args.batch} samples a step, medians of {args.rounds} rounds of "
        f"{args.steps} steps; other load {load.cores:.2f} cores\n\n"
        "| plan | predicted, ms | measured, ms | error | spread of the rounds "
        "| peak bytes | allocated | |\n|---|---|---|---|---|---|---|---|"
    )
    errors, off, medians = [], [], []
    for (name, program, plan), times in zip(drawn, steps):
        median = statistics.median(times)
        medians.append(median)
        report = bench.report(program, profiles)
        predicted = report["step"] * between(
            plan["micro_batch_size"], args.profile_sizes, drift
        )
        errors.append(100 * (predicted / median - 1))
        spread = 100 * (max(times) - min(times)) / median
        bytes_taken = max(report["allocated_bytes"])
        missed = 100 * (plan["peak_bytes"] / bytes_taken - 1)
        off += [f"bytes of {name}"] * (abs(missed) > BYTES)
        print(
            f"| {name} | {predicted / 1e6:.1f} | {median / 1e6:.1f} "
            f"| {errors[-1]:+.1f} % | {spread:.1f} % | {plan['peak_bytes']} "
            f"| {bytes_taken} | {missed:+.1f} % |"
        )
    sizes = sorted(map(abs, errors))
    best = min(range(len(drawn)), key=medians.__getitem__)
    slower = 100 * (medians[0] / medians[best] - 1)
    spread = 100 * (max(steps[best]) - min(steps[best])) / medians[best]
    print(
        f"\nmedian error {statistics.median(sizes):.1f} %, largest {sizes[-1]:.1f} %; "
        f"the pick takes {slower:.1f} % longer than the best measured, whose rounds "
        f"spread by {spread:.1f} %\n",
        flush=True,
    )
    off += ["the median error"] * (statistics.median(sizes) > MEDIAN)
    off += ["the largest error"] * (sizes[-1] > EACH)
    off += ["the pick"] * (slower > spread)
    return off, load.cores


def make_parser():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tools", type=pathlib.Path, default=machine.TOOLS)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--plans", type=int, default=10)
    parser.add_argument("--of", type=int, default=40, help="draw of so many")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--steps", type=int, default=4, help="of a round")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument("--profile-sizes", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--profile-steps", type=int, default=6)
    parser.add_argument("--profiles", type=int, default=5)
    parser.add_argument("--limit", action="store_true")
    parser.add_argument("--attempts", type=int, default=1)
    return parser


def main():
    args = make_parser().parse_args()
    for _ in range(args.attempts):
        with tempfile.TemporaryDirectory() as name:
            off, _ = attempt(args, pathlib.Path(name))
        if not off or not args.limit:
            return
    sys.exit(f"off at each of {args.attempts} attempts: {', '.join(off)}")


if __name__ == "__main__":
    main()
