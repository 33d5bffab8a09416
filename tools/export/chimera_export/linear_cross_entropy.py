# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The last linear layer and the cross-entropy of many classes, as one call.

If there are many classes, the logits are by far the largest tensors of a model. So a
package computes both in one call, for some rows at a time (LinearCrossEntropy.h):

    chimera::linear_cross_entropy(input, weight, bias, labels, ignored, mean)
    chimera::linear_cross_entropy_backward(gradient, input, weight, bias, labels, ignored,
                                           mean) -> gradients of input, weight, bias; loss

The backward computes the logits again, and from them the loss. So if the loss of the
model is the result of this call, a forward of training leaves it out.
"""

from typing import Optional

import torch
from torch import Tensor
from torch.nn import functional

from .traced import ancestors, arguments_of

aten = torch.ops.aten
FEWEST_CLASSES = 4096  # with fewer classes, the logits are small
MEAN, SUM = 1, 2  # as aten.cross_entropy_loss numbers them


def _wide(dtype):
    return torch.float32 if dtype == torch.bfloat16 else dtype


@torch.library.custom_op("chimera_export::linear_cross_entropy", mutates_args=())
def _forward(
    input: Tensor, weight: Tensor, bias: Optional[Tensor], labels: Tensor, ignored: int,
    mean: bool,
) -> Tensor:  # fmt: skip
    logits = functional.linear(input, weight, bias).to(_wide(input.dtype))
    reduction = "mean" if mean else "sum"
    return functional.cross_entropy(logits, labels, ignore_index=ignored, reduction=reduction)


@_forward.register_fake
def _(input, weight, bias, labels, ignored, mean):
    return input.new_empty((), dtype=_wide(input.dtype))


@torch.library.custom_op("chimera_export::linear_cross_entropy_backward", mutates_args=())
def _backward(
    gradient: Tensor, input: Tensor, weight: Tensor, bias: Optional[Tensor],
    labels: Tensor, ignored: int, mean: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    logits = functional.linear(input, weight, bias)
    shares = logits.log_softmax(1, dtype=_wide(input.dtype))
    counts = labels.ne(ignored).to(shares.dtype)
    targets = labels.masked_fill(labels.eq(ignored), 0).unsqueeze(1)
    divisor = counts.sum() if mean else 1
    loss = -(shares.gather(1, targets).squeeze(1) * counts).sum() / divisor
    of_row = torch.where(counts > 0, gradient / divisor, 0).unsqueeze(1)
    made = (shares.exp() * of_row).scatter_add(1, targets, -of_row).to(input.dtype)
    return made @ weight, made.t() @ input, made.sum(0), loss


@_backward.register_fake
def _(gradient, input, weight, bias, labels, ignored, mean):
    return (
        torch.empty_like(input), torch.empty_like(weight), weight.new_empty(len(weight)),
        torch.empty_like(gradient),
    )  # fmt: skip


def _save(ctx, inputs, output):
    *tensors, ctx.ignored, ctx.mean = inputs
    ctx.save_for_backward(*tensors)


def _differentiate(ctx, gradient):
    input, weight, bias, labels = ctx.saved_tensors
    made = BACKWARD(gradient, input, weight, bias, labels, ctx.ignored, ctx.mean)
    return made[0], made[1], None if bias is None else made[2], None, None, None


_forward.register_autograd(_differentiate, setup_context=_save)

FORWARD = torch.ops.chimera_export.linear_cross_entropy.default
BACKWARD = torch.ops.chimera_export.linear_cross_entropy_backward.default
NAMES = {
    FORWARD: "chimera::linear_cross_entropy",
    BACKWARD: "chimera::linear_cross_entropy_backward",
}
LOSS = 3  # index among the results of BACKWARD


def run(name, arguments):
    """The results of the call `name`, on CPU tensors."""
    return {own: target for target, own in NAMES.items()}[name](*arguments)


def flops(node, wanted):
    """The FLOPs of a call, if only its results among the nodes `wanted` are needed. It has
    one product for the logits. A backward has one more for each gradient of a matrix."""
    given = arguments_of(node)
    rows, width = given["input"].meta["val"].shape
    results = [user.args[1] for user in node.users if user in wanted]
    products = 1 + sum(result in (0, 1) for result in results if node.target is BACKWARD)
    return 2 * rows * width * len(given["weight"].meta["val"]) * products


# Operators that change neither the values of logits nor the order of their rows, if the
# last dimension stays the same.
SAME_ROWS = {
    aten.view.default, aten.reshape.default, aten.flatten.using_ints,
    aten._unsafe_view.default, aten.contiguous.default, aten.clone.default,
    aten.alias.default, aten._to_copy.default, aten.to.dtype,
}  # fmt: skip


def _swaps_last_two(node):
    """Whether a node turns [samples, tokens, classes] into [samples, classes, tokens]."""
    if node.target is aten.mT.default:
        return True
    if node.target is aten.transpose.int:
        return sorted(d % 3 for d in node.args[1:]) == [1, 2]
    return node.target is aten.permute.default and [d % 3 for d in node.args[1]] == [0, 2, 1]


def _linear_of(node, needed):
    """The linear layer that makes the rows of logits `node`, or None. Its result and all
    values on the way must have no other use in the nodes `needed`."""
    width = node.meta["val"].shape[-1]
    while sum(user in needed for user in node.users) == 1:
        if node.meta["val"].shape[-1] != width:
            return None
        if node.target is aten.linear.default:
            return node
        if node.target not in SAME_ROWS:
            return None
        node = node.all_input_nodes[0]
    return None


def _read_by(node, needed):
    """The linear layer whose logits a cross-entropy reads, if both can be one call."""
    given = arguments_of(node)
    logits, labels = given["self"], given["target"]
    value, target = logits.meta["val"], labels.meta["val"]
    if (
        value.dim() < 2 or value.shape[1] < FEWEST_CLASSES or target.dtype != torch.int64
        or target.dim() != value.dim() - 1 or given["weight"] is not None
        or given["reduction"] not in (MEAN, SUM) or given["label_smoothing"]
    ):  # fmt: skip
        return None
    if value.dim() == 3 and _swaps_last_two(logits):
        if sum(user in needed for user in logits.users) != 1:
            return None
        logits = logits.args[0]
    elif value.dim() != 2:
        return None
    linear = _linear_of(logits, needed)
    return linear if linear and value.dtype == _wide(linear.meta["val"].dtype) else None


def rewrite(graph, loss):
    """Rewrites each cross-entropy of many classes on which `loss` depends, together with
    its linear layer, as one call. Returns the node of the loss, which may be new."""
    for node in list(graph.nodes):
        if node.target is not aten.cross_entropy_loss.default:
            continue
        needed = ancestors([loss])
        linear = _read_by(node, needed) if node in needed else None
        if linear:
            made = _call(node, linear)
            node.replace_all_uses_with(made)
            loss = made if node is loss else loss
            _erase_unused(node, linear)
    return loss


def _erase_unused(node, linear):
    """Erases the nodes from the linear layer to the cross-entropy `node`, as far as they
    have no use. The logits may be a result of the model."""
    while not node.users:
        source = node.args[0]
        node.graph.erase_node(node)
        if node is linear:
            return
        node = source


def _call(node, linear):
    """The call that replaces the cross-entropy `node` of a linear layer."""
    given, of_linear = arguments_of(node), arguments_of(linear)
    input, weight, bias = (of_linear[name] for name in ("input", "weight", "bias"))
    rows = given["target"].meta["val"].numel()

    def call(target, *arguments):
        made = node.graph.call_function(target, arguments)
        made.meta = {**linear.meta}
        made.meta["val"] = target(*torch.fx.map_arg(arguments, lambda n: n.meta["val"]))
        return made

    def reshaped(tensor, *shape):
        is_so = tuple(tensor.meta["val"].shape) == shape
        return tensor if is_so else call(aten.reshape.default, tensor, list(shape))

    with node.graph.inserting_before(node):
        return call(
            FORWARD, reshaped(input, rows, input.meta["val"].shape[-1]), weight, bias,
            reshaped(given["target"], rows), given["ignore_index"],
            given["reduction"] == MEAN,
        )  # fmt: skip


def is_in(function):
    """Whether the backward `function` of a layer has such a call."""
    return any(node.target is BACKWARD for node in function.graph.nodes)


def backward_with_loss(graph, loss):
    """The BACKWARD in a joint graph that computes `loss`, or None if `loss` is not the
    result of a FORWARD."""
    if loss.target is not FORWARD:
        return None
    found = [n for n in graph.nodes if n.target is BACKWARD and n.args[1:] == loss.args]
    return found[0] if found else None
