# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes the graphs of a layer that serve every number of samples.

A layer is traced for a few numbers of samples (COUNTS). The traces must have the same
operations. Each integer that differs between them must be an affine function of the
number of samples: constant + per_sample * samples (runtime/program/package.fbs). The
number of floating-point operations may also have a term for each pair of samples."""

import fractions

from .model import Refused

COUNTS = (2, 3, 5)
SHAPES = ("inputs", "labels", "outputs", "saved", "kept_shapes")
GRAPHS = ("forward", "backward", "weight", "logits")
OPERATIONS = ("forward_flops", "input_gradient_flops", "weight_gradient_flops")
AFFINE_KINDS = ("Integer", "Integers")


def counts_for(samples):
    """The numbers of samples to trace, for examples of `samples` samples. The first one
    is the number of the examples, if that is at least 2."""
    first = max(samples, COUNTS[0])
    return [first, *(c for c in COUNTS if c != first)][: len(COUNTS)]


def _affine(numbers, counts):
    """The constant and the factor of the affine function that has the value numbers[i]
    at counts[i], or None if there is no such function with integers."""
    factor = fractions.Fraction(numbers[1] - numbers[0], counts[1] - counts[0])
    constant = numbers[0] - factor * counts[0]
    if factor.denominator != 1 or any(
        constant + factor * count != number for count, number in zip(counts, numbers)
    ):
        return None
    return int(constant), int(factor)


def _quadratic(numbers, counts):
    """The coefficients of the polynomial of degree 2 that has the value numbers[i] at
    counts[i], or None if they are not natural numbers."""
    a, b, c = map(fractions.Fraction, counts)
    u, v, w = numbers
    square = ((w - u) / (c - a) - (v - u) / (b - a)) / (c - b)
    linear = (v - u) / (b - a) - square * (a + b)
    constant = u - linear * a - square * a * a
    found = (constant, linear, square)
    if any(x.denominator != 1 or x < 0 for x in found):
        return None
    return dict(zip(("constant", "per_sample", "per_pair"), map(int, found)))


def _listed(items):
    *first, last = map(str, items)
    return f"{', '.join(first)} and {last}"


class _Merger:
    """Merges the entries of one layer. `where(graph, call)` is the place of a call in
    the user's code, as text for a message."""

    def __init__(self, counts, where):
        self.counts, self.where = counts, where
        self.of_counts = f"{_listed(counts)} samples"

    def refuse_difference(self, what):
        raise Refused(
            f"expected the same operations for every number of samples, got others in "
            f"{what} for {self.of_counts}: Python code that decides by the number of "
            "samples, such as 'if x.shape[0] > 2', cannot be exported"
        )

    def integers(self, lists, what):
        """The fields of a shape or an argument for the integers `lists`, one list for
        each number of samples."""
        constants, factors = [], []
        for numbers in zip(*lists):
            made = _affine(numbers, self.counts)
            if made is None:
                raise Refused(
                    "expected sizes that are a constant plus a multiple of the number of "
                    f"samples, got {_listed(numbers)} for {self.of_counts} in {what}"
                )
            constants.append(made[0])
            factors.append(made[1])
        return constants, factors if any(factors) else None

    def shapes(self, lists, what):
        merged = []
        if len({len(shapes) for shapes in lists}) > 1:
            self.refuse_difference(what)
        for tensors in zip(*lists):
            if len({(t["type"], len(t["shape"])) for t in tensors}) > 1:
                self.refuse_difference(what)
            constants, factors = self.integers([t["shape"] for t in tensors], what)
            if any(number < 0 for number in (*constants, *(factors or ()))):
                raise Refused(
                    "expected tensors that do not shrink when the number of samples grows, "
                    f"got the shapes {_listed(t['shape'] for t in tensors)} for "
                    f"{self.of_counts} in {what}"
                )
            merged.append({"type": tensors[0]["type"], "shape": constants})
            if factors:
                merged[-1]["per_sample"] = factors
        return merged

    def argument(self, arguments, what):
        first = arguments[0]
        if all(each == first for each in arguments):
            return first
        if len({each["kind"] for each in arguments}) == 1:
            if first["kind"] in AFFINE_KINDS and len(
                {len(each["integers"]) for each in arguments}
            ) == 1:  # fmt: skip
                constants, factors = self.integers(
                    [each["integers"] for each in arguments], what
                )
                return {**first, "integers": constants, "per_sample": factors}
            if first["kind"] == "Number":
                raise Refused(
                    "expected the same number for every number of samples, got "
                    f"{_listed(each['numbers'][0] for each in arguments)} for "
                    f"{self.of_counts} in {what}: divide by the number of samples, do "
                    "not multiply by its inverse"
                )
        return self.refuse_difference(what)

    def graph(self, graphs, name):
        first = graphs[0]
        calls = []
        for key in ("values", "inputs", "outputs"):
            if any(graph[key] != first[key] for graph in graphs):
                self.refuse_difference(self.where(name, self.first_difference(graphs)))
        for number, same in enumerate(zip(*(graph["calls"] for graph in graphs))):
            what = self.where(name, number)
            if any(self.head(call) != self.head(same[0]) for call in same):
                self.refuse_difference(what)
            arguments = zip(*(call["arguments"] for call in same))
            calls.append(
                {**same[0], "arguments": [self.argument(each, what) for each in arguments]}
            )
        return {**first, "calls": calls}

    @staticmethod
    def head(call):
        return call["operator"], call["overload"], call["results"], len(call["arguments"])

    def first_difference(self, graphs):
        """The number of the first call that differs between graphs of other lengths. The
        last call of the first graph, if none differs."""
        calls = [graph["calls"] for graph in graphs]
        for number, same in enumerate(zip(*calls)):
            if any(self.head(call) != self.head(same[0]) for call in same):
                return number
        return len(calls[0]) - 1


def merge(entries, counts, where):
    """One entry of a layer's graphs (LayerGraphs in package.fbs) from the entries that
    were traced for `counts` samples. `where(graph, call)` is the place of a call of
    entries[0], as text for a message."""
    merger = _Merger(counts, where)
    merged = {}
    for key, first in entries[0].items():
        values = [entry.get(key) for entry in entries]
        if key in SHAPES:
            merged[key] = merger.shapes(values, f"the {key.replace('_', ' ')} of a layer")
        elif key in GRAPHS:
            if None in values:
                merger.refuse_difference(key)
            merged[key] = merger.graph(values, key)
        elif key in OPERATIONS:
            merged[key] = _quadratic(values, counts)
            if merged[key] is None:
                raise Refused(
                    "expected a number of operations that is a polynomial of degree 2 in "
                    f"the number of samples, got {_listed(values)} for {merger.of_counts}"
                )
        elif any(value != first for value in values):
            merger.refuse_difference(key)
        else:
            merged[key] = first
    return merged


def integers_of(given, samples):
    """The integers of an argument, or the extents of a shape, for `samples` samples."""
    constants = given["integers" if "integers" in given else "shape"]
    factors = given.get("per_sample") or [0] * len(constants)
    return [c + f * samples for c, f in zip(constants, factors)]
