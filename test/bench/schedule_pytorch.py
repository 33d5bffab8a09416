# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Times PyTorch's functions for the split 1F1B order of the sizes given as D N D N …,
or for the order on standard input as JSON: the lines of chimera.order ops, with the
stage before each action. Needs torch. Prints as JSON its version and, for each size,
the number of actions of the order and the processor seconds of

- add: inserting sends and receives (_add_send_recv);
- validate: checking that each micro-batch has forward, input and weight gradient in
  this order on its stage, each stage on one rank, as many as micro-batches
  (_validate_schedule);
- simulate: running actions, sends and receives, each one step long, on all ranks until
  all are done or nothing moves (_simulate_comms_compute).

These functions are PyTorch's internals, for authors of schedules, and may change.
"""

import json
import sys
import time

import torch
from torch.distributed.pipelining import schedules


def order(stages, batches):
    """Rank r runs D-1-r forwards, then forwards and backwards in turn."""
    kind, action = schedules._ComputationType, schedules._Action
    ranks = {}
    for rank in range(stages):
        row = ranks[rank] = []
        ahead = min(batches, stages - 1 - rank)
        for turn in range(batches + ahead):
            if turn < batches:
                row.append(action(rank, kind.FORWARD, turn))
            if turn >= ahead:
                row.append(action(rank, kind.BACKWARD_INPUT, turn - ahead))
                row.append(action(rank, kind.BACKWARD_WEIGHT, turn - ahead))
    return ranks


def timed(call, *arguments):
    start = time.process_time()
    result = call(*arguments)
    return time.process_time() - start, result


def given(lines):
    """The order in the lines of ranks 0, 1, …."""
    return {
        rank: [schedules._Action.from_str(word) for word in line.split()]
        for rank, line in enumerate(lines)
    }


def measure(rows):
    rank_of = {row.stage_index: rank for rank, each in rows.items() for row in each}
    stages = len(rank_of)
    batches = 1 + max(row.microbatch_index for each in rows.values() for row in each)
    # PyTorch empties the lists that it gets, so pass copies.
    copy = {rank: list(row) for rank, row in rows.items()}
    add, sent = timed(schedules._add_send_recv, copy, rank_of.get, stages)
    validate, _ = timed(
        schedules._validate_schedule, rows, len(rows), stages, batches
    )
    simulate, _ = timed(
        schedules._simulate_comms_compute, sent, rank_of.get, stages
    )
    return {
        "actions": sum(map(len, rows.values())),
        "add": add,
        "validate": validate,
        "simulate": simulate,
    }


def main():
    numbers = list(map(int, sys.argv[1:]))
    orders = [order(*size) for size in zip(numbers[::2], numbers[1::2])]
    if not numbers:
        orders = [given(json.load(sys.stdin))]
    result = {"torch": torch.__version__, "sizes": list(map(measure, orders))}
    print(json.dumps(result))


if __name__ == "__main__":
    main()
