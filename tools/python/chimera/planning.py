# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Chooses the cut, the schedule and the sizes for a model on a machine."""

from __future__ import annotations

import json
import os
import pathlib

from chimera import program, tools


class Plan:
    """A way to train a model on a machine.

    name: the schedule and the sizes, as text.
    schedule, workers, stages, micro_batches, micro_batch_size, data_parallel: its parts.
    step: predicted time of a step in seconds.
    peak_bytes: of the worker with the most.
    report: everything that chimera-plan says about the plan, as a dict.
    """

    def __init__(self, report: dict, seconds: float, command: list[str], text: str | None):
        self.report = report
        self.step = report["step"] * seconds
        for name in ("name", "schedule", "workers", "stages", "micro_batches",
                     "micro_batch_size", "data_parallel", "peak_bytes"):  # fmt: skip
            setattr(self, name, report[name])
        self._command, self._text = command, text

    def description(self) -> str:
        """The text that `chimera.compile` and chimera-compile compile."""
        return tools.run("chimera-plan", *self._command, "-o", "-", text=self._text)

    def compile(self, output: str | os.PathLike) -> program.Program:
        """Compiles the plan into a program file."""
        return program.compile(self.description(), output)

    def __repr__(self):
        return f"<chimera.Plan {self.name}: {self.step:.4g} s, {self.peak_bytes / 2**30:.2f} GiB>"


_SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}


def plan(
    model: str | os.PathLike,
    machine: str | os.PathLike = "",
    *,
    batch: int,
    top: int = 10,
    **options,
) -> list[Plan]:
    """The fastest plans for a model on a machine, the fastest first.

        best = chimera.plan("chimera.model @m gpt2 layers(8) heads(4) width(256) "
                            "context(128) vocabulary(256)", machine, batch=64)[0]
        best.compile("best.chimera")

    model, machine: descriptions of a chimera.model and of a chimera.machine: files (path
        objects) or texts. `machine` may be left out if `model` has both. Folders of
        packages are relative to the folder of that file or, with two arguments or a text,
        to the current folder.
    batch: samples in a step, over all copies.
    top: the most plans to return.
    options: other options of chimera-plan, such as devices=8, schedule="1f1b, zb-v",
        bf16=True. `chimera-plan --help` lists them.

    Times are predictions from the machine's numbers. Raises `chimera.Error` with the text
    of chimera-plan if the question is wrong or if no plan is possible.
    """
    # In a file, names of packages are relative to its folder.
    is_file = isinstance(model, os.PathLike) and machine == ""
    text = None if is_file else _text(model) + "\n" + _text(machine)
    command = [os.fspath(model) if is_file else "-", *tools.options({"batch": batch, "top": top, **options})]
    answer = json.loads(tools.run("chimera-plan", *command, "--json", "-", text=text))
    seconds = _SECONDS[answer["time_unit"]]
    return [
        Plan(report, seconds, [*command, "--pick", str(number)], text)
        for number, report in enumerate(answer["plans"], 1)
    ]


def _text(given):
    if isinstance(given, os.PathLike):
        return pathlib.Path(given).read_text(encoding="utf-8")
    if not isinstance(given, str):
        raise TypeError(f"expected a path or a text, got {given!r}")
    return given
