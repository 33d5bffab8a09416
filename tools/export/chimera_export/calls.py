# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of packages that are not PyTorch's operators. Each device computes them with its
own kernels (runtime/model/graph/OwnCalls.h).

A trace has PyTorch's attention on CPUs, forward and backward. A package has
chimera::attention and chimera::attention_backward instead:

    chimera::attention(query, key, value, mask, dropout, causal, scale, site)
    chimera::attention_backward(gradient, query, key, value, mask, output, log_sum_exp,
                                dropout, causal, scale, site)

The site is the number of earlier calls with dropout in the forward. The backward draws
the same numbers for it.

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
NUMBER = "attention"  # key in a node's meta: the number of an attention with dropout
# The types of the arguments that are not tensors, as in an operator's schema.
KINDS = {
    "dropout": "float", "causal": "bool", "scale": "float", "site": "int",
    "ignored": "int", "mean": "bool",
}  # fmt: skip


def number_attentions(graph):
    """Numbers the attentions with dropout of a joint graph. The backward of an attention
    gets the same number."""
    numbers = {}
    for node in graph.nodes:
        if node.target is ATTENTION and arguments_of(node)["dropout_p"]:
            node.meta[NUMBER] = numbers[node] = len(numbers)
        elif node.target is ATTENTION_BACKWARD and arguments_of(node)["dropout_p"]:
            output = arguments_of(node)["out"]
            if output.target is operator.getitem:
                node.meta[NUMBER] = numbers[output.args[0]]


def has_dropout(node):
    """Whether a node of a numbered graph has dropout."""
    return NUMBER in node.meta or node.target is aten.native_dropout.default


def call_has_dropout(call):
    """Whether a call of a package has dropout."""
    if call["operator"] == "chimera::attention":
        return call["arguments"][4]["numbers"][0] > 0
    return call["operator"] == "aten::native_dropout"


def number_sites(function):
    """The site of each attention with dropout in the forward `function`, by number."""
    sites, count = {}, 0
    for node in function.graph.nodes:
        if NUMBER in node.meta:
            sites[node.meta[NUMBER]] = count
        if has_dropout(node):
            count += 1
    return sites


def described(node, sites):
    """The name of the call, and for each argument its name, type and value. None if the
    node calls an operator of PyTorch that packages call too."""
    given = arguments_of(node)
    if name := linear_cross_entropy.NAMES.get(node.target):
        return name, _typed(given)
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
