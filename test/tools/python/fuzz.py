#!/usr/bin/env python3
# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls the Python package chimera with random arguments, right and wrong ones. Each call
must return or raise ValueError or TypeError. A crash of the interpreter fails.

usage: fuzz.py CALLS [SEED]
"""

import contextlib
import pathlib
import random
import sys
import tempfile
import warnings

import chimera

CALLS = int(sys.argv[1])
SEED = int(sys.argv[2]) if len(sys.argv) > 2 else 1
NAMES = {kind.name: list(kind.options) for kind in chimera.schedules()}
WRONG = [-1, 0, 65535, 65536, 2**31, 2**63, 2**70, 1.5, True, None, "4", float("nan")]
WORDS = ["F0", "B1", "0F0", "1B1", ".", "I0", "W0", "F0-1", "B0.1", "R0", "F1-2", "W0+W1"]
PARTS = ["0", "1", "2", "0-1", "1-3", "1.0", "0.1", "0.255", "65534", "99999999999", ""]

pick = random.Random(SEED)
wrong_share = 0.0  # of the arguments of a call


def mostly(right, wrong):
    return pick.choice(wrong if pick.random() < wrong_share else right)


def size():
    return mostly([1, 2, 3, 4, 5, 6, 8, 12, 16], WRONG)


def duration():
    return mostly([1, 2, 0.5, 1e-3, 1 / 3, 7], [0, 2**53, 2**62, -1, float("inf"), 1e18, "x"])


def costs(stages):
    kind = pick.random()
    if kind < 0.6 or not isinstance(stages, int):
        return chimera.Costs()
    if kind < 0.8 or not 0 < stages < 20:
        return chimera.Costs(duration(), update=duration(), per=mostly(["worker", "stage"], ["x"]))
    stage = chimera.StageCosts(duration(), *(pick.choice([duration(), None]) for _ in range(7)))
    return [stage] * mostly([stages], [1, 2, 4])


def statement(stages):
    """The arguments that all ways to make a schedule take."""
    link = chimera.Link(duration(), duration(), duration()) if pick.random() < 0.3 else None
    sizes = None
    if pick.random() < 0.3:
        numbers = (mostly([1, 100, 2**30], [2**40, 2**61, 2**62, -1]) for _ in range(5))
        sizes = chimera.Sizes(*numbers)
    return {"costs": costs(stages), "link": link, "sizes": sizes}


def pipeline():
    name = mostly(list(NAMES), ["x", ""])
    workers = size()
    stages = mostly([workers, 2 * workers] if isinstance(workers, int) else [4], WRONG)
    options = None
    if pick.random() < 0.3 and NAMES.get(name):
        value = mostly(["best", 1, 2, "eager"], [4, -3, "x", "doubling", "halving", 2**40])
        options = {mostly(NAMES[name], ["q"]): value}
    return chimera.Pipeline(
        stages, workers, size(), name, options=options,
        split_backward=pick.random() < 0.3,
        recompute=mostly([False, False, False, True, [0]], [[9], [-1], "x"]),
        cap=mostly([None, 4], [1, -1, 0, 2**40]),
        memory_cap=mostly([None], [1, 10**9]),
        data_parallel=mostly([1, 2], [65535, 0]),
        all_reduce=mostly(["lazy", "eager", "eager_opt"], ["z"]), **statement(stages),
    )  # fmt: skip


def made_up_orders():
    def word():
        stage, kind = pick.choice(["", "0", "1", "3"]), pick.choice("FBIWRfq.|")
        return stage + kind + pick.choice(PARTS) + pick.choice(["", "", "+B0", "+W1", "+"])

    return [
        " ".join(word() for _ in range(pick.randint(0, 8))) for _ in range(pick.randint(0, 4))
    ]


def changed_orders():
    """The orders of a schedule with one other word."""
    workers, micro_batches = pick.randint(2, 4), 2 * pick.randint(1, 3)
    name = pick.choice(["1f1b", "gpipe", "chimera", "gems"])
    rows = [row.split() for row in chimera.Pipeline(workers, workers, micro_batches, name).order]
    row = pick.choice(rows)
    row[pick.randrange(len(row))] = pick.choice([*WORDS, *row])
    return [" ".join(row) for row in rows]


def schedule(file):
    kind = pick.random()
    if kind < 0.5:
        return pipeline()
    rows = made_up_orders() if kind < 0.6 else changed_orders()
    stages = max(len(rows), 1)
    if kind < 0.9:
        return chimera.Schedule.from_orders(
            rows, zero_bubble_notation=pick.random() < 0.2, **statement(stages)
        )
    file.write_text("\n".join(row.replace(" ", ",") for row in rows))
    return chimera.Schedule.from_torch_csv(file, **statement(stages))


def use(made):
    made.verify()
    made.order, made.to_mlir(), repr(made)
    step = made.simulate()
    step.step_time, step.bounds, step.gap, step.bubbles, step.critical_path
    made.report(), made.grid(), made.svg(), made.trace()
    with contextlib.suppress(ValueError):  # not all schedules have this form
        made.to_torch_csv()


def main():
    warnings.simplefilter("ignore")
    global wrong_share
    used = 0
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(CALLS):
            wrong_share = pick.choice([0, 0, 0.05])
            try:
                use(schedule(pathlib.Path(folder) / "rows.csv"))
                used += 1
            except (TypeError, ValueError):
                pass
    print(f"{CALLS} calls, {used} with results, seed {SEED}")
    if used < CALLS / 10:
        sys.exit("expected results of at least a tenth of the calls")


if __name__ == "__main__":
    main()
