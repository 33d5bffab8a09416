# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pipeline-parallel training: schedules, plans, programs and runs.

    >>> import chimera
    >>> pipeline = chimera.Pipeline(stages=8, workers=4, micro_batches=16, schedule="zb-v")
    >>> step = pipeline.simulate()
    >>> step.makespan
    49.5

A *stage* is a contiguous slice of a model's layers, a *worker* runs one or more stages,
and a *micro-batch* is a part of a step's samples. `schedules()` lists all schedules.

Schedules need nothing but this package. `plan`, `compile` and `train` call the tools of
the project: see `tools.find`.
"""

from chimera.comparison import compare, page
from chimera.costs import Costs, Link, Sizes, StageCosts
from chimera.exporting import Package, export
from chimera.planning import Plan, plan
from chimera.program import Program, compile
from chimera.results import Bound, Step, Violation
from chimera.schedule import Pipeline, Schedule, ScheduleKind, schedules
from chimera.tools import Error
from chimera.training import Run, TrainingStep, train

__all__ = [
    "Bound",
    "Costs",
    "Error",
    "Link",
    "Package",
    "Pipeline",
    "Plan",
    "Program",
    "Run",
    "Schedule",
    "ScheduleKind",
    "Sizes",
    "StageCosts",
    "Step",
    "TrainingStep",
    "Violation",
    "compare",
    "compile",
    "export",
    "page",
    "plan",
    "schedules",
    "train",
]
