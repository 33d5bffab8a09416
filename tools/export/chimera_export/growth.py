# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks that a loss without a weight is a mean, and that a loss with a weight is a sum.

The loss is computed for the module's result on one sample, and for the same result
repeated: as two samples, and as twice as many tokens. A mean does not change. A sum
doubles, and so does its weight. The module itself runs only once, because only its result
is repeated.

Another check compares the loss of two samples with their losses alone (is_divisible).
"""

import contextlib
import dataclasses
import itertools
import math

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils import _pytree as pytree

from .model import WithLoss
from .notices import warn

GROWTH_FACTOR = 1.5
TOLERANCE = 1e-3  # largest relative difference of numbers that count as equal
ROUNDING = 1e-5  # largest relative difference by rounding alone
COMPARISONS = 3  # pairs of samples to compare, because one pair may be equal by chance
INDIVISIBLE = (
    "the loss of two samples is not the mean of their losses (with weights: the sum). So "
    "the size of a micro-batch changes the training, and schedules that divide "
    "micro-batches into parts are refused. If only labels that count are averaged, return "
    "a sum and its weight instead"
)


@contextlib.contextmanager
def evaluated(function):
    """A context in which `function` runs without dropout and gradients."""
    modes = {module: module.training for module in function.modules()}
    function.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for module, mode in modes.items():
            module.training = mode


def _pairs(given):
    """Up to COMPARISONS pairs of different samples of the tensors `given`: the first
    sample and another one. If all samples are equal, the other one has its tokens rotated
    by 1, 2 and so on."""

    def different(pairs):
        pairs = (pair for pair in pairs if not all(torch.equal(*tensor) for tensor in pair))
        return list(itertools.islice(pairs, COMPARISONS))

    samples = min(tensor.shape[0] for tensor in given)
    rotated = lambda t, by: torch.stack([t[0], t[0].roll(by, 0) if t.dim() > 1 else t[0]])
    return different([t[[0, i]] for t in given] for i in range(1, samples)) or different(
        [rotated(t, by) for t in given] for by in range(1, COMPARISONS + 1)
    )


@dataclasses.dataclass(frozen=True)
class Shape:
    """The shape and type of a tensor without values."""

    shape: tuple
    dtype: torch.dtype

    def drawn(self, seed=0):
        # Fork the random generator, so that the numbers that the user's code draws do
        # not change.
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            made = torch.zeros(self.shape, dtype=self.dtype)
            return made.normal_() if made.is_floating_point() else made


def shapes_of(tensors):
    """The structure of `tensors`, with a Shape in place of each tensor."""
    return pytree.tree_map_only(
        torch.Tensor, lambda t: Shape(tuple(int(n) for n in t.shape), t.dtype), tensors
    )


def _repeated(tensor, first, extent):
    """The tensor concatenated with itself, along its first dimension from `first` on
    that has the size `extent`. If there is no such dimension, the tensor itself."""
    for dim in range(first, tensor.dim() if extent else 0):
        if tensor.shape[dim] == extent:
            return torch.cat([tensor, tensor], dim)
    return tensor


class _LossModule(torch.nn.Module):
    """The loss function as a module. It contains the loss but not the model, so it has
    only the loss's parameters, under the names "loss.…"."""

    def __init__(self, function):
        super().__init__()
        self.loss, self.function = function.loss, [function]

    def forward(self, made, arguments):
        return self.function[0].loss_of(made, arguments)


class _RepeatedLoss:
    """Computes the loss of a few samples. `made` is the module's result. If the model
    has no values or a seed is given, the numbers of the result are drawn at random."""

    def __init__(self, model, made, seed=None):
        self.function = WithLoss(model)
        self.samples = model.samples()
        # Include the parameters of the loss, if it is a module that has any.
        self.parameters = {
            n: p for n, p in self.function.named_parameters() if n.startswith("loss.")
        }
        has_values = not any(isinstance(p, FakeTensor) for p in self.function.parameters())
        draw = lambda shape: shape.drawn(seed or 0)
        if seed is not None or not has_values:
            self.made = pytree.tree_map_only(Shape, draw, made)
        if not has_values:
            self.parameters = pytree.tree_map(draw, shapes_of(self.parameters))
        elif seed is None:
            with evaluated(self.function):
                self.made = self.function.made(model.given())
        self.arguments = [None] * len(model.inputs) + list(model.labels.values())

    def of(self, count, repeat=lambda tensor: tensor, first=0):
        """The loss of `count` samples, beginning with the sample `first`. `repeat` may
        first repeat their tensors. Returns a list: one number or, for each term of the
        loss, the sum and the weight."""

        def few(tensor):
            of_all = tensor.dim() and tensor.shape[0] == self.samples
            return repeat(tensor[first : first + count] if of_all else tensor).clone()

        given = pytree.tree_map_only(torch.Tensor, few, (self.made, self.arguments))
        of_loss = _LossModule(self.function)
        with evaluated(self.function):
            made = torch.func.functional_call(of_loss, self.parameters, given)
            return [each.item() for each in (made if isinstance(made, tuple) else (made,))]


def check(model, made, probabilities):
    """Warns of a mean that grows with the number of samples or tokens. Also warns of a
    sum that does not grow although its weight does. `made` is the module's result, with
    a Shape for each tensor. `probabilities` are the names of labels whose second dimension
    is that of classes."""
    labels = [t for name, t in model.labels.items() if name not in probabilities]
    tokens = next((t.shape[1] for t in labels if t.dim() >= 2), 0)
    what, once, found = "samples", [], {}
    try:
        loss = _RepeatedLoss(model, made)
        count = 1
        once = loss.of(count)
        # If no label of this sample counts, use all samples.
        if not all(math.isfinite(each) for each in once) or 0 in once[1::2]:
            count = loss.samples
            once = loss.of(count)
        for what, first, extent in (("samples", 0, count), ("tokens", 1, tokens)):
            twice = loss.of(count, lambda t, f=first, e=extent: _repeated(t, f, e))
            if all(math.isfinite(each) for each in twice):
                found[what] = twice
    except Exception:  # of the user's code, which may not expect these shapes
        kind = "the sum that belongs to its weight" if len(once) > 1 else "a mean"
        # Do not warn about a sum that was checked with another size: a sum over samples usually
        # is a sum over tokens too.
        if len(once) <= 1 or not found:
            warn(
                f"cannot check that the loss is {kind}: it does not run with another "
                f"number of {what}"
            )
    if len(once) > 1:
        _check_sums(once, found)
    elif once:
        _check_mean(once[0], {what: twice[0] for what, twice in found.items()})


def _check_mean(once, found):
    grows = [what for what, twice in found.items() if abs(twice) > GROWTH_FACTOR * abs(once) > 0]
    if grows:
        warn(
            f"the loss grows with the number of {' and of '.join(grows)}: it is "
            f"{once:.4g}, and {found[grows[-1]]:.4g} for the same {grows[-1]} given twice. A "
            "run takes the mean of the micro-batches' losses, so a loss should be a mean "
            "too. Return a sum with its weight: return total, labels.numel()"
        )


def _check_sums(once, found):
    """`once` has the sum and the weight of each term of the loss. `found` has the same
    numbers for twice as many samples or tokens."""
    for k in range(0, len(once), 2):
        total, weight = once[k : k + 2]
        stays = [
            what
            for what, twice in found.items()
            if abs(twice[k + 1]) > GROWTH_FACTOR * abs(weight) > 0
            and abs(twice[k] - total) <= TOLERANCE * abs(total) > 0
        ]
        if stays:
            which = f"term {k // 2} of the loss" if len(once) > 2 else "the loss"
            warn(
                f"{which} is given as a sum with its weight, but does not grow with it: for "
                f"the same {stays[-1]} given twice, the weight is "
                f"{found[stays[-1]][k + 1]:.4g} instead of {weight:.4g}, but the sum is still "
                f"{total:.4g}. A run divides the sums by the weights, so a mean would be "
                'divided twice. Return the sum, like F.cross_entropy(…, reduction="sum"), '
                "labels.numel(), or only the mean"
            )


def is_divisible(model, made):
    """Whether the loss of two samples is the mean of their losses or, for each term that
    is a sum with a weight, the sum of their sums and weights. `made` is the module's
    result, with a Shape for each tensor. If the check cannot tell, returns True.

    If the model has values and its samples differ, the module runs on pairs of them, and
    on each alone. Otherwise only the loss is computed, for results of the module that are
    drawn at random."""
    function = WithLoss(model)

    def run(given):
        with evaluated(function):
            losses = function(*given)
        return [each.item() for each in (losses if isinstance(losses, tuple) else (losses,))]

    def by_module():
        if any(isinstance(p, FakeTensor) for p in function.parameters()):
            return
        for given in _pairs(model.given()):
            together = run(given)
            if together == run(given):  # it draws no random numbers in eval mode
                yield together, [run([t[i : i + 1] for t in given]) for i in (0, 1)]

    def by_loss():
        for seed in range(COMPARISONS):
            loss = _RepeatedLoss(model, made, seed)
            yield loss.of(2), [loss.of(1, first=i) for i in (0, 1)]

    def is_sum(together, alone):
        parts = 2 if len(together) == 1 else 1
        return all(
            abs(whole - sum(each) / parts) <= ROUNDING * max(map(abs, (whole, *each)))
            for whole, each in zip(together, zip(*alone))
        )

    for comparisons in (by_module, by_loss):
        found = []
        # The user's code may not expect these shapes.
        with contextlib.suppress(Exception):
            for together, alone in comparisons():
                if all(map(math.isfinite, (*together, *alone[0], *alone[1]))):
                    found.append(is_sum(together, alone))
        if found:
            return all(found)
    return True
