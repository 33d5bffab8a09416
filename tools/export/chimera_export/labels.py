# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How a traced loss uses labels.

Labels of a text are already the next tokens. A loss that shifts them again, like the
losses of Hugging Face's causal models, trains the model to predict the token after the
next one. A shift in the other direction trains the model to copy its input
(reading.py). So this file follows each label from the input of the graph to the
operator that compares it with logits, and follows the logits back. At least one such
comparison must be between a label and the logits of the same position. (A second head
may predict a later token.)

                  labels ─► pad right ─► [..., 1:] ─► cross_entropy ◄─ logits
    offset:         0            0           1              ▲  0
                                                        shifted by 1
"""

import dataclasses
import math

import torch
from torch import fx

from .model import Refused
from .notices import warn
from .traced import ancestors, arguments_of, where

aten = torch.ops.aten
# Operators that compare logits with labels. The numbers are the positions of the two
# arguments: logits, labels.
COMPARE = {
    aten.cross_entropy_loss.default: (0, 1), aten.nll_loss_nd.default: (0, 1),
    aten.nll_loss.default: (0, 1), aten.nll_loss_forward.default: (0, 1),
    aten.nll_loss2d.default: (0, 1), aten.gather.default: (0, 2),
}  # fmt: skip
# If a model has this label, its other labels are the tokens at masked positions.
NEXT_SENTENCE = "next_sentence_label"
MEAN = 1  # PyTorch's number for reduction="mean"
MAY_IGNORE = {"masked_fill", "where"}  # operators that may give labels the ignored value
# Operators that keep each element at its position, but have no tag that says so.
KEEP_POSITIONS = {"contiguous", "clone", "to", "_to_copy", "alias", "detach", "log_softmax",
                  "_log_softmax", "softmax", "_softmax", "float", "double", "type_as"}  # fmt: skip


RESHAPE = {"view", "reshape", "_unsafe_view", "flatten", "unflatten"}


@dataclasses.dataclass(frozen=True)
class Path:
    """Says that a tensor has the elements of a label, and at which positions: along
    dimension `dim`, element 0 of the tensor is element `offset` of the label."""

    label: fx.Node
    offset: int
    dim: int
    moved_by: fx.Node = None  # operator that changed the offset last
    is_hidden: bool = False  # whether some labels may be set to the ignored value
    is_computed: bool = False  # whether labels may be changed to other numbers

    def moved(self, by, node):
        return dataclasses.replace(
            self, offset=self.offset + by, moved_by=node if by else self.moved_by
        )


def _name(node):
    is_operator = node.op == "call_function" and isinstance(node.target, torch._ops.OpOverload)
    return node.target.overloadpacket.__name__ if is_operator else ""


def _shape(node):
    return tuple(int(n) for n in node.meta["val"].shape)


def _step(node, path):
    """The Path of the result of `node`. `path` is the Path of its first argument or, if
    the operator keeps positions, of any argument. None if the positions are not
    known."""
    name, given = _name(node), arguments_of(node)
    source = node.args[0] if node.args and isinstance(node.args[0], fx.Node) else None
    if name in KEEP_POSITIONS or torch.Tag.pointwise in node.target.tags:
        if len(_shape(node)) <= path.dim:
            return None
        return dataclasses.replace(
            path,
            is_hidden=path.is_hidden or name in MAY_IGNORE,
            is_computed=path.is_computed or name not in KEEP_POSITIONS,
        )
    if source is None:
        return None
    before, after = _shape(source), _shape(node)
    dim = given.get("dim")
    if isinstance(dim, int) and dim < 0:
        dim += len(before) + (name == "unsqueeze")
    if name == "slice":
        if dim != path.dim:
            return path
        start = given["start"] or 0
        start = start + before[dim] if start < 0 else start
        return path.moved(start, node) if given["step"] == 1 else None
    if name in ("pad", "constant_pad_nd"):
        sides = given["pad"]
        from_end = len(before) - 1 - path.dim
        return path.moved(-sides[2 * from_end] if 2 * from_end < len(sides) else 0, node)
    if name == "roll":
        dims = [d % len(before) for d in given["dims"]]
        return path.moved(-sum(s for s, d in zip(given["shifts"], dims) if d == path.dim), node)
    if name == "unsqueeze":
        return dataclasses.replace(path, dim=path.dim + (dim <= path.dim))
    if name in ("transpose", "permute", "t", "mT"):
        order = list(range(len(before)))
        if name == "permute":
            order = [d % len(before) for d in given["dims"]]
        else:
            a, b = (given.get("dim0", -2) % len(before), given.get("dim1", -1) % len(before))
            order[a], order[b] = order[b], order[a]
        return dataclasses.replace(path, dim=order.index(path.dim))
    if name in RESHAPE or name in ("squeeze", "expand"):
        return _reshaped(path, before, after)
    if name == "one_hot":
        return path
    return None


def _reshaped(path, before, after):
    """The Path after a reshape from the shape `before` to the shape `after`. The tokens
    must stay a dimension, or become the inner part of a dimension with the samples.
    Otherwise None."""
    inner = 1
    for extent in before[path.dim + 1 :]:
        inner *= extent
    count = 1
    for dim in reversed(range(len(after))):
        if count == inner and after[dim] % before[path.dim] == 0 and after[dim] > 1:
            return dataclasses.replace(path, dim=dim)
        count *= after[dim]
    return None


def _joined(node, paths):
    """The path of a concatenation: the path of the first part that has one."""
    parts, dim = node.args[0], node.args[1] if len(node.args) > 1 else 0
    before = 0
    for part in parts:
        dim %= len(_shape(part))
        if part in paths:
            path = paths[part]
            return path.moved(-before if dim == path.dim else 0, node)
        before += _shape(part)[dim]
    return None


def _paths(graph, labels):
    """The Path of each node that is a label at known positions."""
    paths = {n: Path(n, 0, 1) for n in labels if len(_shape(n)) >= 2}
    for node in graph.nodes:
        if not _name(node) or not isinstance(node.meta.get("val"), torch.Tensor):
            continue
        sources = [n for n in node.all_input_nodes if n in paths]
        if not sources or node.target in COMPARE:
            continue
        if _name(node) in ("cat", "concat"):
            made = _joined(node, paths)
        else:
            made = _step(node, paths[sources[0]])
        if made:
            paths[node] = made
    return paths


def _step_back(node, dim):
    """Follows logits back through `node`. Returns the tensor from which `node` is made,
    the dimension of this tensor that has the positions of `dim`, and the number of
    positions that `node` omits at the beginning. None if the positions are not
    known."""
    name, sources = _name(node), [n for n in node.all_input_nodes if "val" in n.meta]
    if not name or not sources:
        return None
    if name in KEEP_POSITIONS or torch.Tag.pointwise in node.target.tags:
        source = max(sources, key=lambda n: n.meta["val"].numel())
        at = dim - len(_shape(node)) + len(_shape(source))
        is_kept = at >= 0 and _shape(source)[at] == _shape(node)[dim]
        return (source, at, 0) if is_kept else None
    source, given = node.args[0], arguments_of(node)
    if not isinstance(source, fx.Node):
        return None
    before, after = _shape(source), _shape(node)
    if name == "slice":
        if given["dim"] % len(before) != dim:
            return source, dim, 0
        start = given["start"] or 0
        return (source, dim, start % before[dim]) if given["step"] == 1 else None
    if name in ("pad", "constant_pad_nd"):
        sides, from_end = given["pad"], 2 * (len(before) - 1 - dim)
        return source, dim, -sides[from_end] if from_end < len(sides) else 0
    if name == "permute":
        return source, given["dims"][dim] % len(before), 0
    if name in ("transpose", "t", "mT"):
        a, b = (given.get("dim0", -2) % len(before), given.get("dim1", -1) % len(before))
        return source, {a: b, b: a}.get(dim, dim), 0
    if name in RESHAPE:
        count, wanted = 1, math.prod(after[dim + 1 :])
        for at in reversed(range(len(before))):
            if count == wanted and before[at] > 1:
                return source, at, 0
            count *= before[at]
    return None


@dataclasses.dataclass(frozen=True)
class Comparison:
    """A comparison of a label with logits. Dimension `dim` of the logits has the
    positions."""

    label: str
    path: Path
    node: fx.Node
    logits: fx.Node
    dim: int
    by: int  # position of the label minus the position of its logits
    has_all_positions: bool  # whether there are as many positions of logits as of labels

    def where(self):
        return where(self.path.moved_by or self.node)


def comparisons(graph, labels):
    """All comparisons of labels with logits whose positions are known. `labels` has the
    labels' nodes by name."""
    paths, found = _paths(graph, labels.values()), []
    names = {node: name for name, node in labels.items()}
    for node in graph.nodes:
        if node.target not in COMPARE:
            continue
        logits, target = (node.args[i] for i in COMPARE[node.target])
        if target not in paths or target.meta["val"].is_floating_point():
            continue  # the target is no label, or it has probabilities of classes
        path = paths[target]
        # Classes are in the dimension before the positions, except in a gather.
        has_classes_before = path.dim > 0 and _name(node) != "gather"
        dim = last_dim = path.dim + has_classes_before
        offset, source = 0, logits
        while step := _step_back(source, last_dim):
            source, last_dim, by = step
            offset += by
        samples, tokens = _shape(path.label)[:2]
        found.append(
            Comparison(
                names[path.label], path, node, logits, dim, path.offset - offset,
                _shape(source)[last_dim] in (tokens, samples * tokens),
            )
        )  # fmt: skip
    return found


def of_probabilities(graph, labels):
    """The names of the labels [samples, classes] that a cross-entropy reads as
    probabilities. `labels` has the labels' nodes by name."""
    targets = [n.args[1] for n in graph.nodes if n.target is aten.cross_entropy_loss.default]
    return tuple(
        name
        for name, label in labels.items()
        if label in targets and label.meta["val"].is_floating_point() and len(_shape(label)) == 2
    )


def check_shift(found):
    """Refuses a label that is only compared with logits of earlier positions."""
    for label in dict.fromkeys(each.label for each in found):
        nearest = min((each for each in found if each.label == label), key=lambda c: c.by)
        if nearest.by > 0:
            moved_by = nearest.path.moved_by
            raise Refused(
                "expected a loss that compares the logits of a position with the label "
                "of the same position, because labels are the next tokens already, but "
                f"it shifts '{label}' by "
                f"{nearest.by}{where(moved_by) if moved_by else ''}: leave the shift "
                "out, like F.cross_entropy(logits.flatten(0, 1), labels.flatten()); the "
                "loss_function of transformers' models leaves it out if it is given "
                "shift_labels=labels"
            )


def warn_of_few_classes(graph, found, tokens):
    """Warns if the logits have fewer classes than the embedding of the tokens has rows.
    Then the data may have a token that is allowed as an input and has no class as a
    label. `tokens` is the node of the input."""
    rows = min(
        (
            _shape(node.args[0])[0]
            for node in graph.nodes
            if _name(node) == "embedding" and _unchanged(node.args[1]) is tokens
        ),
        default=0,
    )
    for each in found:
        if _name(each.node) == "gather":
            classes = _shape(each.logits)[arguments_of(each.node)["dim"]]
        else:
            classes = _shape(each.logits)[1 if len(_shape(each.logits)) > 1 else 0]
        ignored = arguments_of(each.node).get("ignore_index")
        missing = set(range(classes, rows)) - {ignored}
        if missing and not (each.path.is_hidden or each.path.is_computed):
            warn(
                f"labels are compared with logits of {classes} classes{where(each.node)}, but "
                f"the embedding takes tokens below {rows}, and labels are tokens: a label of "
                f"{min(missing)} or more ends a run. Give the head {rows} classes, unless "
                "no text has such a token"
            )


def _unchanged(node):
    """The node that has the same numbers as `node`, before changes of type, shape and
    memory."""
    while _name(node) in {*KEEP_POSITIONS, *RESHAPE}:
        node = node.args[0]
    return node


def warn_of_uneven_mean(graph, loss, labels, examples):
    """Warns of a loss that is a mean over the labels that count, if the number of such
    labels may differ between micro-batches. `labels` has the labels' nodes by name, and
    `examples` has their values."""
    advice = (
        "All micro-batches have the same weight, so if this number varies between them, "
        "the result is not the mean over a step. Return the sum and its weight, like "
        'F.cross_entropy(…, reduction="sum"), (labels != -100).sum()'
    )
    within = ancestors([loss])
    paths = _paths(graph, labels.values())
    for node in graph.nodes:
        if node not in within or node.target not in COMPARE or _name(node) == "gather":
            continue
        given = arguments_of(node)
        if given["reduction"] != MEAN or given["target"].op == "get_attr":
            continue
        ignored, target = given.get("ignore_index", -100), given["target"]
        path = paths.get(target)
        if given.get("weight") is not None:
            reason = "weighs classes"
        elif path and path.is_hidden:
            reason = "ignores the labels that it masks"
        elif ignored != -100:
            reason = f"ignores the label {ignored}"
        elif NEXT_SENTENCE in labels and path and path.label is not labels[NEXT_SENTENCE]:
            reason = f"ignores the labels of tokens that are not masked ({ignored})"
        elif any(
            n in ancestors([target]) and bool((e == ignored).any())
            for n, e in zip(labels.values(), examples)
        ):
            reason = f"ignores the label {ignored}, which the examples have"
        else:
            continue
        warn(f"the loss is a mean that {reason}{where(node)}. {advice}")
    node = _quotient(loss)
    if node and ancestors([node.args[1]]) & set(labels.values()):
        warn(
            f"the loss is divided by a number that depends on labels{where(node)}. {advice}"
        )


def _quotient(node):
    """The division that computes a loss, or None."""
    while node.op == "call_function":
        name = _name(node)
        if name in ("div", "divide", "true_divide") and isinstance(node.args[1], fx.Node):
            return node
        sources = [n for n in node.all_input_nodes if n.meta["val"].dim() == 0]
        if len(sources) != 1 or name not in ("mul", "neg", "div", *KEEP_POSITIONS):
            return None
        node = sources[0]
    return None
