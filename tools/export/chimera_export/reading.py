# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks whether logits depend on the labels that they are compared with.

Labels are the next tokens. So a model that is not causal sees them in its input, and so
does a model whose logits are compared with labels of earlier positions. Both learn to
copy, and their losses go to 0. To find out, the traced model is run again, without
gradients, with other tokens from the middle on. Logits whose label is one of the changed
tokens may change. Earlier logits must not change.

        tokens   a b c d    a b X Y
        labels   b c d e    b X Y .
        logits   . . . .    = = ? ?
"""

import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensor

from .labels import NEXT_SENTENCE
from .model import Refused
from .notices import note, warn
from .traced import ancestors, attribute

NOT_TOKENS = ("token_type_ids", "attention_mask")  # inputs that are not tokens
MAX_DRAWN_ELEMENTS = 1 << 26  # elements of parameters without values; with more, nothing is drawn
TOLERANCE = 1e-5  # largest difference, relative to the largest number, that counts as equal


class Unknown(Exception):
    """The model cannot be run here, so the answer is unknown."""


def tokens_of(inputs):
    """The name of the input with tokens, or None if that is unclear."""
    names = [n for n, t in inputs.items() if not t.is_floating_point() and n not in NOT_TOKENS]
    return names[0] if len(names) == 1 and inputs[names[0]].dim() == 2 else None


def check(whole, model, found):
    """Refuses a loss if all of its logits are computed from the tokens that they are
    compared with. Prints a note about a model that is not causal. `whole` is the traced
    `model`, which has real inputs and labels. `found` are the Comparisons of its
    labels."""
    name = tokens_of(model.inputs)
    if name is None or model.inputs[name].shape[1] < 2:
        return
    for label in dict.fromkeys(each.label for each in found):
        of_label = [each for each in found if each.label == label]
        nearest = max(of_label, key=lambda each: each.by)
        at_same = [each for each in of_label if each.by == 0]
        if nearest.by < 0 and nearest.has_all_positions:
            _check_earlier(whole, model, name, nearest)
        elif at_same and NEXT_SENTENCE not in model.labels and not _has_hidden(model.labels[label]):
            _check_causal(whole, model, name, at_same[0])


def _has_hidden(label):
    """Whether only masked tokens have labels. The labels of all other positions are
    then negative, which no token is."""
    return bool((label < 0).any())


def _check_earlier(whole, model, name, comparison):
    text = (
        "expected a loss that compares the logits of a position with the label of the "
        f"same position, but it compares them with '{comparison.label}' of {-comparison.by} "
        f"before{comparison.where()}"
    )
    try:
        reads = _sees_label(whole, model, name, comparison)
    except Unknown:
        warn(
            f"{text}: labels are the next tokens already, so the model has these labels "
            "in its input, unless it shifts its input itself"
        )
        return
    if reads:
        raise Refused(
            f"{text}. Labels are the next tokens already, so the model would learn to "
            "copy its input: leave the shift out, like F.cross_entropy(logits.flatten(0, "
            "1), labels.flatten())"
        )


def _check_causal(whole, model, name, comparison):
    try:
        reads = _sees_label(whole, model, name, comparison)
    except Unknown:
        return
    if reads:
        note(
            "the logits of a position depend on later tokens, so if labels are the next "
            "tokens, the model can copy them from its input, and its loss means nothing. "
            "Give it a causal mask, or train it with --mask, whose labels are the masked "
            "tokens"
        )


def _sees_label(whole, model, name, comparison):
    """Whether the logits of a position depend on the token that is their label, or on
    later tokens."""
    parameters = [p for p in whole.parameters() if isinstance(p, FakeTensor)]
    if sum(p.numel() for p in parameters) > MAX_DRAWN_ELEMENTS:
        raise Unknown

    def logits_of(tokens):
        given = [tokens if n == name else t for n, t in model.inputs.items()]
        try:
            logits = _run(whole, given, comparison.logits)
        except Exception as error:  # some operators run otherwise than they are traced
            raise Unknown from error
        first = logits.narrow(0, 0, 1) if comparison.dim > 0 else logits
        return first.narrow(comparison.dim, 0, min(most, first.shape[comparison.dim])).clone()

    tokens = model.inputs[name]
    middle, most = tokens.shape[1] // 2, tokens.shape[1] - comparison.path.offset
    if most < 1:
        raise Unknown
    before = logits_of(tokens)
    # A model may read tokens in blocks, so try two adjacent positions: at least one of them is
    # inside a block.
    for place in sorted({middle, min(middle + 1, tokens.shape[1] - 1)}):
        other = tokens.clone()
        changed = other[0, place:]
        other[0, place:] = torch.where(changed > 0, changed - 1, 1)
        # Label i is token i + 1.
        count = place - comparison.path.offset
        if count < 1:
            raise Unknown
        earlier = (slice(None),) * comparison.dim + (slice(count),)
        difference = (before - logits_of(other))[earlier].abs().max().item()
        if difference > TOLERANCE * before[earlier].abs().max().item():
            return True
    return False


def _run(whole, inputs, wanted):
    """The value of the node `wanted` for these inputs."""
    values, needed = {}, ancestors([wanted])
    uses = {node: sum(user in needed for user in node.users) for node in needed}
    given = dict(zip(whole.graph.find_nodes(op="placeholder"), inputs))
    # Fork the random generator, so that the numbers that the user's code draws do not
    # change. The fixed seed makes dropout the same in both runs.
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        for node in whole.graph.nodes:
            if node not in needed:
                continue
            if node.op == "placeholder":
                values[node] = given[node].clone()
            elif node.op == "get_attr":
                values[node] = _value(attribute(whole, node.target))
            else:
                take = lambda tree: fx.map_arg(tree, values.__getitem__)
                values[node] = node.target(*take(node.args), **take(dict(node.kwargs)))
            for source in node.all_input_nodes:
                uses[source] -= 1
                if uses[source] == 0:
                    del values[source]
    return values[wanted]


def _value(tensor):
    """The value of a parameter, which is drawn if it has none."""
    if not isinstance(tensor, FakeTensor):
        return tensor
    if not isinstance(tensor, torch.nn.Parameter):
        raise Unknown
    made = torch.empty(tuple(tensor.shape), dtype=tensor.dtype)
    return made.normal_(0, max(made.shape[-1:] or [1]) ** -0.5)
