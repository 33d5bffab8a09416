#!/usr/bin/env bash
# torch 2.15's pipelines return twelve rows for ten, without an error, if the
# number of micro-batches does not divide the number of rows.
#
# Versions: torch 2.15.0 and, for comparison, 2.11.0 (Python 3.11, gloo).
# Behaviour: Two ranks evaluate ten rows in four micro-batches (ScheduleGPipe,
#   eval). torch 2.15 splits the rows into 3, 3, 2 and 2. The second rank receives
#   each micro-batch into a buffer for three rows and computes with all three. The
#   result has twelve rows. Rows 8 and 11 belong to no input, and their values
#   differ from run to run. torch 2.11 checks the shape and raises.
# Seen on 2026-11-27 (for each row of the result, the input that it belongs to):
#   torch 2.11.0: PipeliningShapeError
#   torch 2.15.0: 12 rows: 0 1 2 3 4 5 6 7 none 8 9 none
# Why it matters: A mean over the result (a held-out loss, an accuracy) counts two
#   rows too many. If results are matched to inputs by position, they are wrong from
#   row 8 on. The last mini-batch of a data set often is the uneven one.
# What chimera does: The number of samples of a micro-batch is part of the program.
#   Training and evaluation take only whole micro-batches of this size.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for version in 2.11.0 2.15.0; do
  python3 -m venv "$work/venv"
  "$work/venv/bin/pip" install -q --no-compile "torch==$version" \
    numpy==2.4.6
  "$work/venv/bin/python" -W ignore - "$work/$version" <<'PYTHON'
import datetime
import pathlib
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as multiprocessing
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe

ROWS = torch.arange(30.0).view(10, 3)


def run(rank, folder):
    torch.set_num_threads(1)
    torch.manual_seed(0)
    dist.init_process_group(
        "gloo", store=dist.FileStore(folder + ".store", 2), rank=rank,
        world_size=2, timeout=datetime.timedelta(seconds=60))
    layers = [torch.nn.Linear(3, 2), torch.nn.Linear(2, 1)]
    stage = PipelineStage(layers[rank], rank, 2, torch.device("cpu"))
    schedule = ScheduleGPipe(stage, n_microbatches=4)
    try:
        result = schedule.eval(*([ROWS] if rank == 0 else []))
    except Exception as error:
        if rank == 0:
            pathlib.Path(folder + ".seen").write_text(type(error).__name__)
        return
    if rank == 1:
        inputs = [[str(i) for i, row in enumerate(layers[1](layers[0](ROWS)))
                   if torch.allclose(row, got)] or ["none"] for got in result]
        pathlib.Path(folder + ".seen").write_text(
            f"{len(result)} rows: " + " ".join(i[0] for i in inputs))


multiprocessing.start_processes(run, (sys.argv[1],), 2, start_method="fork")
seen = pathlib.Path(sys.argv[1] + ".seen").read_text()
print(f"torch {torch.__version__}: {seen}")
known = ("PipeliningShapeError" if torch.__version__ < "2.15" else
         "12 rows: 0 1 2 3 4 5 6 7 none 8 9 none")
assert seen == known, f"changed: expected {known}"
PYTHON
  rm -rf "$work/venv"
done
