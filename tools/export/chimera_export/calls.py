# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of packages that are not PyTorch's operators. Each device computes them with its
own kernels (runtime/model/graph/OwnCalls.h).

A trace has PyTorch's native_dropout, and its attention on CPUs, each with its backward.
A package has these calls instead:

    chimera::dropout(input, dropout, site)
    chimera::dropout_backward(gradient, dropout, site)
    chimera::attention(query, key, value, mask, dropout, causal, scale, site)
    chimera::attention_backward(gradient, query, key, value, mask, output, log_sum_exp,
                                dropout, causal, scale, site)

The site is the number of earlier calls with dropout in the forward. The backward draws
the same numbers for it, so no mask is saved.

For the calls of the last linear layer and the loss, see linear_cross_entropy.py.
"""

import math
import operator

import torch

from . import linear_cross_entropy
from .traced import arguments_of

aten = torch.ops.aten
ATTENTION = aten._scaled_dot_product_flash_attention_for_cpu.default
ATTENTION_BACKWARD = aten._scaled_dot_product_flash_attention_for_cpu_backward.default
DROPOUT = aten.native_dropout.default
NUMBER = "dropout"  # key in a node's meta: the number of a call with dropout
IS_BACKWARD = "dropout_backward"  # key in the meta of the backward of such a call
# The types of the arguments that are not tensors, as in an operator's schema.
KINDS = {
    "dropout": "float", "causal": "bool", "scale": "float", "site": "int",
    "ignored": "int", "mean": "bool",
}  # fmt: skip


def number_dropouts(graph):
    """Numbers the calls with dropout of a joint graph, and gives their backwards the same
    numbers. The backward of a native_dropout becomes another native_dropout, of the
    gradient: then no mask is a value of the backward."""
    numbers = {}
    for node in list(graph.nodes):
        if node.target is DROPOUT or (
            node.target is ATTENTION and arguments_of(node)["dropout_p"]
        ):
            node.meta[NUMBER] = numbers[node] = len(numbers)
        elif node.target is ATTENTION_BACKWARD and arguments_of(node)["dropout_p"]:
            output = arguments_of(node)["out"]
            if output.target is operator.getitem:
                node.meta |= {NUMBER: numbers[output.args[0]], IS_BACKWARD: True}
        elif node.target is aten.native_dropout_backward.default:
            _drop_gradient(graph, node, numbers)


def _drop_gradient(graph, node, numbers):
    """Replaces the `node`, the backward of a dropout."""
    gradient, forward, _ = node.args
    while forward.target is not DROPOUT:  # its second result, detached
        forward = forward.args[0]
    with graph.inserting_before(node):
        pair = graph.call_function(DROPOUT, (gradient, *forward.args[1:]))
        made = graph.call_function(operator.getitem, (pair, 0))
    pair.meta = dict(node.meta)
    pair.meta["val"] = (node.meta["val"], forward.meta["val"][1])
    pair.meta |= {NUMBER: numbers[forward], IS_BACKWARD: True}
    made.meta = dict(node.meta)
    node.replace_all_uses_with(made)
    graph.erase_node(node)


def has_dropout(node):
    """Whether a node of a numbered graph has dropout, or is the backward of one that has."""
    return NUMBER in node.meta


def call_has_dropout(call):
    """Whether a call of a package has dropout."""
    if call["operator"] == "chimera::attention":
        return call["arguments"][4]["numbers"][0] > 0
    return call["operator"] == "chimera::dropout"


def number_sites(function):
    """The site of each call with dropout in the forward `function`, by number."""
    # A gradient that depends on no output gradient, such as one of zeros, is a value of the
    # forward. So a forward may have backwards of dropouts, which have no site of their own.
    dropped = [
        node for node in function.graph.nodes
        if has_dropout(node) and IS_BACKWARD not in node.meta
    ]  # fmt: skip
    return {node.meta[NUMBER]: site for site, node in enumerate(dropped)}


def count_of_results(node):
    """The number of results of a call of a package whose node has several."""
    return 1 if node.target is DROPOUT else len(node.meta["val"])


def described(node, sites):
    """The name of the call, and for each argument its name, type and value. None if the
    node calls an operator of PyTorch that packages call too."""
    given = arguments_of(node)
    if name := linear_cross_entropy.NAMES.get(node.target):
        return name, _typed(given)
    if node.target is DROPOUT:
        return _described_dropout(node, sites)
    if node.target not in (ATTENTION, ATTENTION_BACKWARD):
        return None
    query, scale = given["query"], given["scale"]
    own = {"query": query, "key": given["key"], "value": given["value"], "mask": given["attn_mask"]}
    name = "chimera::attention"
    if node.target is ATTENTION_BACKWARD:
        name = "chimera::attention_backward"
        results = {"output": given["out"], "log_sum_exp": given["logsumexp"]}
        own = {"gradient": given["grad_out"], **own, **results}
    if scale is None:
        scale = 1 / math.sqrt(int(query.meta["val"].shape[-1]))
    own |= {
        "dropout": float(given["dropout_p"]),
        "causal": bool(given["is_causal"]),
        "scale": float(scale),
        "site": sites.get(node.meta.get(NUMBER), 0),
    }
    return name, _typed(own)


def _described_dropout(node, sites):
    operand, probability = node.args[:2]
    is_backward = IS_BACKWARD in node.meta
    return "chimera::dropout_backward" if is_backward else "chimera::dropout", _typed(
        {
            "gradient" if is_backward else "input": operand,
            "dropout": float(probability),
            "site": sites[node.meta[NUMBER]],
        }
    )


def _typed(arguments):
    return [(name, KINDS.get(name, "Tensor"), value) for name, value in arguments.items()]


def run(name, arguments):
    """The results of a call without dropout, on CPU tensors."""
    if name in linear_cross_entropy.NAMES.values():
        return linear_cross_entropy.run(name, arguments)
    if name == "chimera::attention":
        query, key, value, mask, dropout, causal, scale, _ = arguments
        return ATTENTION(query, key, value, dropout, causal, attn_mask=mask, scale=scale)
    gradient, query, key, value, mask, output, sums, dropout, causal, scale, _ = arguments
    return ATTENTION_BACKWARD(
        gradient, query, key, value, output, sums, dropout, causal, attn_mask=mask,
        scale=scale,
    )  # fmt: skip
