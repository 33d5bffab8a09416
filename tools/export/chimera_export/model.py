# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a user hands to the exporter."""

import dataclasses
import difflib
import fnmatch
import inspect
import typing

import torch

from . import Refused
from .traced import own_name


class ByPosition(dict):
    """Tensors by name that a function takes by position."""


# What a run gives a loss of several terms, as its last label.
SCALES = "loss_scales"
MOST_TERMS = 16


@dataclasses.dataclass
class Model:
    """A module to train, with examples of what it is given.

    `inputs` and `labels` are tensors of one micro-batch, whose first dimension
    counts its samples, by name; which names data gives says the README of
    tools/export. The `labels` of a text are the next tokens already: labels[:, i] is
    what comes after token i, so a loss compares it with the logits of position i and
    does not shift (those of Hugging Face's causal models do, unless they are given
    shift_labels). The module is called with the inputs by name, `loss` with what the
    module returns and the labels by name. Both may be tuples too: then they are given
    by position, and named as the functions name them.

    The loss is the mean of the micro-batch, a scalar, where all micro-batches weigh
    alike; else a pair: the sum of the losses and how many there are, a function of
    the labels alone. The loss of a step is then all sums over all weights, whatever a
    micro-batch has of them. A list of such pairs is the sum of their means.

    `logits` says what of that the module returns are the logits of the next token,
    a tensor of [samples, context, vocabulary], so that a run can write text
    (--generate). Unless it is given that is what the module returns, or its `logits`,
    where these have such a shape and the loss has no parameters of its own.

    `split_at` names the modules (a ModuleList or Sequential) whose children are
    layers to cut at; without it the largest one is taken.

    `untied` says that parameters which begin with equal values, like an embedding and
    a head that is a copy of it, are meant to be two.

    `decay` says by name on which parameters weight decay works: a dictionary of
    patterns (as fnmatch has them, "*.gain") to True or False, of which the first that
    matches a name counts. It works on other parameters if more than one of their
    dimensions is larger than 1: on matrices, not on biases and the gains of norms.
    """

    module: torch.nn.Module
    inputs: typing.Union[dict, tuple, torch.Tensor]
    labels: typing.Union[dict, tuple, torch.Tensor]
    loss: typing.Callable
    logits: typing.Optional[typing.Callable] = None
    split_at: typing.Optional[str] = None
    untied: bool = False
    decay: typing.Optional[dict] = None

    def __post_init__(self):
        self.inputs = _named("inputs", self.inputs, self.module, 0)
        self.labels = _named("labels", self.labels, self.loss, 1)
        if SCALES in self.labels:
            raise Refused(f"expected labels of another name than '{SCALES}'")
        self._check_decay()

    def _check_decay(self):
        decay = {} if self.decay is None else self.decay
        if not isinstance(decay, dict) or not all(
            isinstance(pattern, str) and isinstance(decays, bool)
            for pattern, decays in decay.items()
        ):
            raise Refused(
                "expected decay to be a dictionary of patterns of parameters' names to "
                f"True or False, got {decay!r:.200}"
            )
        names = [name for name, _ in self.named_parameters()] if decay else []
        for pattern in decay:
            if not fnmatch.filter(names, pattern):
                near = difflib.get_close_matches(pattern.strip("*"), names, 3, 0)
                raise Refused(
                    f"expected each pattern of decay to match a parameter, got "
                    f"'{pattern}': names are like {', '.join(near)}"
                )

    def decay_of(self, name):
        """What a package says of weight decay of the parameter of this name."""
        for pattern, decays in (self.decay or {}).items():
            if fnmatch.fnmatchcase(name, pattern):
                return {"decay": "Always" if decays else "Never"}
        return {}

    def given(self):
        """The examples in order."""
        return [*self.inputs.values(), *self.labels.values()]

    def samples(self):
        return int(next(iter(self.inputs.values())).shape[0])

    def named_parameters(self):
        """Those of the module and, where it is a module too, of the loss, that are
        trained. Frozen ones (requires_grad=False) are buffers."""
        return [
            (own_name(name), p)
            for name, p in WithLoss(self).named_parameters()
            if p.requires_grad
        ]


def _named(what, given, function, skipped):
    """The tensors by name. `function` takes them behind `skipped` others."""
    if isinstance(given, torch.Tensor):
        given = (given,)
    if isinstance(given, (tuple, list)):
        names = _parameters_of(function)[skipped:]
        names += [f"{what}[{i}]" for i in range(len(names), len(given))]
        given = ByPosition(zip(names, given))
    if (
        not isinstance(given, dict)
        or not (given or what == "labels")
        or not all(isinstance(t, torch.Tensor) and t.dim() > 0 for t in given.values())
    ):
        raise Refused(
            f"expected {what} to be tensors whose first dimension counts "
            f"samples, got {given!r:.200}"
        )
    return given


def _parameters_of(function):
    if isinstance(function, torch.nn.Module):
        function = function.forward
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    by_position = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [p.name for p in parameters if p.kind in by_position]


class WithLoss(torch.nn.Module):
    """A model as one function of its inputs and labels, in order. It returns the loss
    or, of each of its terms, the sum and the weight, one after another."""

    def __init__(self, model):
        super().__init__()
        self.model = model.module
        # A module's attributes of other types are no submodules.
        self.inputs, self.labels = _call_of(model.inputs), _call_of(model.labels)
        self.count = len(model.inputs)
        self.loss = model.loss
        self.logits = model.logits
        self.seen = None  # is called with what the module returns

    def forward(self, *arguments):
        return self.loss_of(self.made(arguments), arguments)

    def made(self, arguments):
        made = self.inputs(self.model, arguments[: self.count])
        if self.seen:
            self.seen(made)
        return made

    def loss_of(self, made, arguments):
        loss = self.labels(self.loss, arguments[self.count :], made)
        if isinstance(loss, torch.Tensor):
            return loss
        terms = loss if isinstance(loss, list) else [loss]
        flat = []
        for term in terms:
            if (
                not isinstance(term, (tuple, list))
                or len(term) != 2
                or not isinstance(term[0], torch.Tensor)
                or not isinstance(term[1], (torch.Tensor, int, float))
            ):
                raise Refused(
                    "expected the loss to be a tensor, or a sum and its weight, or a "
                    f"list of such pairs, got {loss!r:.200}"
                )
            total, weight = term
            if not isinstance(weight, torch.Tensor):
                weight = torch.full((), weight)
            flat += [total, weight]
        if not 1 <= len(terms) <= MOST_TERMS or len({t.dtype for t in flat[::2]}) > 1:
            raise Refused(
                f"expected a loss of 1 to {MOST_TERMS} terms of one type, got {loss!r:.200}"
            )
        return tuple(flat)


class WithLossAndLogits(WithLoss):
    """The same with the logits behind, where the model has any."""

    def forward(self, *arguments):
        made = self.made(arguments)
        loss = self.loss_of(made, arguments)
        results = loss if isinstance(loss, tuple) else (loss,)
        for each in results:
            if each.dim() != 0:
                raise Refused(
                    f"expected a loss of one number, got one of the shape "
                    f"{list(each.shape)}: give the mean, or a sum and its weight"
                )
        logits = self._logits(made, arguments[0])
        return results if logits is None else (*results, logits)

    def _logits(self, made, tokens):
        if self.logits is not None:
            given = self.logits(made)
            if not _are_of(given, tokens):
                raise Refused(
                    "expected logits of [samples, context, vocabulary], got "
                    f"{given!r:.200}"
                )
            return given
        # A loss that has a head is given what is before it.
        if isinstance(self.loss, torch.nn.Module) and list(self.loss.parameters()):
            return None
        found = made if isinstance(made, torch.Tensor) else getattr(made, "logits", None)
        return found if _are_of(found, tokens) else None


def _are_of(logits, tokens):
    """Whether these may be logits of what is behind each token."""
    return (
        isinstance(logits, torch.Tensor)
        and logits.is_floating_point()
        and logits.dim() == 3
        and logits.shape[:2] == tokens.shape
        and not tokens.is_floating_point()
    )


def _call_of(given):
    """What calls a function with such tensors, behind others."""
    if isinstance(given, ByPosition):
        return lambda function, tensors, *before: function(*before, *tensors)
    names = list(given)
    return lambda function, tensors, *before: function(*before, **dict(zip(names, tensors)))
