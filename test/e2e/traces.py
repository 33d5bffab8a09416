#!/usr/bin/env python3
# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares the trace of a run (`chimera-run --trace`) with the compiler's trace
(`--chimera-print-timeline="format=chrome-trace"`), for ranks as threads, over MPI and
over TCP. Each worker must have the same actions in the same order, with the same names,
arguments and arrows. By the clock, no two events of a worker may overlap, and no action
may start before its inputs are ready, even if the clocks of ranks started at different
times. For schedules without a flush, the compiler (measured=) must find the same
repeated body of each worker as this script."""

import argparse
import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import grid
from job import ENVIRONMENT, PATIENCE, tcp_environments

KINDS = {"forward", "backward", "input_gradient", "weight_gradient", "recompute"}

PIPELINES = [
    'stages(4) micro_batches(4) schedule("chimera")',
    "stages(4) micro_batches(8) all_reduce(eager) "
    'schedule("chimera", {concatenation = "doubling"})',
    'stages(2) micro_batches(4) schedule("chimera", {concatenation = "halving"}) '
    "recompute(all fused) data_parallel(2)",
    'stages(4) micro_batches(4) workers(2) schedule("interleaved-1f1b") '
    "split_backward",
    'stages(4) micro_batches(4) workers(2) schedule("zb-v") recompute([1])',
]
# The steps of this schedule overlap, so the compiler's trace shows other steps.
OVERLAPPING = 'stages(3) micro_batches(4) schedule("pipedream-2bw")'


def predicted(args, folder, description):
    source, trace = folder / "p.mlir", folder / "predicted"
    source.write_text(description)
    grid.run(
        args.tools / "chimera-opt", source, "--chimera-to-scheduled",
        "--chimera-print-timeline=forward=2 update=1 p2p=1 format=chrome-trace "
        f"output={trace}", "-o", "/dev/null",
    )  # fmt: skip
    return json.loads(trace.read_text())


def over_tcp(command, ranks, clocks=None):
    """Runs a job over TCP. The clock of rank r is `clocks[r]` seconds ahead of this
    host's clock."""
    before = {
        rank: ["unshare", "--time", "--fork", "--monotonic", str(seconds)]
        for rank, seconds in (clocks or {}).items()
    }
    processes = [
        subprocess.Popen(
            [*before.get(rank, []), *map(str, command)], env=environment
        )
        for rank, environment in enumerate(tcp_environments(ranks, by_hand=True))
    ]
    assert all(process.wait(timeout=PATIENCE) == 0 for process in processes), command


def traced(args, folder, program, ranks, over, *options, clocks=None):
    trace = folder / "trace"
    trace.unlink(missing_ok=True)
    command = [
        args.tools / "chimera-run", program, "--stages", "synthetic", "--unit-ns",
        "2e5", "--steps", "3", "--quiet", "--trace", trace, *options,
    ]  # fmt: skip
    if over == "tcp":
        over_tcp(command, ranks, clocks)
    elif over == "mpi":
        grid.run(args.mpirun, "-n", ranks, "--oversubscribe", *command)
    else:
        grid.run(*command)
    return json.loads(trace.read_text())


def workers_of(trace, wanted):
    """The events with a duration that `wanted` accepts, by copy and worker, in the
    order of the file."""
    workers = collections.defaultdict(list)
    for event in trace["traceEvents"]:
        if event["ph"] == "X" and wanted(event):
            workers[event["pid"], event["tid"]].append(event)
    return workers


def is_action(event):
    return event["cat"] in KINDS


def is_computed(event):
    return is_action(event) or event["cat"] == "update"


def names_of(workers, copy):
    return {
        worker: [(event["name"], event["cat"], event.get("args")) for event in events]
        for (of, worker), events in workers.items()
        if of == copy
    }


def arrows_of(trace, copy):
    return collections.Counter(
        (event["ph"], event["name"], event["tid"], str(event["args"]))
        for event in trace["traceEvents"]
        if event["ph"] in "sf" and event["pid"] == copy
    )


def pieces_of(event):
    """The parts of micro-batches that an action covers, as (pipeline, micro-batch,
    part). A whole micro-batch has the part None."""
    arguments = event["args"]
    first, part = arguments["micro_batch"], arguments.get("part")
    return [
        (arguments["pipeline"], number, part)
        for number in range(first, first + arguments.get("micro_batches", 1))
    ]


def check_clock(trace, stages, label, off=1e-3):
    """Checks that the events of a worker do not overlap, and that an action runs after
    the actions that it needs. Clocks of different ranks may differ by `off`
    microseconds."""
    for place, events in workers_of(trace, lambda event: True).items():
        for before, after in zip(events, events[1:]):
            end = before["ts"] + before["dur"]
            # The times in the file are rounded to 1e-3 microseconds.
            assert end <= after["ts"] + 1e-3, (label, place, before, after)
    begins, ends = {}, {}
    for (copy, _), events in workers_of(trace, is_action).items():
        for event in events:
            is_forward = event["cat"] == "forward"
            if event["cat"] not in ("forward", "backward", "input_gradient"):
                continue
            for piece in pieces_of(event):
                key = copy, is_forward, event["args"]["stage"], piece
                assert key not in begins, (label, key)
                begins[key], ends[key] = event["ts"], event["ts"] + event["dur"]
    forwards = {key for key in begins if key[1]}
    assert forwards, label
    for copy, is_forward, stage, piece in begins:
        pipeline, number, _ = piece
        needs = [(copy, True, stage - 1, piece)] if is_forward and stage else []
        if not is_forward:
            needs = [(copy, True, stage, (pipeline, number, None))]
            if stage + 1 < stages:
                needs.append((copy, False, stage + 1, piece))
        for need in needs:
            # If steps overlap, the trace may lack the needed action, because it ran in
            # an earlier step.
            if need in ends or "overlaps" not in label:
                assert ends[need] <= begins[copy, is_forward, stage, piece] + off, (
                    label, need, piece)  # fmt: skip
    arrows = {}
    for event in trace["traceEvents"]:
        if event["ph"] == "s":
            arrows[event["id"]] = event["ts"]
    for event in trace["traceEvents"]:
        if event["ph"] == "f":
            assert arrows.pop(event["id"]) < event["ts"] + off, (label, event)
    assert not arrows, label


def check(args, folder, clauses):
    description = f"chimera.pipeline @p {clauses}\n"
    program = folder / "program"
    grid.compile_to(args.tools, description, program)
    expected = predicted(args, folder, description)
    dump = json.loads(
        grid.run(args.tools / "chimera-translate", "--program-to-json", program)
    )
    copies, stages = dump["data_parallel"], len(dump["stages"])
    ranks = len(dump["workers"]) * copies
    for over in args.over:
        label = f"{clauses} over {over}"
        trace = traced(args, folder, program, ranks, over)
        assert trace["otherData"]["first_step"] == 3, label
        assert "largest_half_round_trip_ns" not in trace["otherData"], label
        actions = workers_of(trace, is_action)
        assert {copy for copy, _ in actions} == set(range(copies)), label
        for copy in range(copies):
            want = names_of(workers_of(expected, is_action), 0)
            assert names_of(actions, copy) == want, label
            assert arrows_of(trace, copy) == arrows_of(expected, 0), label
            # The updates of a worker may have another order.
            updates = lambda event: event["cat"] == "update"  # noqa: E731
            for worker, events in workers_of(expected, updates).items():
                got = workers_of(trace, updates)[copy, worker[1]]
                assert sorted(event["name"] for event in got) == sorted(
                    event["name"] for event in events
                ), label
        check_clock(trace, stages, label)
        print(f"{label}: {sum(map(len, actions.values()))} actions", flush=True)


def check_steps(args, folder):
    """Checks traces of several steps, and of steps that overlap."""
    program = folder / "program"
    grid.compile_to(args.tools, f"chimera.pipeline @p {PIPELINES[0]}\n", program)
    trace = traced(args, folder, program, 4, "threads", "--trace-steps", "2")
    assert trace["otherData"]["first_step"] == 2, trace["otherData"]
    for events in workers_of(trace, is_action).values():
        steps = [event["args"]["step"] for event in events]
        assert steps == sorted(steps) and set(steps) == {0, 1}, steps
        assert all(
            event["args"]["micro_batch"] // 4 == event["args"]["step"]
            for event in events
        )
    check_clock(trace, 4, "two steps")
    grid.compile_to(args.tools, f"chimera.pipeline @p {OVERLAPPING}\n", program)
    trace = traced(args, folder, program, 3, "threads")
    check_clock(trace, 3, "overlaps")
    last = [
        event
        for events in workers_of(trace, is_action).values()
        for event in events
        if event["args"]["step"] == 1
    ]
    assert len(last) == 3 * 4 * 2, len(last)


def body_of(trace, worker, body):
    """Finds the last run of the worker's repeated body. Returns when it began and
    ended, and how long the worker computed in it. `body` has the kind and the
    micro-batch of each action of the body. Micro-batch 0 is the first one of the step
    before the last."""
    events = workers_of(trace, is_computed)[0, worker]
    last = max(event["args"]["step"] for event in events if is_action(event))
    wanted = [f"{kind} {number + 4 * (last - 1)}" for kind, number in body]
    names = [event["name"] for event in events]
    first, end = names.index(wanted[0]), names.index(wanted[-1]) + 1
    while end < len(events) and events[end]["cat"] == "update":
        end += 1
    inside = events[first:end]
    assert [event["name"] for event in inside if is_action(event)] == wanted, names
    ends = [event["ts"] + event["dur"] for event in events]
    busy = sum(event["dur"] for event in inside)
    return ends[first - 1], ends[end - 1], busy


def check_measured(args, folder):
    """Checks schedules without a flush. Each worker w of the three repeats a forward
    and a backward. The forward's micro-batch is 2 - w ahead of the backward's."""
    source, program, shown = folder / "p.mlir", folder / "program", folder / "shown"
    for schedule in ("pipedream", "pipedream-2bw"):
        description = OVERLAPPING.replace("pipedream-2bw", schedule)
        source.write_text(f"chimera.pipeline @p {description}\n")
        grid.compile_to(args.tools, source.read_text(), program)
        trace = traced(args, folder, program, 3, "threads", "--trace-steps", "2")
        grid.run(
            args.tools / "chimera-opt", source, "--chimera-to-scheduled",
            "--chimera-print-timeline=forward=200 unit=us format=chrome-trace "
            f"measured={folder / 'trace'} output={shown}", "-o", "/dev/null",
        )  # fmt: skip
        document = json.loads(shown.read_text())
        name = "the body that each worker repeats, in steps 2 and 3"
        assert document["otherData"]["measured"] == name, document["otherData"]
        longest = 0
        for worker in range(3):
            ahead = 2 - worker
            body = [
                action
                for number in range(4)
                for action in (("forward", number + ahead), ("backward", number))
            ]
            begin, end, busy = body_of(trace, worker, body)
            assert busy <= end - begin + 0.1, (schedule, worker)
            longest = max(longest, end - begin)
            got = workers_of(document, is_computed)[1, worker]
            assert abs(sum(event["dur"] for event in got) - busy) < 0.1, (
                schedule, worker, got)  # fmt: skip
        step = document["otherData"]["step"]
        # A worker runs a forward and a backward for each of four micro-batches, and
        # waits a little.
        assert step["predicted_us"] >= 4 * 600, step
        assert abs(step["measured_us"] - longest) < 0.1, (step, longest)
        print(f"{schedule}: steps 2 and 3 take {longest:.0f} us", flush=True)


def check_clocks(args, folder):
    """The clocks of the ranks started at different times, because each rank is in a
    time namespace of its own."""
    may = subprocess.run(
        ["unshare", "--time", "--fork", "--monotonic", "1", "true"], check=False
    )
    if may.returncode:
        print("several clocks: left out, as unshare --time is not allowed")
        return
    program = folder / "program"
    grid.compile_to(args.tools, f"chimera.pipeline @p {PIPELINES[0]}\n", program)
    trace = traced(args, folder, program, 4, "tcp", clocks={1: 1000, 2: -100, 3: 7})
    off = trace["otherData"]["largest_half_round_trip_ns"] / 1000
    # Each of two clocks may be off by this value.
    check_clock(trace, 4, "several clocks", 2 * off)
    print(f"several clocks: compared to {off:.1f} us", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tools", type=pathlib.Path, required=True)
    parser.add_argument("--mpirun")
    args = parser.parse_args()
    args.over = ["threads", *(["mpi"] if args.mpirun else []), "tcp"]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for clauses in PIPELINES:
            check(args, folder, clauses)
        check_steps(args, folder)
        check_measured(args, folder)
        check_clocks(args, folder)


if __name__ == "__main__":
    os.environ.update(ENVIRONMENT)
    sys.exit(main())
