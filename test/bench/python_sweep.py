#!/usr/bin/env python3
# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prints the time of a sweep in Python: a pipeline is made and simulated for every
schedule, number of workers and number of micro-batches. In the same run, PyTorch lowers
and simulates every tenth of those pipelines that it has a schedule for. Both take turns.

    PYTHONPATH=build/release/python build/venv/bin/python test/bench/python_sweep.py
        [--rounds 5] [--pipelines 1000]

Needs a Python with torch and the package chimera. Each number is the median of the
rounds, with the least and the most in brackets. Garbage is collected between rounds.
"""

import argparse
import gc
import itertools
import statistics
import time

import chimera
from torch.distributed.pipelining import _schedule_visualizer, schedules

# The schedules that both have, and PyTorch's names.
NAMES = {"gpipe": "GPipe", "1f1b": "1F1B", "interleaved-1f1b": "Interleaved1F1B", "zb-v": "ZBVZeroBubble"}  # fmt: skip
WORKERS = (2, 4, 8, 16)


def sizes(count):
    """`count` names, numbers of workers and numbers of micro-batches."""
    grid = itertools.product(range(1, 1000), WORKERS, NAMES)
    return [
        (name, workers, workers * (1 + factor % 4)) for factor, workers, name in
        itertools.islice(grid, count)
    ]  # fmt: skip


def ours(name, workers, micro_batches):
    pipeline = chimera.Pipeline(workers=workers, micro_batches=micro_batches, schedule=name)
    return pipeline.simulate().makespan


def of_pytorch(name, workers, micro_batches):
    orders = _schedule_visualizer.get_schedule_ops(NAMES[name], workers, micro_batches)
    # Its simulation takes no idle slots and no sums of gradients.
    left_out = schedules._ComputationType.REDUCE_GRAD
    computations = {
        rank: [action for action in order if action and action.computation_type != left_out]
        for rank, order in enumerate(orders)
    }
    stages = 1 + max(action.stage_index for order in computations.values() for action in order)
    place = {
        action.stage_index: rank for rank, order in computations.items() for action in order
    }
    program = schedules._add_send_recv(computations, place.get, stages)
    return schedules._simulate_comms_compute(program, place.get, stages)


def seconds(function, cases):
    gc.collect()
    begin = time.process_time()
    for case in cases:
        function(*case)
    return time.process_time() - begin


def row(name, values, unit):
    values = sorted(values)
    median = statistics.median(values)
    return f"| {name} | {median:.3g} {unit} ({values[0]:.3g}–{values[-1]:.3g}) |"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--pipelines", type=int, default=1000)
    args = parser.parse_args()
    if min(args.rounds, args.pipelines) < 1:
        parser.error("expected at least 1 round and 1 pipeline")
    all_cases = sizes(args.pipelines)
    some = all_cases[:: 10 if args.pipelines >= 10 else 1]
    one = [("1f1b", 16, 64)]
    single, sweeps, torch_sweeps, ratios = [], [], [], []
    for round_number in range(args.rounds):
        single.append(seconds(ours, one * 20) / 20 * 1000)
        turns = [(ours, all_cases, sweeps), (of_pytorch, some, torch_sweeps)]
        for function, cases, into in turns if round_number % 2 else turns[::-1]:
            into.append(seconds(function, cases))
        ratios.append(torch_sweeps[-1] / len(some) / (sweeps[-1] / len(all_cases)))
    print("| | |\n|---|---|")
    print(row("1f1b, 16 stages, 64 micro-batches: made and simulated", single, "ms"))
    print(row(f"a sweep of {len(all_cases)} pipelines", sweeps, "s"))
    print(row(f"PyTorch's lowering and simulation of {len(some)} of them", torch_sweeps, "s"))
    print(row("PyTorch's time for a pipeline, divided by chimera's", ratios, ""))


if __name__ == "__main__":
    main()
