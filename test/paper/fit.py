# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The bars on which the machine's constants are fitted, and the fit itself."""

import dataclasses
import math

import costs
import paper
from simulator import Simulator, distinct, error, figure_9

# The bars for the fit, and the constant that each one identifies.
FITTED_BARS = {
    "Fig. 10 BERT-48 GPipe W2 D16 B16 N16 R": "message: the largest, four of them "
    "beside three layers",
    "Fig. 10 BERT-48 GPipe W8 D4 B1 N64 R": "launch",
    "Fig. 10 BERT-48 DAPPLE W8 D4 B8 N8": "speed and sums of a short step",
    "large mini-batches BERT-48 DAPPLE W8 D4 B8 N64": "speed, of a long one",
    "large mini-batches BERT-48 GPipe W8 D4 B8 N64 R": "speed, recomputing",
    "Fig. 10 BERT-48 PipeDream W4 D8 B12 N8": "sums, 4 replicas",
    "weak scaling GPT-2 PipeDream W256 D8 B2 N8 R": "sums, 256 replicas",
    "Fig. 11 GPT-2 DAPPLE W64 D8 B1 N8 R": "sums of a whole gradient, 64 replicas",
    "Fig. 10 BERT-48 GEMS W2 D16 B1 N256": "message and launch, which nothing hides",
    "Fig. 11 GPT-2 DAPPLE W16 D32 B1 N32 R": "message, speed",
}
TIMES = ("speed", "launch", "message", "staging", "exchange")
FITTED_CONFIGURATIONS = {
    bar.configuration for bar in paper.bars() if bar.name in FITTED_BARS
}
# Two maxima of Fig. 9 with the same stages: their difference is a sample's
# activations.
FITTED_MEMORY = (
    ("GPT-2 (32 layers)", "DAPPLE", 16, 1),
    ("GPT-2 (32 layers)", "DAPPLE", 16, 2),
)
MEMORIES = ("reserved", "score_bytes")


def is_fitted(bar):
    return bar.configuration in FITTED_CONFIGURATIONS


def dot(some, others):
    return sum(a * b for a, b in zip(some, others))


def solve(matrix, right):
    """Gaussian elimination with pivots."""
    rows = [row + [value] for row, value in zip(matrix, right)]
    size = len(rows)
    for column in range(size):
        pivot = max(range(column, size), key=lambda row: abs(rows[row][column]))
        rows[column], rows[pivot] = rows[pivot], rows[column]
        for row in range(size):
            if row != column:
                factor = rows[row][column] / rows[column][column]
                rows[row] = [a - factor * b for a, b in zip(rows[row], rows[column])]
    return [rows[index][size] / rows[index][index] for index in range(size)]


def minimise(residuals, constants, names):
    """Least squares by Levenberg and Marquardt, over the logarithms of the
    constants."""

    def moved(steps):
        changes = {
            name: getattr(constants, name) * math.exp(step)
            for name, step in zip(names, steps)
        }
        return dataclasses.replace(constants, **changes)

    values, damping, delta = residuals(constants), 1e-3, 0.02
    for _ in range(30):
        slopes = []
        for index in range(len(names)):
            steps = [delta if index == other else 0.0 for other in range(len(names))]
            changed = residuals(moved(steps))
            slopes.append([(b - a) / delta for a, b in zip(values, changed)])
        normal = [[dot(a, b) for b in slopes] for a in slopes]
        gradient = [-dot(slope, values) for slope in slopes]
        before = dot(values, values)
        while damping < 1e6:
            damped = [
                [
                    value + (i == j) * damping * (value + 1)
                    for j, value in enumerate(row)
                ]
                for i, row in enumerate(normal)
            ]
            steps = [max(-1, min(1, step)) for step in solve(damped, gradient)]
            trial = moved(steps)
            after = residuals(trial)
            if dot(after, after) < before:
                break
            damping *= 10
        else:
            return constants
        constants, values, damping = trial, after, damping / 10
        if dot(after, after) > before * (1 - 1e-6):
            return constants
    return constants


def fit_times(tools, bars, constants):
    """Fits the constants of time to the bars."""

    def residuals(constants):
        simulator = Simulator(tools, constants)
        simulator.run(bars)
        return [math.log(simulator.throughput(bar) / bar.measured) for bar in bars]

    return minimise(residuals, constants, TIMES)


def fit_memory(tools, constants):
    maxima = [
        (bar, gigabytes[0])
        for bar, gigabytes in figure_9()
        if (bar.model.name, bar.scheme, bar.depth, bar.batch) in FITTED_MEMORY
    ]

    def residuals(constants):
        simulator = Simulator(tools, constants)
        simulator.run(bar for bar, _ in maxima)
        return [
            math.log(max(simulator.memory(bar)) / (1e9 * most)) for bar, most in maxima
        ]

    return minimise(residuals, constants, MEMORIES)


def fitted_bars():
    return [bar for bar in distinct(paper.bars()) if bar.name in FITTED_BARS]


def print_fit(tools):
    """Prints the constants as lines of costs.py, and the error of each bar."""
    bars = fitted_bars()
    constants = fit_memory(tools, fit_times(tools, bars, costs.Constants()))
    for name in TIMES + MEMORIES:
        print(f"    {name}: float = {getattr(constants, name):.4g}")
    print("\n| bar | paper | ours | error |\n|---|---|---|---|")
    simulator = Simulator(tools, constants)
    for bar in bars:
        ours = simulator.throughput(bar)
        print(
            f"| {bar.name} | {bar.measured:g} | {ours:.1f} "
            f"| {error(ours, bar.measured):+.1f} % |"
        )
