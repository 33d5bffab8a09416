#!/usr/bin/env bash
# torch 2.15's interleaved and zero-bubble pipelines keep every gradient that they
# send until the end of the step, unless max_outstanding_sends is given.
#
# Version: torch 2.15.0 (Python 3.11, gloo).
# Behaviour: The schedules that run from a list of actions (Interleaved1F1B,
#   LoopedBFS, the zero-bubble ones) put all waits for sent gradients at the end
#   of the list. Each of N micro-batches leaves one gradient alive per sending
#   stage, whatever the depth of the pipeline. With max_outstanding_sends=1 the waits
#   move forward. The option is off by default, and torch 2.11, which also waits at
#   the end, has none.
# Seen on 2026-11-27 (two ranks, one stage each, N = 16, boundaries of 16 MiB; the
#   peak is the resident memory of the rank that sends gradients):
#   default: 16 sends unwaited, peak 1558 MiB
#   limited: 1 sends unwaited, peak 1334 MiB             (max_outstanding_sends=1)
#   The difference varies by some 40 MiB; 15 gradients are 240 MiB.
# Why it matters: People choose 1F1B because its memory does not grow with N. Here a
#   part of it does. To compare peaks of memory, set the option or count the
#   gradients.
# What chimera does: A send keeps its buffer until its wait. The wait is part of
#   the program, and the bytes are part of the peak that the report states.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --no-compile torch==2.15.0 \
  numpy==2.4.6
"$work/venv/bin/python" -W ignore - "$work" <<'PYTHON'
import datetime
import json
import pathlib
import resource
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as multiprocessing
from torch.distributed.pipelining import PipelineStage, ScheduleInterleaved1F1B

N, MIB = 16, 16


class Scale(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.factor = torch.nn.Parameter(torch.ones(1))

    def forward(self, x):
        return x * self.factor


def run(rank, file, options):
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo", store=dist.FileStore(file + ".store", 2), rank=rank,
        world_size=2, timeout=datetime.timedelta(seconds=60))
    stage = PipelineStage(Scale(), rank, 2, torch.device("cpu"))
    schedule = ScheduleInterleaved1F1B(
        [stage], N, loss_fn=lambda output, target: output.mean(), **options)
    for _ in range(2):
        if rank == 0:
            schedule.step(torch.ones(N, MIB << 18))
        else:
            schedule.step(target=torch.zeros(N, 1))
    if rank == 1:
        schedule._dump_csv(file + ".csv", "compute_comms")
        row = pathlib.Path(file + ".csv").read_text().splitlines()[1]
        alive = most = 0
        for action in row.split(","):
            if "SEND_B" in action:
                alive += -1 if "WAIT" in action else 1
                most = max(most, alive)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        pathlib.Path(file).write_text(json.dumps([most, peak]))
    dist.barrier()
    dist.destroy_process_group()


seen = []
for name, options in (("default", {}), ("limited", {"max_outstanding_sends": 1})):
    file = f"{sys.argv[1]}/{name}"
    multiprocessing.start_processes(run, (file, options), 2, start_method="fork")
    seen.append(json.loads(pathlib.Path(file).read_text()))
    print(f"{name}: {seen[-1][0]} sends unwaited, peak {seen[-1][1]} MiB")
(most, peak), (limited, limited_peak) = seen
assert (most, limited) == (N, 1), "changed: another number of unwaited sends"
assert peak - limited_peak > N * MIB / 2, "changed: the memory is the same"
PYTHON
