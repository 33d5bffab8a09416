# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pipeline-parallel schedules: make, check, simulate and compare them.

    >>> import chimera
    >>> pipeline = chimera.Pipeline(stages=8, workers=4, micro_batches=16, schedule="zb-v")
    >>> step = pipeline.simulate()
    >>> step.makespan
    49.5

A *stage* is a contiguous slice of a model's layers, a *worker* runs one or more stages,
and a *micro-batch* is a part of a step's samples. `schedules()` lists all schedules.
"""

from chimera.comparison import compare, page
from chimera.costs import Costs, Link, Sizes, StageCosts
from chimera.results import Bound, Step, Violation
from chimera.schedule import Pipeline, Schedule, ScheduleKind, schedules

__all__ = [
    "Bound",
    "Costs",
    "Link",
    "Pipeline",
    "Schedule",
    "ScheduleKind",
    "Sizes",
    "StageCosts",
    "Step",
    "Violation",
    "compare",
    "page",
    "schedules",
]
