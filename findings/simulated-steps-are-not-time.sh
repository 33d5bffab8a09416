#!/usr/bin/env bash
# torch's simulation of a pipeline counts each send, receive and wait as a step,
# so its steps rank schedules in another order than time does.
#
# Version: torch 2.15.0 (Python 3.11, no processes are started).
# Behaviour: _simulate() of a schedule ends in "Unsupported action type 0UNSHARD",
#   since the schedule lists actions of FSDP even if the model does not use FSDP.
#   Without these actions the simulation works. A step is then one action of any
#   kind: a send counts as much as a forward, and a wait as much as a backward.
#   Waits are new in torch 2.15, so the same order has more steps than before.
# Seen on 2026-11-27 (4 ranks, 8 micro-batches; a slot is one forward or one
#   backward of a whole rank, whose layers are cut into two stages if interleaved):
#   order              slots needed   steps   steps without waits
#   1F1B                         22      74                    58
#   interleaved 1F1B             19     188                   152
#   Two stages of the interleaved order are one slot: 188 steps count as 94.
# Why it matters: If messages are free, the interleaved order is faster. By its
#   steps it looks slower. Do not compare steps of different versions of torch, or
#   of orders with different numbers of messages.
# What chimera does: In its simulator actions and messages have times of their own,
#   and a wait has none. It reports the makespan in slots or in seconds.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --no-compile torch==2.15.0 \
  numpy==2.4.6
"$work/venv/bin/python" -W ignore - <<'PYTHON'
import torch
import torch.distributed as dist
from torch.distributed.pipelining import PipelineStage, schedules
from torch.testing._internal.distributed.fake_pg import FakeStore

D, N = 4, 8
dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=D)


def make(chunks):
    stages = [PipelineStage(torch.nn.Linear(1, 1), i * D, chunks * D,
                            torch.device("cpu")) for i in range(chunks)]
    return schedules.ScheduleInterleaved1F1B(
        stages, N, loss_fn=lambda output, target: output.sum())


def steps(schedule, chunks, left_out):
    rows = {rank: [a for a in row if not any(k in str(a) for k in left_out)]
            for rank, row in schedule.pipeline_order_with_comms.items()}
    lines = schedules._simulate_comms_compute(
        rows, lambda stage: schedule.stage_index_to_group_rank[stage], chunks * D)
    return max(len(line) for line in lines.values())


def slots(chunks):
    """Narayanan et al. 2021, 2.2: bubbles shrink with the stages per rank."""
    return 2 * N + 2 * (D - 1) / chunks


seen = []
for chunks in (1, 2):
    schedule = make(chunks)
    try:
        schedule._simulate()
        raise SystemExit("changed: _simulate() of a whole schedule works")
    except ValueError as error:
        print(f"{chunks} stages per rank: _simulate(): {error}")
    fsdp = ["UNSHARD", "RESHARD", "REDUCE_GRAD"]
    seen.append((slots(chunks), steps(schedule, chunks, fsdp) / chunks,
                 steps(schedule, chunks, fsdp + ["WAIT"]) / chunks))
    print("  slots %g, steps / stages per rank %g, without waits %g" % seen[-1])
plain, interleaved = seen
assert interleaved[1] > plain[1], "changed: steps rank orders as time does"
assert plain[2] < plain[1], "changed: waits are no steps"
PYTHON
