# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rewrites dropout so that the runtime draws its random numbers.

A pipeline must drop the same elements of a sample wherever and whenever it runs. So
every dropout becomes native_dropout, and a package calls the runtime's own dropout instead
(calls.py), which is a function of the seed, the layer, the step and the sample. The first
dimension of the tensor must count samples. Attention with dropout becomes a call of the
runtime, too. If the call cannot compute it, it is rewritten as separate operators, and so
is dropout of whole channels. Any other operator that draws random numbers is refused.
"""

import math
import operator

import torch

from . import calls
from .model import Refused
from .traced import ancestors, arguments_of, attribute, where

aten = torch.ops.aten


def _drop(graph, x, probability):
    if probability >= 1:  # drops all elements, so nothing is drawn
        return graph.call_function(aten.mul.Tensor, (x, 0.0))
    pair = graph.call_function(calls.DROPOUT, (x, probability, True))
    return graph.call_function(operator.getitem, (pair, 0))


def _draws(node):
    """Whether an operator that can draw random numbers does so with these arguments."""
    given = {}
    for i, argument in enumerate(node.target._schema.arguments):
        given[argument.name] = node.args[i] if i < len(node.args) else None
    acts = given.get("train", given.get("training"))
    return acts is not False and given.get("p", given.get("dropout")) != 0


def _write_out_channels(graph, x, probability):
    """Dropout of whole channels: drops elements of a tensor of ones, one per channel,
    and multiplies `x` by the result."""
    shape = x.meta["val"].shape
    sizes = [*shape[:2], *[1] * (len(shape) - 2)]
    ones = graph.call_function(aten.new_ones.default, (x, sizes))
    scales = _drop(graph, ones, probability)
    return graph.call_function(aten.mul.Tensor, (x, scales))


DROPOUTS = {
    aten.dropout.default: _drop,
    aten.feature_dropout.default: _write_out_channels,
}


def _write_out_attention(graph, node):
    """Attention as two products, with a softmax and dropout between them."""
    given = arguments_of(node)
    q, k, v = given["query"], given["key"], given["value"]
    mask, probability, causal = given["attn_mask"], given["dropout_p"], given["is_causal"]
    scale, grouped = given["scale"], given["enable_gqa"]
    shapes = [n.meta["val"].shape for n in (q, k)]
    if scale is None:
        scale = 1 / math.sqrt(shapes[0][-1])
    call = graph.call_function
    if grouped:
        repeats = shapes[0][-3] // shapes[1][-3]
        k = call(aten.repeat_interleave.self_int, (k, repeats, -3))
        v = call(aten.repeat_interleave.self_int, (v, repeats, -3))
    scores = call(aten.matmul.default, (q, call(aten.transpose.int, (k, -2, -1))))
    scores = call(aten.mul.Tensor, (scores, scale))
    if causal:
        ones = call(
            aten.ones.default, ([shapes[0][-2], shapes[1][-2]],), {"dtype": torch.bool}
        )
        hidden = call(aten.logical_not.default, (call(aten.tril.default, (ones,)),))
        scores = call(aten.masked_fill.Scalar, (scores, hidden, -math.inf))
    if mask is not None:
        if mask.meta["val"].dtype == torch.bool:
            hidden = call(aten.logical_not.default, (mask,))
            scores = call(aten.masked_fill.Scalar, (scores, hidden, -math.inf))
        else:
            scores = call(aten.add.Tensor, (scores, mask))
    # Like PyTorch: if a position may not attend to any position, its output is zero.
    softmax = aten.softmax.int if mask is None else aten._safe_softmax.default
    shares = call(softmax, (scores, -1))
    return call(aten.matmul.default, (_drop(graph, shares, probability), v))


def _hidden(graph, mask, like):
    """The numbers that hide scores where the boolean `mask` is false, in the type of
    `like`."""
    call = graph.call_function
    hidden = call(aten.logical_not.default, (mask,))
    zeros = call(aten.new_zeros.default, (like, list(mask.meta["val"].shape)))
    return call(aten.masked_fill.Scalar, (zeros, hidden, -math.inf))


def _call_attention(graph, node):
    """Attention as the operator that becomes a call of the runtime. None if the call
    cannot compute it: tensors need four dimensions and one width, and a mask has no
    gradient."""
    given = arguments_of(node)
    operands = [given[name] for name in ("query", "key", "value")]
    mask = given["attn_mask"]
    shapes = [n.meta["val"].shape for n in operands]
    if any(len(s) != 4 or s[-1] != shapes[0][-1] for s in shapes):
        return None
    if mask is not None:
        value = mask.meta["val"]
        if value.dim() not in (2, 4) or _is_learned(mask):
            return None
        if value.dtype == torch.bool:
            mask = _hidden(graph, mask, operands[0])
    pair = graph.call_function(
        calls.ATTENTION, (*operands, given["dropout_p"], given["is_causal"]),
        {"attn_mask": mask, "scale": given["scale"]},
    )  # fmt: skip
    return graph.call_function(operator.getitem, (pair, 0))


def _is_learned(node):
    """Whether a value depends on a trained parameter."""
    whole = node.graph.owning_module
    return any(
        isinstance(value := attribute(whole, n.target), torch.nn.Parameter)
        and value.requires_grad
        for n in ancestors([node])
        if n.op == "get_attr"
    )


def _rows(node, shape, samples):
    """The number of rows of the tensor that belong to one sample."""
    if not shape or int(shape[0]) % samples:
        raise Refused(
            "expected dropout of a tensor whose first dimension counts samples, "
            f"{samples} of them, got one of the shape {list(shape)}{where(node)}: the "
            "dropped elements must depend only on the sample"
        )
    return int(shape[0]) // samples


def rewrite_dropout(graph, samples):
    """Rewrites dropout in the graph, and refuses other random operators. Returns the rows
    per sample of each dropout."""
    rows = []
    for node in list(graph.nodes):
        if node.op != "call_function" or not isinstance(
            node.target, torch._ops.OpOverload
        ):
            continue
        before = set(graph.nodes)
        if node.target in DROPOUTS:
            x, probability, acts = node.args
            made = x
            if acts and probability:
                rows.append(_rows(node, x.meta["val"].shape, samples))
                with graph.inserting_before(node):
                    made = DROPOUTS[node.target](graph, x, probability)
        elif node.target is aten.scaled_dot_product_attention.default:
            if not arguments_of(node)["dropout_p"]:
                continue
            rows.append(_rows(node, node.meta["val"].shape, samples))
            with graph.inserting_before(node):
                made = _call_attention(graph, node) or _write_out_attention(graph, node)
        elif node.target is calls.DROPOUT or (
            torch.Tag.nondeterministic_seeded in node.target.tags and _draws(node)
        ):
            raise Refused(
                f"expected no operator but dropout that may draw random numbers, got "
                f"{node.target.name()}{where(node)}"
            )
        else:
            continue
        for new in set(graph.nodes) - before:
            new.meta = {k: v for k, v in node.meta.items() if k != "val"}
        if made is not node.args[0]:
            made.meta = dict(node.meta)
        node.replace_all_uses_with(made)
        graph.erase_node(node)
    return rows
