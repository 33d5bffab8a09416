#!/usr/bin/env python3
# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes schedules as files of PyTorch (chimera-show --torch-csv), loads them in
torch.distributed.pipelining, and trains a step on two ranks with gloo. Losses and
gradients must be those of one device. The lowered programs that torch makes from these
files must pass the check of chimera-show.

usage: torch_schedules.py --tools BIN [--python PYTHON]

Needs a Python with torch: that of build/venv, unless --python names another."""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from exporting import PYTHON
from forks import restart_with
from grid import run
from numerics import Checks

RANKS = 2
BATCHES = 4
WIDTH = 8
# Two orders whose stages go down the ranks and up again, as in one half of Chimera: the
# forwards of a micro-batch meet its backwards on the same ranks.
MEETING = """
P0: 0F0 0F1 3F0 3B0 3F1 3B1 0B0 0F2 0B1 0F3 3F2 3B2 3F3 3B3 0B2 0B3
P1: 1F0 2F0 1F1 2F1 2B0 1B0 2B1 1B1 1F2 2F2 1F3 2F3 2B2 1B2 2B3 1B3
"""
MEETING_SPLIT = """
P0: 0F0 0F1 3F0 3I0 3F1 3I1 3W0 3W1 0B0 0F2 0B1 0F3 3F2 3B2 3F3 3B3 0B2 0B3
P1: 1F0 2F0 1F1 2F1 2I0 1I0 2I1 1I1 2W0 1W0 2W1 1W1 1F2 2F2 1F3 2F3 2B2 1B2 2B3 1B3
"""
SCHEDULES = {
    "gpipe": ["-e", "workers=2 micro_batches=4 schedule=gpipe"],
    "1f1b-split": ["-e", "workers=2 micro_batches=4 schedule=1f1b split_backward"],
    "interleaved-1f1b": ["-e", "workers=2 micro_batches=4 stages=4 schedule=interleaved-1f1b"],
    "zb-v": ["-e", "workers=2 micro_batches=4 schedule=zb-v split_backward"],
    "meeting": MEETING,
    "meeting-split": MEETING_SPLIT,
}


def layers(stages):
    """The layers of all stages, the same in each process."""
    import torch

    torch.manual_seed(3)
    return [
        torch.nn.Sequential(torch.nn.Linear(WIDTH, WIDTH), torch.nn.Tanh()).double()
        for _ in range(stages)
    ]


def data():
    import torch

    torch.manual_seed(4)
    return [torch.randn(2 * BATCHES, WIDTH, dtype=torch.float64) for _ in range(2)]


def gradients_of(modules):
    return {
        f"{stage}.{name}": value.grad.flatten().tolist()
        for stage, module in modules.items() for name, value in module.named_parameters()
    }  # fmt: skip


def train_rank(rank, folder):
    """Trains a step with each file of `folder`, and writes the gradients and the lowered
    programs."""
    import torch
    import torch.distributed as dist
    from torch.distributed.pipelining import PipelineStage, schedules

    dist.init_process_group(
        "gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=RANKS
    )
    inputs, targets = data()
    for name in SCHEDULES:
        places = json.loads((folder / f"{name}.json").read_text())
        modules = layers(len(places))
        own = [stage for stage, place in enumerate(places) if place == rank]
        stages = [
            PipelineStage(modules[s], s, len(places), torch.device("cpu")) for s in own
        ]
        schedule = schedules._PipelineScheduleRuntime(
            stages, BATCHES, loss_fn=torch.nn.functional.mse_loss
        )
        schedule.stage_index_to_group_rank = dict(enumerate(places))
        for stage in stages:
            stage.stage_index_to_group_rank = schedule.stage_index_to_group_rank
            # At its start, torch sends a message between all neighbours, so that NCCL
            # connects the ranks. Neighbours may be on one rank, and gloo cannot send to
            # its own rank.
            stage._get_init_p2p_neighbors_ops = list
        schedule._load_csv(str(folder / f"{name}.csv"))
        losses = []
        schedule.step(
            *([inputs] if 0 in own else []),
            **({"target": targets, "losses": losses} if len(places) - 1 in own else {}),
        )
        made = gradients_of({s: modules[s] for s in own})
        (folder / f"{name}.{rank}").write_text(json.dumps([made, [x.item() for x in losses]]))
        if rank == 0:
            schedule._dump_csv(str(folder / f"{name}.lowered.csv"))
        dist.barrier()
    dist.destroy_process_group()


def expected(stages):
    import torch

    modules = layers(stages)
    inputs, targets = data()
    losses = []
    for x, y in zip(inputs.chunk(BATCHES), targets.chunk(BATCHES), strict=True):
        losses.append(torch.nn.functional.mse_loss(torch.nn.Sequential(*modules)(x), y))
    (sum(losses) / BATCHES).backward()
    return gradients_of(dict(enumerate(modules))), [loss.item() for loss in losses]


def distance(ours, theirs):
    return max(abs(a - b) for a, b in zip(ours, theirs, strict=True))


def check(options, folder, checks):
    show = options.tools / "chimera-show"
    for name, what in SCHEDULES.items():
        if isinstance(what, str):
            (folder / f"{name}.txt").write_text(what)
            what = [folder / f"{name}.txt"]
        text = run(show, *what, "--torch-csv", folder / f"{name}.csv")
        line = next(line for line in text.splitlines() if line.startswith("stages that"))
        ranks = [words.split()[1:] for words in line.partition(": ")[2].split(";")]
        places = {int(s): rank for rank, stages in enumerate(ranks) for s in stages}
        (folder / f"{name}.json").write_text(
            json.dumps([places[stage] for stage in range(len(places))])
        )
    processes = [
        subprocess.Popen([sys.executable, __file__, "--rank", str(rank), str(folder)])
        for rank in range(RANKS)
    ]
    if any([process.wait() for process in processes]):
        sys.exit("a rank failed")
    for name in SCHEDULES:
        places = json.loads((folder / f"{name}.json").read_text())
        wanted, losses = expected(len(places))
        made, made_losses = {}, []
        for rank in range(RANKS):
            gradients, some = json.loads((folder / f"{name}.{rank}").read_text())
            made |= gradients
            made_losses += some
        worst = max(distance(made[key], wanted[key]) for key in wanted)
        checks.check(
            made.keys() == wanted.keys() and worst < 1e-12
            and distance(made_losses, losses) < 1e-12,
            f"{name} in torch: gradients differ by {worst:.1e} from one device",
        )  # fmt: skip
        status = subprocess.run(
            [show, folder / f"{name}.lowered.csv"], capture_output=True, text=True
        )
        good = status.returncode == 0 and not status.stderr
        good = good and status.stdout.count(": all ranks end\n") == 3
        found = "" if good else f"\n{status.stdout}{status.stderr}"
        checks.check(good, f"{name}: the check of torch's lowered program{found}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tools", type=pathlib.Path, required=True)
    parser.add_argument("--python", default=PYTHON)
    options = parser.parse_args()
    if not restart_with(options.python, "torch", exports=False):
        return
    checks = Checks()
    os.environ["OMP_NUM_THREADS"] = "1"
    with tempfile.TemporaryDirectory() as name:
        check(options, pathlib.Path(name), checks)
    print("\n".join(checks.lines))
    sys.exit(f"{checks.failed} comparisons failed" if checks.failed else 0)


if __name__ == "__main__":
    if sys.argv[1] == "--rank":
        train_rank(int(sys.argv[2]), pathlib.Path(sys.argv[3]))
    else:
        main()
