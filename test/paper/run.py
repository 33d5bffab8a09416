#!/usr/bin/env python3
# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reproduces the paper's evaluation with the simulator.

Describes every configuration that the paper measured (paper.py) by stages with the
costs that they would have on its machine (costs.py), gets the step time and the memory
of each worker from chimera-opt, and prints both side by side: throughputs, Eq. 1,
memory, and the conclusions. Ten constants describe the machine. Some of them are fitted
on twelve bars, none of which is Chimera's; everything else is predicted.

    test/paper/run.py [--tools DIR] [--check] [--fit] [--leave-one-out]

With --check the script fails if one of its criteria does. --fit fits the constants
again, prints them and ends; their place is costs.py. --leave-one-out does so without
each of the bars in turn, and prints the effect on the criteria.
"""

import argparse
import collections
import contextlib
import dataclasses
import io
import itertools
import math
import pathlib
import statistics
import sys

import costs
import fit
import paper
import planner
from fit import FITTED_BARS, FITTED_MEMORY, MEMORIES, TIMES, is_fitted
from simulator import Simulator, distinct, error, figure_9

TOOLS = pathlib.Path(__file__).resolve().parents[2] / "build/release/bin"

IDENTIFIED = {
    "speed": ("TFLOP/s of a layer", 1e-12),
    "head_speed": ("TFLOP/s of the head (0.9 of the data sheet's)", 1e-12),
    "launch": ("ms of a layer's forward beside its operations", 1e3),
    "message": ("ns a byte of a message, on each of its three ways", 1e9),
    "staging": ("ns a byte of a gradient, to the host and back", 1e9),
    "exchange": ("ns a byte of a gradient, each of log2(replicas) exchanges", 1e9),
    "threads": ("sums in buckets at a time (PyTorch's default)", 1),
    "memory_bandwidth": ("GB/s of an update (3/4 of the data sheet's)", 1e-9),
    "reserved": ("GB that the framework takes", 1e-9),
    "score_bytes": ("bytes kept of a layer, each score of attention", 1),
}

# Limits of --check, in percent.
MEDIAN_LIMIT, PAIRS_LIMIT, MEMORY_LIMIT, PICK_LIMIT = 10, 85, 5, 3
# Pairs that differ by less than this are ignored.
PAIR_DIFFERENCE = 5

# Simulated memory misses only configurations of PipeDream and 2BW. Their bars of Fig. 9
# that ran are above the simulated ones by 4 bytes (BERT-48: a second buffer for
# gradients) to 12 bytes (GPT-2, 2BW, W2 D16 B1) per parameter of the first stage: their
# code holds more than the schemes need. We do not know what it is, so this number
# explains and corrects nothing.
EXCESS = 12
EXPLAINED = ("PipeDream", "2BW")


def print_constants(constants):
    print("## The machine\n\n| constant | | value | fitted |\n|---|---|---|---|")
    for field in dataclasses.fields(constants):
        text, factor = IDENTIFIED[field.name]
        value = getattr(constants, field.name) * factor
        fitted = "yes" if field.name in TIMES + MEMORIES else ""
        print(f"| {field.name} | {text} | {value:.4g} | {fitted} |")
    print("\n| fitted on | identifies |\n|---|---|")
    for name, purpose in FITTED_BARS.items():
        print(f"| {name} | {purpose} |")
    for model, scheme, depth, batch in FITTED_MEMORY:
        print(f"| Fig. 9 {model} {scheme} D{depth} B{batch}, most | reserved, scores |")


def print_bars(simulator, bars):
    """Prints one table for each figure. Out of memory is judged by the memory of a
    worker."""
    for figure, group in itertools.groupby(bars, key=lambda bar: bar.figure):
        print(f"\n## {figure}, sequences a second\n")
        print("| model | nodes | scheme | W | D | B | N | R | paper | ours | error | |")
        print("|---|---|---|---|---|---|---|---|---|---|---|---|")
        for bar in group:
            ours = simulator.throughput(bar)
            fits = max(simulator.memory(bar)) <= costs.MEMORY
            shown = f"{ours:.1f}" if fits else "OOM"
            if bar.measured is None:
                right = "OOM | " + shown + " |"
            else:
                difference = error(ours, bar.measured)
                right = f"{bar.measured:g} | {shown} | {difference:+.1f} %"
            print(
                f"| {bar.model.name} | {bar.nodes} | {bar.label} | {bar.width} "
                f"| {bar.depth} | {bar.batch} | {bar.micro_batches} "
                f"| {'R' if bar.recompute else ''} | {right} "
                f"| {'fitted' if is_fitted(bar) else ''} |"
            )


def print_equation(simulator):
    print("\n## Eq. 1 and the simulator, Chimera, mini-batches of 512\n")
    print("| model | nodes | W | D | B | R | paper | Eq. 1 | error | ours | error |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    errors = []
    for bar, modelled in paper.EQUATION:
        ours = simulator.throughput(bar)
        pair = error(modelled, bar.measured), error(ours, bar.measured)
        errors.append(pair)
        print(
            f"| {bar.model.name} | {bar.nodes} | {bar.width} | {bar.depth} "
            f"| {bar.batch} | {'R' if bar.recompute else ''} | {bar.measured} "
            f"| {modelled} | {pair[0]:+.1f} % | {ours:.1f} | {pair[1]:+.1f} % |"
        )
    return [statistics.median(map(abs, column)) for column in zip(*errors)]


def print_memory(simulator):
    """Prints Fig. 9. Returns the errors of Chimera's maxima in percent."""
    print("\n## Fig. 9, most and least GB of a worker\n")
    print("| model | W | D | B | scheme | paper | ours | error of the most | |")
    print("|---|---|---|---|---|---|---|---|---|")
    chimera = []
    for bar, gigabytes in figure_9():
        peaks = simulator.memory(bar)
        most, least = max(peaks) / 1e9, min(peaks) / 1e9
        ours = f"{most:.1f}/{least:.1f}"
        if max(peaks) > costs.MEMORY:
            ours = f"OOM ({most:.1f})"
        known, difference, fitted = "OOM", "", ""
        if gigabytes:
            known = "/".join(map(str, gigabytes))
            percent = error(most, gigabytes[0])
            difference = f"{percent:+.1f} %"
            if bar.scheme == "Chimera":
                chimera.append(percent)
            key = (bar.model.name, bar.scheme, bar.depth, bar.batch)
            fitted = "fitted" if key in FITTED_MEMORY else ""
        print(
            f"| {bar.model.name} | {bar.width} | {bar.depth} | {bar.batch} "
            f"| {bar.scheme} | {known} | {ours} | {difference} | {fitted} |"
        )
    return chimera


def judge_memory(simulator, bars):
    """The number of configurations that ran but are simulated as out of memory, and the
    number of those that ran out of memory but are simulated as possible without an
    explanation."""
    cases = distinct(bars) + [bar for bar, _ in figure_9()]
    peaks = {bar: max(simulator.memory(bar)) for bar in cases}
    ran = [bar for bar in cases if bar.measured is not None]
    largest = max(ran, key=peaks.get)
    failed = [bar for bar in cases if bar.measured is None]
    false = [bar for bar in ran if peaks[bar] > costs.MEMORY]
    missed = [bar for bar in failed if peaks[bar] <= costs.MEMORY]
    print(
        f"\n## Out of memory\n\nOf {len(cases)} configurations {len(failed)} ran out "
        f"of memory in the paper; ours finds {len(failed) - len(missed)} of these, and "
        f"calls {len(false)} out of memory that ran. A device has "
        f"{costs.MEMORY / 1e9:.1f} GB; the most that ran takes "
        f"{peaks[largest] / 1e9:.1f} by ours ({largest.name})."
    )
    unexplained = 0
    for bar in missed:
        stages = costs.stages(simulator.constants, bar)
        excess = EXCESS * max(stage.parameters for stage in stages)
        reason = "not explained"
        if bar.scheme in EXPLAINED:
            reason = (
                f"{(peaks[bar] + excess) / 1e9:.1f} with {EXCESS} bytes more for each "
                "parameter of the largest stage"
            )
        unexplained += bar.scheme not in EXPLAINED
        print(f"- missed: {bar.name}: ours {peaks[bar] / 1e9:.1f} GB, {reason}")
    return len(false), unexplained


def groups(bars):
    """Bars of one model, number of nodes and mini-batch, by scheme. PipeDream's
    mini-batches are its own, so it has no others to be compared with."""
    found = collections.defaultdict(lambda: collections.defaultdict(list))
    for bar in bars:
        if bar.measured is not None and bar.scheme != "PipeDream":
            key = (bar.model.name, bar.nodes, bar.mini_batch)
            found[key][bar.scheme].append(bar)
    return found


def judge_pairs(simulator, bars):
    """The share, in percent, of pairs of schemes that are ordered as measured."""
    print("\n## Schemes at their best measured configurations, ordered otherwise\n")
    count = right = 0
    for key, schemes in groups(bars).items():
        best = [max(some, key=lambda bar: bar.measured) for some in schemes.values()]
        for pair in itertools.combinations(best, 2):
            slow, fast = sorted(pair, key=lambda bar: bar.measured)
            if error(fast.measured, slow.measured) < PAIR_DIFFERENCE:
                continue
            count += 1
            ours = simulator.throughput(fast), simulator.throughput(slow)
            if ours[0] > ours[1]:
                right += 1
            else:
                model, nodes, mini_batch = key
                print(
                    f"- {model}, {nodes} nodes, mini-batch {mini_batch}: "
                    f"{fast.label} {fast.measured:g} before {slow.label} "
                    f"{slow.measured:g}, ours {ours[0]:.1f} and {ours[1]:.1f}"
                )
    return right, count


def judge_picks(simulator, bars):
    """The largest loss of a simulated pick against the best measured configuration, and
    the smallest simulated margin between a pick and the next one, in percent."""
    print("\n## Which of Chimera's configurations ours would pick\n")
    print("| model | nodes | mini-batch | of | pick | paper | best | | margin |")
    print("|---|---|---|---|---|---|---|---|---|")
    worst, narrowest = 0.0, math.inf
    for (model, nodes, mini_batch), schemes in groups(bars).items():
        some = schemes.get("Chimera", [])
        if len(some) < 2:
            continue
        order = sorted(some, key=simulator.throughput, reverse=True)
        pick, best = order[0], max(some, key=lambda bar: bar.measured)
        loss = error(pick.measured, best.measured)
        worst = max(worst, -loss)
        margin = error(simulator.throughput(pick), simulator.throughput(order[1]))
        narrowest = min(narrowest, margin)
        words = f"{pick.label} W{pick.width} D{pick.depth} B{pick.batch}"
        words += " R" * pick.recompute
        print(
            f"| {model} | {nodes} | {mini_batch} | {len(some)} | {words} "
            f"| {pick.measured:g} | {best.measured:g} | {loss:+.1f} % "
            f"| {margin:.1f} % |"
        )
    print("\nThe margin is what ours puts between its pick and the next.")
    return worst, narrowest


def median_errors(simulator, bars):
    """Median errors, in percent, of the bars that were not fitted, and of Chimera's
    among them."""
    errors = [
        (bar.scheme, abs(error(simulator.throughput(bar), bar.measured)))
        for bar in bars
        if bar.measured is not None and not is_fitted(bar)
    ]
    return (
        statistics.median(size for _, size in errors),
        statistics.median(size for scheme, size in errors if scheme == "Chimera"),
    )


def print_summary(simulator, bars):
    print("\n## Errors by figure and scheme, without the bars that were fitted\n")
    print("| figure | model | scheme | bars | median of the errors | of their sizes |")
    print("|---|---|---|---|---|---|")
    found = collections.defaultdict(list)
    for bar in bars:
        if bar.measured is not None and not is_fitted(bar):
            key = (bar.figure, bar.model.name, bar.label)
            found[key].append(error(simulator.throughput(bar), bar.measured))
    for (figure, model, label), errors in found.items():
        print(
            f"| {figure} | {model} | {label} | {len(errors)} "
            f"| {statistics.median(errors):+.1f} % "
            f"| {statistics.median(map(abs, errors)):.1f} % |"
        )


def print_leave_one_out(tools):
    """Prints the effect of each single bar on the criteria."""
    bars, once = fit.fitted_bars(), distinct(paper.bars())
    print("| fitted without | median error | Chimera's | pairs | picks lose |")
    print("|---|---|---|---|---|")
    for left in bars:
        others = [bar for bar in bars if bar != left]
        constants = fit.fit_times(tools, others, costs.Constants())
        simulator = Simulator(tools, constants)
        simulator.run(once)
        median, own = median_errors(simulator, once)
        with contextlib.redirect_stdout(io.StringIO()):
            right, count = judge_pairs(simulator, once)
            worst, _ = judge_picks(simulator, once)
        print(
            f"| {left.name} | {median:.1f} % | {own:.1f} % | {right} of {count} "
            f"| {worst:.1f} % |",
            flush=True,
        )


def make_parser():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tools", type=pathlib.Path, default=TOOLS)
    parser.add_argument("--check", action="store_true", help="fail by the criteria")
    parser.add_argument("--fit", action="store_true", help="fit the constants anew")
    parser.add_argument(
        "--leave-one-out", action="store_true", help="fit without each bar in turn"
    )
    return parser


def main():
    args = make_parser().parse_args()
    if args.fit:
        return fit.print_fit(args.tools)
    if args.leave_one_out:
        return print_leave_one_out(args.tools)
    constants = costs.Constants()
    simulator = Simulator(args.tools, constants)
    bars = list(paper.bars())
    once = distinct(bars)
    simulator.run(bars + [bar for bar, _ in figure_9()])

    print_constants(constants)
    print_bars(simulator, [bar for bar in bars if bar.figure != "Eq. 1"])
    equation = print_equation(simulator)
    chimera = print_memory(simulator)
    false, unexplained = judge_memory(simulator, bars)
    right, count = judge_pairs(simulator, once)
    worst, narrowest = judge_picks(simulator, once)
    lost, seconds = planner.judge(args.tools, constants, once)
    print_summary(simulator, once)

    median, own = median_errors(simulator, once)
    most = max(map(abs, chimera))
    # fmt: off
    criteria = [
        (f"median error of the bars that were not fitted: {median:.1f} % "
         f"(Chimera's: {own:.1f} %)",
         f"at most {MEDIAN_LIMIT} %", median <= MEDIAN_LIMIT),
        (f"pairs of schemes ordered right: {right} of {count}, "
         f"{100 * right / count:.0f} %",
         f"at least {PAIRS_LIMIT} %", 100 * right >= PAIRS_LIMIT * count),
        (f"Chimera's maxima of Fig. 9: within {most:.1f} %",
         f"{MEMORY_LIMIT} %", most <= MEMORY_LIMIT),
        (f"called out of memory though they ran: {false}; missed and not "
         f"explained: {unexplained}", "none", false == unexplained == 0),
    ]
    # Not checked: some margins are far below the errors of either side.
    shown = [
        (f"Chimera's configurations that ours picks lose at most {worst:.1f} % to the "
         f"best (least margin of a pick {narrowest:.1f} %)",
         f"{PICK_LIMIT} %", worst <= PICK_LIMIT),
        (f"the planner's picks of measured configurations lose at most {lost:.1f} % to "
         f"the best of them; an answer takes at most {seconds:.1f} s",
         f"{PICK_LIMIT} %, a minute", lost <= PICK_LIMIT and seconds <= 60),
    ]
    # fmt: on
    print("\n## Criteria\n\n| | goal | |\n|---|---|---|")
    for text, goal, holds in criteria + shown:
        print(f"| {text} | {goal} | {'holds' if holds else 'FAILS'} |")
    print(
        f"| Eq. 1's eight: median error of the paper's own {equation[0]:.1f} %, of "
        f"ours {equation[1]:.1f} % | | |"
    )
    if args.check and not all(holds for *_, holds in criteria):
        sys.exit(1)


if __name__ == "__main__":
    main()
