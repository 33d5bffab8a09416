# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What `Schedule` computes."""

from __future__ import annotations

import dataclasses
import functools

from chimera import _schedule


@dataclasses.dataclass(frozen=True)
class Bound:
    """A lower bound of the makespan of every schedule with the same placement.

    name: "LB1" to "LB6", as in the report of chimera-show.
    time: in the unit of the costs.
    """

    name: str
    time: float


@dataclasses.dataclass(frozen=True)
class Violation:
    """A constraint that a schedule violates.

    constraint: "missing", "duplicate", "order", "deadlock", …
    worker, position: the place of the wrong action in the worker's order, or None if the
        violation is not about one worker or one action.
    notes: more about it, such as the actions of a cycle.
    """

    constraint: str
    message: str
    worker: int | None
    position: int | None
    notes: tuple[str, ...]

    def __str__(self):
        return f"{self.constraint}: {self.message}"


def _list_of_lists(per_unit, values):
    return [[time / per_unit for time in row] for row in values]


class Step:
    """When the actions of one step run. Times are in the unit of the costs."""

    def __init__(self, timed: _schedule.TimedSchedule):
        self._timed = timed
        self._timing = timed.simulate()
        self._per_unit = timed.per_unit

    @property
    def makespan(self) -> float:
        """From 0 to the end of the last action. If steps overlap, of two steps."""
        return self._timing.makespan / self._per_unit

    @functools.cached_property
    def step_time(self) -> float:
        """The mean time of a step in a run of many steps: actions, all-reduces as far as
        they do not overlap with actions, and updates."""
        return self._timed.step_time() / self._per_unit

    @property
    def bubbles(self) -> dict[str, float]:
        """Idle shares, by definition:

        "ratio": the idle time of all workers, divided by makespan × workers.
        "flush": the makespan minus the busy time of the busiest worker, divided by the
            makespan (GPipe, Chimera).
        "internal": the same with the longest time from the first action of a worker to
            its last one in place of the makespan (zero-bubble papers).
        """
        timing = self._timing
        load, inner = timing.max_load, timing.internal_bubble
        return {
            "ratio": timing.bubble_ratio,
            "flush": timing.flush_bubble / timing.makespan,
            "internal": inner / (inner + load),
        }

    @property
    def peak_activations(self) -> list[int]:
        """For each worker, the most micro-batches whose activations it has at once, summed
        over its stages."""
        return self._timing.peak_activations

    @property
    def peak_bytes(self) -> list[int]:
        """For each worker, the most bytes that it has at once. All 0 without `sizes`."""
        return self._timing.peak_bytes

    @property
    def busy(self) -> list[float]:
        """For each worker, the time in which it runs actions."""
        return [time / self._per_unit for time in self._timing.busy]

    @property
    def idle(self) -> list[float]:
        """For each worker, the rest of the makespan."""
        return [time / self._per_unit for time in self._timing.idle]

    @functools.cached_property
    def starts(self) -> list[list[float]]:
        """The start of each action: `starts[worker][position]`. The actions are the words
        of `Schedule.order`, except that a joined word has several."""
        return _list_of_lists(self._per_unit, self._timing.starts)

    @functools.cached_property
    def ends(self) -> list[list[float]]:
        """The end of each action, like `starts`."""
        return _list_of_lists(self._per_unit, self._timing.ends)

    @property
    def critical_path(self) -> list[tuple[int, int]]:
        """A chain of actions, as pairs of worker and position, that determines the
        makespan."""
        return self._timing.critical_path

    @functools.cached_property
    def bounds(self) -> list[Bound]:
        """The lower bounds of the makespan that hold for these costs."""
        return [Bound(name, time / self._per_unit) for name, time in self._timed.bounds()]

    @property
    def gap(self) -> float | None:
        """By which share the makespan is above the best bound. None without bounds."""
        best = max((bound.time for bound in self.bounds), default=0)
        return self.makespan / best - 1 if best else None

    def __repr__(self):
        return (
            f"Step(makespan={self.makespan:g}, step_time={self.step_time:g}, "
            f"bubble={self.bubbles['ratio']:.3f}, "
            f"peak_activations={max(self.peak_activations)})"
        )
