#!/usr/bin/env python3
# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares the simulator with real runs of sleeping stages over MPI.

For each number of workers, message size and schedule: measures the cost of a message
(message_times) and runs the program with --profile. Gives the median times of the
stages and the times of messages to the simulator (--chimera-report). Prints the
predicted step time and the shortest step of the run. Stages also sleep for the updates
of their weights.

    test/bench/predict.py [--workers 4 8 16] [--bytes 65536 1048576]
        [--schedules chimera 1f1b …] [--orders FILE …] [--limit PERCENT]

If a worker has several stages, each of them takes proportionally less time.

A step is measured from end to end on the root. The first step is left out, because it
starts from nothing. Measured steps include things that the simulator leaves out:
all-reduces of 8 bytes and loads of 64 bytes, some 0.1 ms in all. With --limit the
script fails if, in each of --attempts attempts, a step differs from its prediction by
more than the limit. If other load kept the cores busy in all of these attempts, they
show nothing about the simulator. Then the script prints "skipped" and does not fail.
"""

import argparse
import collections
import json
import pathlib
import re
import sys
import tempfile

import machine

MICROSECOND, MILLISECOND = 1000, 1_000_000
# The load of other processes, in cores, above which a step may be delayed.
BUSY = 0.1


# Stages per worker, for schedules with more than one.
CHUNKS = {"interleaved-1f1b": 2, "zb-v": 2}


# For each cost of a stage, the name of the action in a profile that has this cost.
COSTS = {
    "forward": "forward",
    "backward": "backward",
    "input_gradient": "input_gradient",
    "weight_gradient": "weight_gradient",
    "update": "optimizer_step",
}


# A schedule to measure. A description states it by `clause` and `lines`.
Schedule = collections.namedtuple("Schedule", "name workers stages batches clause lines")


def of_registry(args, name, workers):
    stages = workers * CHUNKS.get(name, 1)
    return Schedule(
        name, workers, stages, args.micro_batches, f'schedule("{name}")', ""
    )


def of_file(args, file, folder):
    """The schedule of a file that chimera-show reads."""
    path = folder / "order.mlir"
    machine.execute(args.tools / "chimera-show", file, "--description", path)
    head, lines = re.search(
        r"chimera\.pipeline @order ([^{]*)\{([^}]*)\}", path.read_text()
    ).groups()
    stages, batches, workers = (
        int(re.search(rf"{name}\((\d+)\)", head)[1])
        for name in ("stages", "micro_batches", "workers")
    )
    return Schedule(file.name, workers, stages, batches, "", lines)


def describe(path, schedule, size, costs):
    """Writes a description. `costs` are the times of each stage's actions by name, in
    ns."""
    lines = "".join(
        f"  chimera.stage {stage} cost <"
        + ", ".join(f"{name} = {time}" for name, time in times.items())
        + f">\n    bytes <weights = 8, optimizer = 16, stash = 8, boundary = {size}>\n"
        for stage, times in enumerate(costs)
    )
    path.write_text(
        f"chimera.pipeline @predicted stages({len(costs)}) "
        f"micro_batches({schedule.batches}) {schedule.clause} "
        f"workers({schedule.workers}) time_unit(ns) {{\n{lines}{schedule.lines}}}\n"
    )


def message_times(args, workers, size):
    """Returns medians in ns: for how long a message occupies the sender's thread, is on
    its way, and occupies the receiver's thread."""
    times = json.loads(
        machine.execute(
            *machine.mpirun(workers), args.tools / "message_times", "--bytes", size
        ).stdout
    )
    send, whole, receive = (
        times[name]["median"] for name in ("send", "whole", "receive")
    )
    # A message is on its way while neither thread is busy with it.
    return send, max(0, whole - send - receive), receive


def measure(args, folder, schedule, size):
    """Runs the program. Returns the times of its steps and the median times of each
    stage's actions, in ns."""
    source, program, log, profile = (
        folder / name for name in ("real.mlir", "program", "log", "profile")
    )
    workers = schedule.workers
    chunks = schedule.stages // workers
    forward = round(args.forward_ms * MILLISECOND / chunks)
    backward = round(args.backward_ms * MILLISECOND / chunks)
    update = round(args.update_ms * MILLISECOND / chunks)
    nominal = [
        {"forward": forward, "backward": backward, "update": update}
    ] * schedule.stages
    describe(source, schedule, size, nominal)
    machine.execute(args.tools / "chimera-compile", source, "-o", program)
    # fmt: off
    machine.execute(
        *machine.mpirun(workers), args.tools / "chimera-run", program,
        "--stages", "synthetic", "--unit-ns", 1, "--steps", args.steps + 1,
        "--quiet", "--log", log, "--profile", profile, *args.run_options)
    # fmt: on
    ends = [
        round(1e9 * json.loads(line)["seconds"])
        for line in log.read_text().splitlines()[:-1]
    ]
    medians = [
        {
            name: stage[action]["median"]
            for name, action in COSTS.items()
            if action in stage
        }
        for stage in json.loads(profile.read_text())["stages"]
    ]
    for times in medians:
        # A stage must state the cost of its whole backward, even if all backwards are
        # split.
        times.setdefault(
            "backward", times.get("input_gradient", 0) + times.get("weight_gradient", 0)
        )
    return [end - begin for begin, end in zip(ends, ends[1:])], medians


def predict(args, folder, schedule, size, costs, messages):
    """The simulated time of a step, in ns."""
    source, report = folder / "predicted.mlir", folder / "report"
    scaled = [
        {name: round(time * args.scale_costs) for name, time in times.items()}
        for times in costs
    ]
    describe(source, schedule, size, scaled)
    send, way, receive = messages
    machine.execute(
        args.tools / "chimera-opt",
        source,
        "--chimera-to-scheduled",
        "--chimera-report=format=json costs=stages "
        f"send={send} p2p={way} receive={receive} output={report}",
        "-o",
        "/dev/null",
    )
    return json.loads(report.read_text())[0]["step"]


def compare(args, folder, schedule, size):
    """Prints a row. Returns the error of the shortest step in percent, and whether
    other load kept the cores busy."""
    with machine.OtherLoad() as load:
        messages = message_times(args, schedule.workers, size)
        steps, costs = measure(args, folder, schedule, size)
    predicted = predict(args, folder, schedule, size, costs, messages)
    off = 100 * (min(steps) / predicted - 1)
    forwards, backwards = (
        "–".join(
            f"{time / MILLISECOND:.2f}"
            for time in sorted({pick(times[name] for times in costs) for pick in (min, max)})
        )
        for name in ("forward", "backward")
    )
    print(
        f"| {schedule.name} | {schedule.workers} | {size // 1024} KiB "
        f"| {predicted / MILLISECOND:.1f} | {min(steps) / MILLISECOND:.1f} "
        f"({', '.join(f'{step / MILLISECOND:.1f}' for step in steps)}) "
        f"| {off:+.2f} % | {forwards}, {backwards} "
        f"| {' + '.join(f'{time / MICROSECOND:.0f}' for time in messages)} "
        f"| {load.cores:.2f} |",
        flush=True,
    )
    return off, load.cores > BUSY


def judge(args, attempts):
    """Returns "within" if an attempt was within the limit. Otherwise returns
    "disturbed" if other load kept the cores busy in every attempt, else "off"."""
    verdict = "disturbed"
    for off, busy in attempts:
        # Beside other load, wrong costs may be within the limit by chance.
        by_chance = busy and args.scale_costs != 1
        if args.limit is None or (abs(off) <= args.limit and not by_chance):
            return "within"
        if not busy:
            verdict = "off"
    return verdict


def make_parser():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tools", type=pathlib.Path, default=machine.TOOLS)
    parser.add_argument("--workers", type=int, nargs="+", default=[4, 8, 16])
    parser.add_argument("--micro-batches", type=int, default=32)
    parser.add_argument("--bytes", type=int, nargs="+", default=[1 << 16, 1 << 20])
    parser.add_argument(
        "--schedules",
        nargs="*",
        default=["chimera", "1f1b", "gpipe", *CHUNKS, "pipedream", "pipedream-2bw"],
    )
    parser.add_argument(
        "--orders", nargs="*", type=pathlib.Path, default=[],
        help="files of orders that chimera-show reads, which say the number of workers",
    )  # fmt: skip
    parser.add_argument("--forward-ms", type=float, default=20)
    parser.add_argument("--backward-ms", type=float, default=40)
    parser.add_argument("--update-ms", type=float, default=10)
    parser.add_argument("--steps", type=int, default=3, help="that count")
    parser.add_argument("--limit", type=float, help="percent")
    parser.add_argument("--attempts", type=int, default=1)
    parser.add_argument(
        "--scale-costs",
        type=float,
        default=1,
        help="give the simulator these times the medians: shows what --limit sees",
    )
    parser.add_argument(
        "--run-options", nargs=argparse.REMAINDER, default=[],
        help="more options of chimera-run",
    )  # fmt: skip
    return parser


def main():
    args = make_parser().parse_args()
    print(
        f"N={args.micro_batches}, forward {args.forward_ms:g} ms, backward "
        f"{args.backward_ms:g} ms, update {args.update_ms:g} ms as sleeps, a process a rank on "
        f"{machine.os.cpu_count()} cores\n\n"
        "| schedule | D | messages | predicted, ms | best step (all), ms | off "
        "| medians of the stages' forwards, backwards, ms "
        "| a message: sender + way + receiver, µs | other load, cores |\n"
        "|---|---|---|---|---|---|---|---|---|"
    )
    verdicts = collections.Counter()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        schedules = [
            of_registry(args, schedule, workers)
            for workers in args.workers
            for schedule in args.schedules
        ] + [of_file(args, file, folder) for file in args.orders]
        for schedule in schedules:
            for size in args.bytes:
                attempts = (
                    compare(args, folder, schedule, size) for _ in range(args.attempts)
                )
                verdicts[judge(args, attempts)] += 1
    if verdicts["off"]:
        sys.exit(
            f"\n{verdicts['off']} further than {args.limit:g} % from the prediction"
        )
    if verdicts["disturbed"]:
        sys.exit(
            f"\nskipped: {verdicts['disturbed']} further than {args.limit:g} % from "
            "the prediction, but only beside other load"
        )


if __name__ == "__main__":
    main()
