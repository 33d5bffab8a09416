# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks the sizes of tensors that a layer makes against the limits of a run.

The proof of a program's memory knows only the tensors whose sizes the package states.
So a run refuses a layer that makes a tensor larger than 64 times the largest of these
tensors plus 16 MiB (StageLayers.cpp). If micro-batches are divided into parts, tensors
at boundaries must grow with the number of samples (CheckPackage.cpp)."""

import math

import torch

from . import graphs, joint
from .model import Refused
from .notices import note
from .traced import where

WORKSPACE, INTERMEDIATES = 1 << 24, 64


def bytes_of(value):
    return value.numel() * value.element_size()


def limit_of(kind, entry, type_of_parameters):
    """The largest size, in bytes, that a run allows for a tensor if its stage has only
    layers of this kind. `entry` has the kind's graphs for the examples."""
    sizes = {name: dtype.itemsize for dtype, name in graphs.TYPES.items()}
    stated = [(p["shape"], type_of_parameters) for p in kind["parameters"]]
    stated += [(c["shape"], c["type"]) for c in kind["constants"]]
    for what in ("inputs", "labels", "outputs", "saved"):
        stated += [(s["shape"], s["type"]) for s in entry[what]]
    largest = max(math.prod(shape) * sizes[name] for shape, name in stated)
    return WORKSPACE + INTERMEDIATES * largest


def heaviest(functions):
    """The node that makes the largest tensor in the graphs of `functions`. Ignores
    views, because they take no memory."""
    nodes = [
        node
        for function in functions
        for node in function.graph.nodes
        if node.op == "call_function"
        and isinstance(node.meta.get("val"), torch.Tensor)
        and not joint.is_view(node)
    ]
    return max(nodes, key=lambda n: bytes_of(n.meta["val"]), default=None)


def check(kinds, entries, nodes, type_of_parameters):
    """Refuses a model with a tensor that no run would allow, and prints a note about a
    tensor that some runs would not allow. For each kind of layer, `entries` has its
    graphs for the examples and `nodes` the node of the largest tensor in them."""
    limits = [limit_of(*each, type_of_parameters) for each in zip(kinds, entries)]
    for limit, node in zip(limits, nodes):
        size = bytes_of(node.meta["val"])
        what = f"a tensor of {size:,} bytes{where(node)}"
        if size > max(limits):
            raise Refused(
                f"expected tensors of at most {max(limits):,} bytes, 64 times the "
                f"largest one that a layer takes, passes on or saves, got {what}: "
                "compute it in parts, or with fewer samples"
            )
        if size > limit:
            note(
                f"{what} is more than the {limit:,} bytes that a run allows in a "
                "stage with only this layer: give its stage more layers"
            )


def fixed_boundary(by_samples, counts):
    """A text about a tensor that crosses between layers and does not grow with the
    samples, or None if there is none. `by_samples` has the layers for each of `counts`,
    the numbers of samples."""
    for layers in zip(*by_samples):
        for number, made in enumerate(layers[0].source_lines):
            tensors = [layer.inputs[number] for layer in layers]
            for count, tensor in zip(counts, tensors):
                if bytes_of(tensor) * counts[0] != bytes_of(tensors[0]) * count:
                    return (
                        "a tensor that crosses from layer to layer does not grow with the "
                        f"samples. It has the shape {list(tensors[0].shape)} for "
                        f"{counts[0]} samples and {list(tensor.shape)} for {count}{made}. "
                        "So schedules that divide micro-batches into parts are refused. "
                        "Give it a dimension of samples, as expand(samples, …) does, or "
                        "make it in the layers that use it"
                    )
    return None
