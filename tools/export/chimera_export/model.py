# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The model that a user gives to the exporter."""

import dataclasses
import difflib
import fnmatch
import inspect
import typing

import torch

from . import Refused
from .traced import own_name


class PositionalTensors(dict):
    """Tensors by name that are passed to a function by position."""


# If a loss has several terms, the exporter adds a label with this name. The run
# computes its values.
SCALES = "loss_scales"
MOST_TERMS = 16


@dataclasses.dataclass
class Model:
    """A module to train, with example inputs and labels.

    `inputs` and `labels` are the tensors of one micro-batch, by name. Their first
    dimension counts samples. The README of tools/export lists the names that a run's data
    can have. The `labels` of a text are the next tokens already: labels[:, i] is the
    token after token i. So a loss compares labels[:, i] with the logits of position i and
    does not shift. (The losses of Hugging Face's causal models shift, unless they get
    shift_labels.) The exporter calls the module with the inputs by name, and `loss` with
    the module's result and the labels by name. So the names must be those of the
    parameters of the module's `forward` and of `loss`. If `inputs` or `labels` is a
    tuple, its tensors are passed by position and get the names of the parameters.

    The loss is a scalar or a pair. A scalar is the mean over the micro-batch; all
    micro-batches then have equal weight. A pair is the sum of the losses and their
    number (its weight), which depends on the labels alone. The loss of a step is then
    the sum of all sums divided by the sum of all weights, however the labels are
    distributed over micro-batches. A list of such pairs is a loss with several terms:
    the sum of their means.

    `logits` is a function that takes the module's result and returns the logits of the
    next token, of shape [samples, context, vocabulary], or the logits of the only int64
    label, of that label's shape and then [classes]. With the former a run can generate
    text (--generate). With both it reports the accuracy on held-out samples, if there is
    only one int64 label. By default, if the loss has no parameters, the logits are the
    module's result or its attribute `logits`, if that tensor has one of these shapes.

    `split_at` names the module whose children become layers, and "" is the whole
    module. By default, of the ModuleLists and Sequentials with at least half as many
    parameters as the largest one, it is the one with the most children.

    `untied` says that parameters with equal initial values, such as an embedding and a
    head that is a copy of it, are not tied.

    `decay` says which parameters have weight decay. It maps patterns of names (as in
    fnmatch, "*.gain") to True or False. The first pattern that matches a name is used.
    A parameter whose name matches no pattern has weight decay if more than one of its
    dimensions is larger than 1: matrices have it, biases and gains of norms do not.
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
            raise Refused(f"expected no label with the reserved name '{SCALES}'")
        _check_call("inputs", self.inputs, self.module, 0)
        _check_call("labels", self.labels, self.loss, 1)
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
        """The package's entry about weight decay for the parameter of this name."""
        for pattern, decays in (self.decay or {}).items():
            if fnmatch.fnmatchcase(name, pattern):
                return {"decay": "Always" if decays else "Never"}
        return {}

    def given(self):
        """The example inputs, then the example labels."""
        return [*self.inputs.values(), *self.labels.values()]

    def samples(self):
        return int(next(iter(self.inputs.values())).shape[0])

    def with_samples(self, count, fake_mode=None):
        """The model with examples of `count` samples: the first ones of its own, repeated
        if there are fewer. They are fake tensors if there is a `fake_mode`."""

        def cut(tensor):
            rows = tensor[torch.arange(count) % tensor.shape[0]]
            return fake_mode.from_tensor(rows) if fake_mode else rows

        def cut_all(tensors):
            return type(tensors)((name, cut(t)) for name, t in tensors.items())

        return dataclasses.replace(
            self, inputs=cut_all(self.inputs), labels=cut_all(self.labels)
        )

    def named_parameters(self):
        """The trained parameters of the module and, if the loss is a module, of the
        loss. Frozen parameters (requires_grad=False) are not among them."""
        return [
            (own_name(name), p)
            for name, p in WithLoss(self).named_parameters()
            if p.requires_grad
        ]


def _named(what, given, function, skipped):
    """The tensors `given`, by name. If they have no names, they get the names of the
    parameters of `function`, after its first `skipped` ones."""
    if isinstance(given, torch.Tensor):
        given = (given,)
    if isinstance(given, (tuple, list)):
        names = _parameters_of(function)[skipped:]
        names += [f"{what}[{i}]" for i in range(len(names), len(given))]
        given = PositionalTensors(zip(names, given))
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


def _check_call(what, given, function, skipped):
    """Refuses tensors with which `function` cannot be called after `skipped` other
    arguments: their names are not those of its parameters, or there are too many or too
    few. If hooks or a decorator may change the arguments, refuses nothing."""
    called = "the loss" if what == "labels" else "the module"
    if isinstance(function, torch.nn.Module):
        if function._forward_pre_hooks:
            return
        called, function = f"{type(function).__name__}.forward", function.forward
    try:
        signature = inspect.signature(function, follow_wrapped=False)
    except (TypeError, ValueError):
        return
    names = list(signature.parameters)[skipped:]
    others = [None] * skipped
    try:
        if isinstance(given, PositionalTensors):
            signature.bind(*others, *given.values())
        else:
            signature.bind(*others, **given)
    except TypeError as error:
        reason = str(error)
        if not isinstance(given, PositionalTensors) and not set(given) <= set(names):
            reason = f"rename a parameter or its tensor, or give {what} as a tuple"
        after = " after the module's result" if skipped else ""
        raise Refused(
            f"expected {what} that fit the parameters of {called}{after} "
            f"({_quoted(names)}), got {_quoted(given)}: {reason}"
        ) from None


def _quoted(names):
    return ", ".join(f"'{name}'" for name in names) or "none"


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
    """The model and its loss as one function of the inputs and labels, by position. It
    returns the loss or, for each of its terms, the sum and the weight."""

    def __init__(self, model):
        super().__init__()
        self.model = model.module
        # These attributes are functions and not modules, so they do not become submodules.
        self.inputs, self.labels = _call_of(model.inputs), _call_of(model.labels)
        self.count = len(model.inputs)
        self.loss = model.loss
        self.logits = model.logits
        self.seen = None  # if set, is called with the module's result

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
    """Like WithLoss. If the model has logits, also returns them, as the last result."""

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
        logits = self._logits(made, arguments[0], arguments[self.count :])
        return results if logits is None else (*results, logits)

    def _logits(self, made, tokens, labels):
        if self.logits is not None:
            given = self.logits(made)
            if not _are_of(given, tokens) and not _are_classes(given, labels):
                raise Refused(
                    "expected logits of [samples, context, vocabulary], or of the shape of "
                    f"the only int64 label and then [classes], got {given!r:.200}"
                )
            return given
        # If the loss has parameters, we assume that it has the head, and so takes
        # hidden states and not logits.
        if isinstance(self.loss, torch.nn.Module) and list(self.loss.parameters()):
            return None
        found = made if isinstance(made, torch.Tensor) else getattr(made, "logits", None)
        return found if _are_of(found, tokens) or _are_classes(found, labels) else None


def _are_of(logits, tokens):
    """Whether `logits` may predict, for each of `tokens`, the next token."""
    return (
        isinstance(logits, torch.Tensor)
        and logits.is_floating_point()
        and logits.dim() == 3
        and logits.shape[:2] == tokens.shape
        and not tokens.is_floating_point()
    )


def _are_classes(logits, labels):
    """Whether `logits` may have a number for each class of each element of the only int64
    label."""
    whole = [label for label in labels if label.dtype == torch.int64]
    return (
        isinstance(logits, torch.Tensor)
        and logits.is_floating_point()
        and len(whole) == 1
        and logits.dim() == whole[0].dim() + 1
        and logits.shape[:-1] == whole[0].shape
        and logits.shape[-1] > 1
    )


def _call_of(given):
    """A function that calls a given function with some first arguments and then with
    tensors. It passes the tensors by position or by name, as in `given`."""
    if isinstance(given, PositionalTensors):
        return lambda function, tensors, *before: function(*before, *tensors)
    names = list(given)
    return lambda function, tensors, *before: function(*before, **dict(zip(names, tensors)))
