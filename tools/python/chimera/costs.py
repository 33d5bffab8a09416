# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The times and the sizes of a pipeline, as a user states them.

Times are exact: ints, fractions and decimals as they are, floats as the decimals that
Python prints for them. If that would need more than 13 digits, for the unit or for the
longest time, all times are rounded to 13 digits.
"""

from __future__ import annotations

import dataclasses
import decimal
import fractions
import functools
import math
import numbers
from collections.abc import Sequence
from typing import Literal, Union

from chimera import _schedule

Time = Union[int, float, fractions.Fraction, decimal.Decimal]

# The library counts times in ticks, and refuses sums above 2**62. The longest of the
# stated times has at most this number, about 13 digits.
_MOST_TICKS = 2**44


def _exact(name: str, time: Time) -> fractions.Fraction:
    """The time as a fraction. A float counts as the decimal that Python prints for it, so
    0.1 is a tenth."""
    if isinstance(time, bool) or not isinstance(time, (numbers.Real, decimal.Decimal)):
        raise TypeError(f"expected a number for {name}, got {time!r}")
    if not math.isfinite(time):
        raise ValueError(f"expected a finite time for {name}, got {time!r}")
    if time < 0:
        raise ValueError(f"expected a time of at least 0 for {name}, got {time!r}")
    if isinstance(time, numbers.Rational):
        return fractions.Fraction(time)
    return fractions.Fraction(str(time))


@dataclasses.dataclass(frozen=True)
class Costs:
    """The times of actions, alike for all stages. Any unit; `Pipeline.unit` names it.

    per: "worker" if all stages of a worker in one pipeline together take these times,
        so with two stages a worker each takes half; "stage" if each stage takes them.
    forward: of one micro-batch.
    backward: a whole backward. Default: twice the forward.
    weight_gradient: its part of a backward that is split. Default: half.
    update: of the weights, once a step.
    """

    forward: Time = 1
    backward: Time | None = None
    weight_gradient: Time | None = None
    update: Time = 0
    per: Literal["worker", "stage"] = "worker"

    def __post_init__(self):
        if self.per not in ("worker", "stage"):
            raise ValueError(f"expected per='worker' or per='stage', got {self.per!r}")
        _exact("update", self.update)
        if _exact("forward", self.forward) == 0:
            raise ValueError("expected a forward above 0, got 0")
        whole = 2 * _exact("forward", self.forward)
        if self.backward is not None:
            whole = _exact("backward", self.backward)
            if whole == 0:
                raise ValueError("expected a backward above 0, got 0")
        if self.weight_gradient is not None:
            half = _exact("weight_gradient", self.weight_gradient)
            if not 0 < half < whole:
                raise ValueError(
                    f"expected a weight_gradient between 0 and the whole backward, {whole}, "
                    f"got {self.weight_gradient!r}"
                )


@dataclasses.dataclass(frozen=True)
class StageCosts:
    """The times of the actions of one stage, for one micro-batch.

    backward: Default: twice the forward.
    weight_gradient: Default: half of the backward.
    input_gradient: Default: the rest of the backward.
    recompute: Default: as long as the forward.
    paired_forward: by how much a forward makes a backward longer that runs with it as one
        action (PyTorch's OVERLAP_F_B). Default: the forward, so a pair saves no time.
    joined_weight_gradient: by how much a weight gradient makes another one longer that
        runs with it as one action. Default: the weight gradient.
    """

    forward: Time = 1
    backward: Time | None = None
    input_gradient: Time | None = None
    weight_gradient: Time | None = None
    recompute: Time | None = None
    update: Time = 0
    paired_forward: Time | None = None
    joined_weight_gradient: Time | None = None

    def _fields(self) -> dict[str, fractions.Fraction | None]:
        """All times, with defaults in place of None where there is one."""
        given = {
            field.name: getattr(self, field.name) for field in dataclasses.fields(self)
        }
        times = {
            name: None if time is None and name != "forward" else _exact(name, time)
            for name, time in given.items()
        }

        def default(name, time):
            if times[name] is None:
                times[name] = time

        default("backward", 2 * times["forward"])
        default("weight_gradient", times["backward"] / 2)
        default("input_gradient", times["backward"] - times["weight_gradient"])
        default("recompute", times["forward"])
        return times


@dataclasses.dataclass(frozen=True)
class Link:
    """The times of a message between two workers, in the unit of the costs.

    latency: on the way; no worker is busy.
    send: for which the sending worker is busy.
    receive: for which the receiving worker is busy.
    latency_per_mib, send_per_mib, receive_per_mib: in addition, for each MiB of the
        message (`Sizes.boundary`).
    """

    latency: Time = 0
    latency_per_mib: Time = 0
    send: Time = 0
    send_per_mib: Time = 0
    receive: Time = 0
    receive_per_mib: Time = 0


_NAMES_OF_LINKS = {
    "latency": "p2p",
    "latency_per_mib": "p2p-per-mib",
    "send": "send",
    "send_per_mib": "send-per-mib",
    "receive": "receive",
    "receive_per_mib": "receive-per-mib",
}


@dataclasses.dataclass(frozen=True)
class Sizes:
    """The bytes of one stage.

    weights: its parameters. Their gradients are as large.
    optimizer: the state of the optimizer.
    stash: what a forward keeps for its backward, for one micro-batch.
    weight_stash: what an input gradient keeps for its weight gradient.
    boundary: the stage's output for one micro-batch, which is sent to the next stage. The
        gradient of the output is as large.
    """

    weights: int = 0
    optimizer: int = 0
    stash: int = 0
    weight_stash: int = 0
    boundary: int = 0


def _bytes(name: str, size: int) -> int:
    if isinstance(size, bool) or not isinstance(size, numbers.Integral):
        raise TypeError(f"expected a whole number of bytes for {name}, got {size!r}")
    if not 0 <= size < 2**62:
        raise ValueError(f"expected {name} below 2**62 bytes, got {size!r}")
    return int(size)


def _stage_bytes(sizes: Sizes) -> _schedule.StageBytes:
    if not isinstance(sizes, Sizes):
        raise TypeError(f"expected sizes=chimera.Sizes(...), got {sizes!r}")
    result = _schedule.StageBytes()
    for field in dataclasses.fields(Sizes):
        setattr(result, field.name, _bytes(field.name, getattr(sizes, field.name)))
    return result


def times_of(
    costs: Costs | Sequence[StageCosts], link: Link | None
) -> tuple[_schedule.Times, list[_schedule.StageCost]]:
    """The stated times in ticks: those of all stages, or those of each stage."""
    if link is not None and not isinstance(link, Link):
        raise TypeError(f"expected link=chimera.Link(...), got {link!r}")
    if isinstance(costs, Costs):
        return _times_of(costs, link)
    costs = tuple(costs)
    for stage in costs:
        if not isinstance(stage, StageCosts):
            raise TypeError(
                "expected chimera.Costs(...) or a chimera.StageCosts(...) for each stage, "
                f"got {stage!r}"
            )
    return _times_of(costs, link)


@functools.lru_cache(maxsize=64)
def _times_of(
    costs: Costs | tuple[StageCosts, ...], link: Link | None
) -> tuple[_schedule.Times, list[_schedule.StageCost]]:
    links = {}
    if link is not None:
        links = {
            _NAMES_OF_LINKS[field.name]: _exact(field.name, getattr(link, field.name))
            for field in dataclasses.fields(Link)
        }
    times = _schedule.Times()
    stages, uniform = [], {}
    if isinstance(costs, Costs):
        per_worker = costs.per == "worker"
        times.scope = times.Scope.WORKER if per_worker else times.Scope.STAGE
        uniform = {
            name: _exact(name, getattr(costs, name) or 0)
            for name in ("forward", "backward", "weight_gradient", "update")
        }
    else:
        times.scope = times.Scope.OWN_COSTS
        for stage in costs:
            stages.append(stage._fields())
    stated = [*links.values(), *uniform.values()]
    stated += [time for stage in stages for time in stage.values() if time is not None]
    per_unit = math.lcm(*(time.denominator for time in stated))
    longest = max(stated)
    if longest > _MOST_TICKS:
        raise ValueError(f"expected times of at most {_MOST_TICKS}, got {float(longest):g}")
    if max(longest, 1) * per_unit > _MOST_TICKS:
        per_unit = 10 ** int(math.log10(_MOST_TICKS / max(longest, 1)))

    def ticks(time: fractions.Fraction) -> int:
        count = round(time * per_unit)
        if count == 0 and time > 0:
            raise ValueError(
                f"expected times of at least {1 / per_unit:g}, since the longest is "
                f"{float(longest):g}, got {float(time):g}"
            )
        return count

    times.per_unit = per_unit
    for name, time in uniform.items():
        setattr(times, name, ticks(time))
    for name, time in links.items():
        if time > 0:
            times.state_message(name, ticks(time))
    costs_of_stages = []
    for stage in stages:
        cost = _schedule.StageCost()
        for name, time in stage.items():
            if time is not None:
                setattr(cost, name, ticks(time))
        costs_of_stages.append(cost)
    return times, costs_of_stages
