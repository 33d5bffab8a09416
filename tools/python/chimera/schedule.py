# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Schedules: from a family, from orders, or from a file of PyTorch."""

from __future__ import annotations

import dataclasses
import html
import json
import numbers
import os
import pathlib
import warnings
from collections.abc import Iterable, Mapping, Sequence

from chimera import _schedule
from chimera.costs import Costs, Link, Sizes, StageCosts, _bytes, _stage_bytes, times_of
from chimera.results import Step, Violation

_MOST_HTML_BYTES = 5_000_000


@dataclasses.dataclass(frozen=True)
class ScheduleKind:
    """A family of schedules.

    name: the value of `Pipeline(schedule=...)`.
    needs: the conditions on stages, workers and micro-batches, as text.
    options: possible values and meaning, by name.
    """

    name: str
    summary: str
    needs: str
    options: dict[str, str]
    stages_per_worker: int


def schedules() -> list[ScheduleKind]:
    """All families of schedules."""
    return [ScheduleKind(*row) for row in _schedule.schemes()]


def _whole(name: str, value: int) -> int:
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(f"expected a whole number for {name}, got {value!r}")
    if abs(value) >= 2**62:
        raise ValueError(f"expected {name} of at most 65535, got {value!r}")
    return int(value)


def _statement(
    costs: Costs | Sequence[StageCosts],
    link: Link | None,
    sizes: Sizes | Sequence[Sizes] | None,
    stages: int | None,
    unit: str,
    memory_cap: int | None,
    data_parallel: int,
    all_reduce: str,
) -> _schedule.Statement:
    statement = _schedule.Statement()
    statement.times, statement.costs = times_of(costs, link)
    statement.unit = unit
    if sizes is not None:
        one = isinstance(sizes, Sizes)
        if one and stages is None:
            raise ValueError("expected sizes for each stage (a list), got one for all")
        statement.bytes = [_stage_bytes(each) for each in ([sizes] * stages if one else sizes)]
    if memory_cap is not None:
        if _bytes("memory_cap", memory_cap) == 0:
            raise ValueError("expected a memory_cap of at least 1 byte, got 0")
        statement.memory_cap = int(memory_cap)
    statement.copies = _whole("data_parallel", data_parallel)
    statement.all_reduce = all_reduce
    return statement


class Schedule:
    """The order of actions on each worker, with the times of actions and messages.

    Make one with `Pipeline(...)`, `Schedule.from_orders(...)` or
    `Schedule.from_torch_csv(...)`.
    """

    def __init__(self, timed: _schedule.TimedSchedule, cap: int | None = None):
        self._timed = timed
        self._cap = None if cap is None else _whole("cap", cap)
        if timed.note:
            warnings.warn(timed.note, stacklevel=3)

    @classmethod
    def from_orders(
        cls,
        rows: str | Iterable[str],
        *,
        zero_bubble_notation: bool = False,
        costs: Costs | Sequence[StageCosts] = Costs(),
        link: Link | None = None,
        sizes: Sequence[Sizes] | None = None,
        unit: str = "none",
        cap: int | None = None,
        memory_cap: int | None = None,
        data_parallel: int = 1,
        all_reduce: str = "lazy",
    ) -> Schedule:
        """The schedule with these orders, one row a worker.

            chimera.Schedule.from_orders(["0F0 0F1 0B0 0B1", "1F0 1B0 1F1 1B1"])

        A word is an action: `1F0` is the forward of micro-batch 0 on stage 1. The letters
        are F (forward), B (backward), I (input gradient), W (weight gradient) and R
        (recompute). Without stages, worker w has stage w. `.` is an idle slot, `F1+B0` a
        pair.

        zero_bubble_notation: B is an input gradient and BW a whole backward, as in the
            zero-bubble papers.
        Other arguments: see `Pipeline`.

        Raises ValueError if a word is wrong, or if a stage of a micro-batch is missing or
        on two workers. Other faults, such as a deadlock, are what `verify` returns.
        """
        if isinstance(rows, str):
            text = rows
        else:
            rows = list(rows)
            for row in rows:
                if not isinstance(row, str):
                    raise TypeError(f"expected a row of words for each worker, got {row!r}")
            text = "\n".join(rows)
        statement = _statement(
            costs, link, sizes, None, unit, memory_cap, data_parallel, all_reduce
        )
        return Schedule(
            _schedule.TimedSchedule.from_orders(
                "orders", text, bool(zero_bubble_notation), statement
            ),
            cap,
        )

    @classmethod
    def from_torch_csv(
        cls,
        path: str | os.PathLike,
        *,
        costs: Costs | Sequence[StageCosts] = Costs(),
        link: Link | None = None,
        sizes: Sequence[Sizes] | None = None,
        unit: str = "none",
        cap: int | None = None,
        memory_cap: int | None = None,
        data_parallel: int = 1,
        all_reduce: str = "lazy",
    ) -> Schedule:
        """The schedule in a `compute_only` file of torch.distributed.pipelining.

        Raises ValueError with line and column if the file is wrong, or if it is a lowered
        program, which `chimera-show FILE` checks. Arguments: see `Pipeline`.
        """
        text = pathlib.Path(path).read_text(encoding="utf-8", errors="replace")
        statement = _statement(
            costs, link, sizes, None, unit, memory_cap, data_parallel, all_reduce
        )
        return Schedule(
            _schedule.TimedSchedule.from_torch_csv(os.fspath(path), text, statement), cap
        )

    @property
    def name(self) -> str:
        """The name of the family, or "given" for orders that a user gives."""
        return self._timed.name

    @property
    def stages(self) -> int:
        return self._timed.stages

    @property
    def workers(self) -> int:
        return self._timed.workers

    @property
    def micro_batches(self) -> int:
        return self._timed.micro_batches

    @property
    def order(self) -> list[str]:
        """The order of each worker, as words that `from_orders` reads. If steps overlap,
        which `from_orders` does not read, `|` separates prologue, body and epilogue."""
        return self._timed.orders

    def verify(self) -> list[Violation]:
        """The constraints that the schedule violates; empty if it is valid. A schedule of
        a family is always valid, unless it exceeds `memory_cap`."""
        found = []
        for constraint, message, worker, index, notes in self._timed.violations:
            places = [(text, self._timed.place_of(w, i)) for text, w, i in notes]
            found.append(
                Violation(
                    constraint,
                    message,
                    worker if worker >= 0 else None,
                    index if index >= 0 else None,
                    tuple(f"{place}: {text}" if place else text for text, place in places),
                )
            )
        return found

    def simulate(self) -> Step:
        """Computes when each action runs: each as soon as its worker and its inputs are
        ready. Raises ValueError if the schedule is not valid."""
        return Step(self._timed)

    def report(self, frame: bool = False):
        """Sizes, times, bubbles, peaks, formulas and bounds, as a dict: what
        `chimera-show --report` prints. With frame=True as a pandas.DataFrame of one row.
        Raises ValueError if the schedule is not valid."""
        rows = json.loads(_schedule.render_reports([self._timed], "json", self._cap))
        if not frame:
            return rows[0]
        import pandas

        return pandas.DataFrame(rows)

    def grid(self, width: int = 160) -> str:
        """The schedule as text: a row for each worker, with `width` characters a line."""
        return _schedule.render_timelines(
            [self._timed], "text", _whole("width", width), _schedule.Picture()
        )

    def svg(self, *, cell_width: float = 0, title: bool = True) -> str:
        """The schedule as a picture.

        cell_width: of the shortest action, in pixels. 0: so wide that boxes are readable.
        """
        picture = _schedule.Picture()
        picture.cell_width = float(cell_width)
        picture.has_title = bool(title)
        return _schedule.render_timelines([self._timed], "svg", 160, picture)

    def trace(self) -> str:
        """The schedule as a trace that Perfetto and chrome://tracing show (JSON)."""
        return _schedule.render_timelines(
            [self._timed], "chrome-trace", 160, _schedule.Picture()
        )

    def to_mlir(self, *, of: str = "", more: str = "") -> str:
        """A chimera.pipeline with this schedule, without its times.

        of: the symbols of its model and training, such as "of @model with @training".
        more: more clauses, such as "micro_batch_size(8)". `chimera.compile` adds both.
        """
        return self._timed.module(of, more)

    def to_torch_csv(self, path: str | os.PathLike | None = None) -> str:
        """The schedule as a `compute_only` file of torch.distributed.pipelining. Writes
        the file if `path` is given. Raises ValueError with the name of what the format
        cannot hold, such as a stage on two ranks."""
        text = self._timed.torch_csv()
        if path is not None:
            pathlib.Path(path).write_text(text, encoding="utf-8", newline="")
        return text

    def __repr__(self):
        return f"<chimera.Schedule {self._timed.title}>"

    def __str__(self):
        return self.grid()

    def _repr_html_(self):
        """What a notebook shows: the page or, if it is too large, the title."""
        return None if self._timed.violations else framed([self])


def page_of(schedules: Sequence[Schedule]) -> str:
    """The page with these schedules."""
    return _schedule.render_timelines(
        [schedule._timed for schedule in schedules], "html", 160, _schedule.Picture()
    )


def framed(schedules: Sequence[Schedule]) -> str | None:
    """The page as a frame in another page. None if the page is too large for a notebook."""
    text = page_of(schedules)
    if len(text) > _MOST_HTML_BYTES:
        return None
    rows = sum(schedule.workers for schedule in schedules)
    height = min(120 + 34 * len(schedules) + 48 * rows, 720)  # of the rows (Rows.js)
    return (
        f'<iframe srcdoc="{html.escape(text)}" '
        f'style="width: 100%; height: {height}px; border: 0"></iframe>'
    )


def _text_of(value) -> str:
    """The value of an option, as text."""
    return value if isinstance(value, str) else str(_whole("an option", value))


class Pipeline(Schedule):
    """A pipeline whose schedule a family makes.

        chimera.Pipeline(stages=8, workers=4, micro_batches=16, schedule="zb-v")

    stages, workers: one may be left out. Then the pipeline has the usual number of stages
        per worker of the schedule (`schedules()`).
    micro_batches: of one step.
    schedule: its name.
    options: of the schedule, by name, such as {"pipelines": 4}. The value "best" is
        replaced by the value with the shortest step.
    split_backward: each backward becomes an input gradient and a weight gradient.
    recompute: True, or the stages whose activations are computed again.
    costs: `Costs` for all stages alike, or a `StageCosts` for each stage.
    link: the times of messages. Default: messages take no time.
    sizes: `Sizes` of all stages alike, or of each stage.
    unit: of all times: "ns", "us", "ms", "s", or "none".
    cap: the most activations that a worker may have; the report names workers above it.
    memory_cap: the most bytes of a worker; a worker above it is a violation.
    data_parallel: copies of all workers, whose gradients are summed.
    all_reduce: when gradients are summed: "lazy", "eager" or "eager_opt".

    Raises ValueError if a value is wrong or if the schedule is not possible for these
    sizes.
    """

    def __init__(
        self,
        stages: int | None = None,
        workers: int | None = None,
        micro_batches: int | None = None,
        schedule: str = "1f1b",
        *,
        options: Mapping[str, str | int] | None = None,
        split_backward: bool = False,
        recompute: bool | Sequence[int] = False,
        recompute_fused: bool = False,
        costs: Costs | Sequence[StageCosts] = Costs(),
        link: Link | None = None,
        sizes: Sizes | Sequence[Sizes] | None = None,
        unit: str = "none",
        cap: int | None = None,
        memory_cap: int | None = None,
        data_parallel: int = 1,
        all_reduce: str = "lazy",
        num_microbatches: int | None = None,
    ):
        if num_microbatches is not None:
            warnings.warn("num_microbatches is called micro_batches here", stacklevel=2)
            micro_batches = num_microbatches if micro_batches is None else micro_batches
        if micro_batches is None:
            raise TypeError("expected micro_batches=NUMBER, got none")
        if not isinstance(schedule, str):
            raise TypeError(f"expected the name of a schedule, got {schedule!r}")
        numbers_of = _schedule.Sizes()
        numbers_of.stages, numbers_of.workers = _both(stages, workers, schedule)
        numbers_of.micro_batches = _whole("micro_batches", micro_batches)
        numbers_of.split_backward = bool(split_backward)
        if recompute is True:
            recompute = range(min(numbers_of.stages, 65535))
        numbers_of.recompute = [_whole("recompute", stage) for stage in recompute or ()]
        numbers_of.is_fused = bool(recompute_fused)
        statement = _statement(
            costs, link, sizes, min(numbers_of.stages, 65535), unit, memory_cap,
            data_parallel, all_reduce,
        )  # fmt: skip
        texts = {name: _text_of(value) for name, value in (options or {}).items()}
        super().__init__(
            _schedule.TimedSchedule(schedule, texts, numbers_of, statement), cap
        )

    def __repr__(self):
        return f"<chimera.Pipeline {self._timed.title}>"


def _both(stages: int | None, workers: int | None, schedule: str) -> tuple[int, int]:
    """The numbers of stages and of workers, of which one may be missing."""
    if stages is None and workers is None:
        raise TypeError("expected stages=NUMBER or workers=NUMBER, got neither")
    each = next(
        (kind.stages_per_worker for kind in schedules() if kind.name == schedule), 1
    )
    if stages is None:
        return _whole("workers", workers) * each, _whole("workers", workers)
    stages = _whole("stages", stages)
    if workers is not None:
        return stages, _whole("workers", workers)
    return stages, stages // each if stages % each == 0 else stages

