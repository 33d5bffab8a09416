# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Replaces calls that need a number from the GPU on the host, so that the host waits for
the GPU: the value of a masked_fill, and the number of true elements in the mask of an
assignment (`x[mask] = 0`). Such calls are slow, and a captured graph cannot have them.
`where` gives the same bits without a wait."""

import torch
from torch import fx

from .traced import arguments_of

aten = torch.ops.aten


def _same(made, node):
    """Whether two values have the same type, shape and strides."""
    expected = node.meta["val"]
    return (
        made.dtype == expected.dtype
        and made.shape == expected.shape
        and made.stride() == expected.stride()
    )


def _operands(node):
    """The mask of a call, the value where the mask is true, and the other value. None if
    the call is not to be replaced."""
    if node.target is aten.masked_fill.Tensor:
        given = arguments_of(node)
        return given["mask"], given["value"], given["self"]
    if node.target is not aten.index_put.default:
        return None
    given = arguments_of(node)
    indices = [index for index in given["indices"] if index is not None]
    if len(indices) != 1 or given["accumulate"]:
        return None
    mask, value = indices[0], given["values"]
    # With more values, their number must be the number of true elements.
    if mask.meta["val"].dtype != torch.bool or value.meta["val"].numel() != 1:
        return None
    return mask, value, given["self"]


def _call(graph, target, *arguments, **named):
    """A call before the insertion point of `graph`."""
    made = graph.call_function(target, arguments, named)
    values = (a.meta["val"] if isinstance(a, fx.Node) else a for a in arguments)
    made.meta["val"] = target(*values, **named)
    return made


def replace(graph):
    """Replaces these calls in a traced graph."""
    for node in list(graph.nodes):
        if node.op != "call_function" or not (operands := _operands(node)):
            continue
        mask, value, other = operands
        with graph.inserting_before(node):
            if node.target is aten.index_put.default:
                before = arguments_of(node)["indices"].index(mask)
                while before + mask.meta["val"].dim() < other.meta["val"].dim():
                    mask = _call(graph, aten.unsqueeze.default, mask, -1)
            if value.meta["val"].dim():
                value = _call(graph, aten.view.default, value, [])
            made = _call(graph, aten.where.self, mask, value, other)
            if node.meta["val"].is_contiguous() and not made.meta["val"].is_contiguous():
                made = _call(
                    graph, aten.clone.default, made, memory_format=torch.contiguous_format
                )
        if _same(made.meta["val"], node):
            made.meta = dict(node.meta)
            node.replace_all_uses_with(made)
            graph.erase_node(node)
    graph.eliminate_dead_code(is_impure_node=lambda n: n.op in ("placeholder", "output"))
