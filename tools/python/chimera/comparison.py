# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Several schedules side by side."""

from __future__ import annotations

import html
import os
import pathlib

from collections.abc import Iterable

from chimera import _schedule
from chimera.schedule import Schedule, framed, page_of


class Comparison:
    """Reports of several schedules, the fastest first.

    `rows` has a dict for each, `frame()` is a pandas.DataFrame. Printed, it is a table.
    """

    def __init__(self, schedules: list[Schedule]):
        self._schedules = schedules
        self.rows = sorted(
            (schedule.report() for schedule in schedules), key=lambda row: row["step"]
        )

    def frame(self):
        """A pandas.DataFrame with a row for each schedule."""
        import pandas

        return pandas.DataFrame(self.rows)

    def _repr_html_(self):
        """What a notebook shows: the page and, above it, the table."""
        table = f"<pre>{html.escape(str(self))}</pre>"
        return table + (framed(self._schedules) or "")

    def __str__(self):
        return _schedule.render_reports(
            [schedule._timed for schedule in self._schedules], "comparison"
        )

    __repr__ = __str__

    def __len__(self):
        return len(self.rows)


def compare(schedules: Iterable[Schedule]) -> Comparison:
    """Compares schedules by the time of a step. Raises ValueError if one is not valid.

        print(chimera.compare(
            chimera.Pipeline(workers=4, micro_batches=8, schedule=name)
            for name in ("1f1b", "chimera", "zb-v")))
    """
    return Comparison(_checked(schedules))


def page(
    schedules: Schedule | Iterable[Schedule], path: str | os.PathLike | None = None
) -> str:
    """A page for a browser with these schedules on one time axis, to zoom and to look at
    actions: what `chimera-show --html` writes. Writes the file if `path` is given. Raises
    ValueError if a schedule is not valid."""
    all_of = _checked([schedules] if isinstance(schedules, Schedule) else schedules)
    text = page_of(all_of)
    if path is not None:
        pathlib.Path(path).write_text(text, encoding="utf-8")
    return text


def _checked(schedules: Iterable[Schedule]) -> list[Schedule]:
    all_of = list(schedules)
    for schedule in all_of:
        if not isinstance(schedule, Schedule):
            raise TypeError(f"expected a chimera.Schedule, got {schedule!r}")
    if not all_of:
        raise ValueError("expected a schedule, got none")
    return all_of
