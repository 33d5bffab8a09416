# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Finds lines where a model computes in a smaller type than its parameters have."""

import torch

from .traced import where

SHOWN = 4


def narrowed(graph, dtype):
    """The lines of a traced graph that convert values of the parameters' type `dtype`
    to a smaller type, as text for a message that begins with the type. Ignores values
    that depend on no input and no parameter."""
    lines, dynamic = {}, set()
    for node in graph.nodes:
        value = node.meta.get("val")
        if node.op != "call_function" or not isinstance(value, torch.Tensor):
            if node.op == "placeholder" or "parameter" in node.meta:
                dynamic.add(node)
            continue
        sources = [n for n in node.all_input_nodes if n in dynamic]
        if not sources:
            continue
        dynamic.add(node)
        if _is_smaller(value, dtype) and any(
            n.meta["val"].dtype == dtype for n in sources
            if isinstance(n.meta.get("val"), torch.Tensor)
        ):  # fmt: skip
            lines.setdefault(f"{value.dtype}{where(node)}".removeprefix("torch."))
    return list(lines)


def _is_smaller(value, dtype):
    return value.is_floating_point() and value.dtype.itemsize < dtype.itemsize


def notice(lines, dtype):
    """The text of a warning about these lines."""
    more = [f"and {len(lines) - SHOWN} more"] if len(lines) > SHOWN else []
    name = str(dtype).removeprefix("torch.")
    return (
        f"the parameters are {name}, but the model computes in a smaller type, so its "
        f"loss and gradients are not exact to {name}:\n"
        + "\n".join(f"  in {line}" for line in [*lines[:SHOWN], *more]).replace("in and", "and")
    )
