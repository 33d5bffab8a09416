# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Times PyTorch's functions on an order. The order is split 1F1B for the sizes that are
given as D N D N …, or the order on standard input: the lines of chimera.order ops as
JSON, with the stage before each action. Needs torch. Prints as JSON torch's version
and, for each size, the number of actions and the processor seconds of

- add: inserting sends and receives (_add_send_recv);
- validate: checking that on its stage each micro-batch has a forward, an input gradient
  and a weight gradient in this order, that each stage is on one rank, and that each has
  as many as there are micro-batches (_validate_schedule);
- simulate: running actions, sends and receives, each one step long, on all ranks until
  all are done or no rank can continue (_simulate_comms_compute).

These functions are internal to PyTorch, so they may change.
"""

import json
import sys
import time

import torch
from torch.distributed.pipelining import schedules


def order(stages, batches):
    """The split 1F1B order: rank r of D runs D-1-r forwards, and then forwards and
    backwards in turn."""
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
    """The order in `lines`, which has one line for each rank."""
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
