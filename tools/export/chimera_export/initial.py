# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Initial distributions of parameters, as the module's own initialisers give them.

While a model without values is made, its parameters are fake tensors and a Recorder sees
each operator call. It records the distribution of each tensor's elements: `normal_(0,
0.02)` makes a normal distribution, multiplying by a number scales it, and so on. A
package has these distributions, and a run draws from them with its own seed.

A tensor without such a distribution is Unknown, with a reason: its values are computed,
its rows differ, or two parameters share one draw. A run must load the values of such a
parameter.
"""

import contextlib
import dataclasses
import itertools
import math

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils import _pytree as pytree

from .model import Refused

# No number further from the mean than this many standard deviations is ever drawn.
MAX_DEVIATIONS = 8


@dataclasses.dataclass(frozen=True)
class Unknown:
    """Says that a tensor has no distribution that a run can draw from. `reason` is text
    for a message."""

    reason: str


@dataclasses.dataclass(frozen=True)
class Distribution:
    """The distribution of the elements of a tensor, each drawn independently. `start`
    is the name of a kind in package.fbs. The value of a constant is its `mean`. `draw`
    is the number of a draw: tensors that are computed from the same draw have the same
    number. `zero_row` is the number and the size of a row that is zero, such as the row
    of the padding token."""

    start: str
    mean: float = 0.0
    deviation: float = 0.0
    low: float = 0.0
    high: float = 0.0
    draw: int = -1
    zero_row: tuple = ()

    def scaled(self, factor, offset=0.0):
        """The distribution of factor * x + offset."""
        if factor == 0:
            return constant(offset)
        ends = sorted((self.low * factor + offset, self.high * factor + offset))
        return dataclasses.replace(
            self,
            mean=self.mean * factor + offset,
            deviation=self.deviation * abs(factor),
            low=ends[0] if self._has_ends() else 0.0,
            high=ends[1] if self._has_ends() else 0.0,
        )

    def clamped(self, low, high):
        """The distribution of x, clamped to bounds. None if clamping might change a
        drawn number."""
        if self.start == "Constant":
            return constant(min(max(self.mean, low), high))
        if self._has_ends() and low <= self._near(self.low) and self._near(self.high) <= high:
            return self
        reach = MAX_DEVIATIONS * self.deviation
        if self.start == "Uniform" or low > self.mean - reach or high < self.mean + reach:
            return None
        return self

    def _has_ends(self):
        return self.start in ("Uniform", "TruncatedNormal")

    def _near(self, end):
        """`end`, moved towards the middle by as much as rounding may have moved it."""
        return end - math.copysign(1e-6 * (self.high - self.low), end - self.mean)

    def of_inverse_error_function(self):
        """The distribution of erfinv(x): a normal distribution without its tails."""
        if self.start != "Uniform" or self.low < -1 or self.high > 1:
            return None
        deviation = math.sqrt(0.5)
        ends = torch.tensor([self.low, self.high], dtype=torch.float64).erfinv()
        ends = ends.clamp(-2 * MAX_DEVIATIONS * deviation, 2 * MAX_DEVIATIONS * deviation)
        return dataclasses.replace(
            self, start="TruncatedNormal", mean=0.0, deviation=deviation,
            low=ends[0].item(), high=ends[1].item(),
        )  # fmt: skip

    def simplest(self):
        """The simplest kind that has the same distribution."""
        if self.start == "Normal" and self.deviation == 0:
            return constant(self.mean)
        if self.start == "Uniform" and self.low == self.high:
            return constant(self.low)
        if self.start == "TruncatedNormal":
            reach = MAX_DEVIATIONS * self.deviation
            if self.low <= self.mean - reach and self.high >= self.mean + reach:
                return dataclasses.replace(self, start="Normal")
        return self

    def entry(self):
        """The entry of this distribution in a package."""
        row = {"zero_row": self.zero_row[0]} if self.zero_row else {}
        if self.start == "Constant":
            whole = {0.0: "Zeros", 1.0: "Ones"}.get(self.mean)
            return ({"start": whole} if whole else {"start": "Constant", "mean": self.mean}) | row
        fields = {
            "Normal": ("mean", "deviation"),
            "Uniform": ("low", "high"),
            "TruncatedNormal": ("mean", "deviation", "low", "high"),
        }[self.start]
        entry = {"start": self.start} | {
            name: value for name in fields if (value := getattr(self, name))
        }
        return entry | row


def constant(value):
    return Distribution("Constant", mean=float(value))


def normal(mean=0.0, deviation=1.0):
    return Distribution("Normal", float(mean), float(deviation), draw=next(_draws))


def uniform(low=0.0, high=1.0):
    low, high = float(low), float(high)
    return Distribution(
        "Uniform", mean=(low + high) / 2, low=low, high=high, draw=next(_draws)
    )


def truncated_normal(mean, deviation, low, high):
    mean, deviation, low, high = map(float, (mean, deviation, low, high))
    if not deviation or not low < high or not low < mean + MAX_DEVIATIONS / 2 * deviation \
            or not high > mean - MAX_DEVIATIONS / 2 * deviation:  # fmt: skip
        return Unknown("it is drawn from the tail of a normal distribution")
    return Distribution(
        "TruncatedNormal", mean, deviation, max(low, mean - 2 * MAX_DEVIATIONS * deviation),
        min(high, mean + 2 * MAX_DEVIATIONS * deviation), next(_draws),
    )  # fmt: skip


_draws = itertools.count()
NOT_SET = Unknown("nothing sets its values")
FILLED = {"zeros": 0, "zero": 0, "zeros_like": 0, "new_zeros": 0,
          "ones": 1, "ones_like": 1, "new_ones": 1}  # fmt: skip
# Operators whose result has the same elements as their first argument.
SAME = {"clone", "detach", "alias", "_to_copy", "contiguous", "lift_fresh",
        "lift_fresh_copy", "positive", "copy", "view_copy", "_unsafe_view"}  # fmt: skip


def _given(function, args, kwargs):
    """The arguments of a call by name."""
    given = {}
    for i, argument in enumerate(function._schema.arguments):
        given[argument.name] = (
            args[i] if i < len(args) else kwargs.get(argument.name, argument.default_value)
        )
    return given


class Recorder(TorchDispatchMode):
    """A mode that records the distribution of the elements of each tensor."""

    def __init__(self):
        super().__init__()
        # The keys are memories, because a tensor shares its memory with all its views.
        # A weak reference keeps the address of a memory from being used again.
        self.known = {}

    def of(self, tensor):
        """The Distribution of a tensor, or Unknown. None if it has real values that do
        not depend on a draw."""
        return self.known.get(StorageWeakRef(tensor.untyped_storage()))

    def set(self, tensor, found):
        reference = StorageWeakRef(tensor.untyped_storage())
        if found is None:
            self.known.pop(reference, None)
        else:
            self.known[reference] = found

    def begin(self, parameter, value):
        """Records that `parameter` begins as `value`, the tensor that a module was
        given."""
        found = self.of(value)
        if found is None:
            found = _constant_of(value) or Unknown("its values are computed")
        self.set(parameter, self._copied([value], [found]))

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        result = function(*args, **kwargs)
        schema = function._schema
        changed = [a.alias_info is not None and a.alias_info.is_write for a in schema.arguments]
        if any(changed):
            self._write(function, args, kwargs, changed)
        elif all(r.alias_info is None for r in schema.returns):
            for tensor in pytree.tree_leaves(result):
                if isinstance(tensor, torch.Tensor):
                    self.set(tensor, self._made_by(function, args, kwargs))
        return result

    def _write(self, function, args, kwargs, changed):
        given = _given(function, args, kwargs)
        tensors = list(given.values())
        written = [t for t, is_changed in zip(tensors, changed) if is_changed]
        for tensor in pytree.tree_leaves(written):
            if not isinstance(tensor, torch.Tensor):
                continue
            if not isinstance(tensor, FakeTensor) and any(
                isinstance(t, FakeTensor) for t in pytree.tree_leaves(tensors)
            ):
                raise Refused(
                    "expected a model that can be made without values, but the code that "
                    "makes it writes values of parameters into another tensor "
                    f"({function.name()}): leave out --no-values"
                )
            found = self._made_by(function, args, kwargs)
            before = self.of(tensor)
            if not _is_whole(tensor):
                found = _after_partial_write(before, found, tensor)
            self.set(tensor, found)

    def _made_by(self, function, args, kwargs):
        """The distribution of the elements that a call makes."""
        name = function.overloadpacket.__name__.removesuffix("_")
        given = _given(function, args, kwargs)
        if found := self._drawn(name, given):
            return found
        # Leave out arguments that the call only writes.
        read = {
            a.name: given[a.name] for a in function._schema.arguments
            if not (a.kwarg_only and a.alias_info is not None and a.alias_info.is_write)
        }  # fmt: skip
        tensors = [t for t in pytree.tree_leaves(read) if isinstance(t, torch.Tensor)]
        states = [self._state(t) for t in tensors]
        first = states[0] if states else None
        keeps_values = name != "_to_copy" or getattr(
            given.get("dtype"), "is_floating_point", True
        )
        if name in SAME and keeps_values and len(states) == (2 if name == "copy" else 1):
            return self._copied(tensors, states)
        if name == "constant_pad_nd" and (
            not any(given["pad"]) or first == constant(given["value"])
        ):
            return self._copied(tensors, states) if first else None
        numbers = all(_is_number(s) for s in states)
        if states and numbers and torch.Tag.pointwise in function.tags:
            return self._folded(function, args, kwargs, states)
        is_drawn = isinstance(first, Distribution) and first.draw >= 0 and not first.zero_row
        # A draw that is broadcast repeats its numbers.
        if is_drawn and torch.broadcast_shapes(*(t.shape for t in tensors)) == tensors[0].shape:
            if found := _transformed(name, given, states):
                return found
        if torch.Tag.nondeterministic_seeded in function.tags or any(
            isinstance(s, Unknown) or isinstance(s, Distribution) and s.draw >= 0
            for s in states
        ):
            return Unknown(f"{function.name()} computes its values from drawn ones")
        if any(isinstance(t, FakeTensor) for t in tensors):
            return Unknown("its values are computed")
        return None

    def _state(self, tensor):
        """The distribution of a tensor. A real tensor with one element is a
        constant."""
        found = self.of(tensor)
        if found is None and tensor.numel() == 1 and not isinstance(tensor, FakeTensor):
            return _constant_of(tensor)
        return found

    def _drawn(self, name, given):
        if name in FILLED:
            return constant(FILLED[name])
        if name.removeprefix("new_").startswith("empty"):
            return NOT_SET
        value = given.get("fill_value", given.get("value", given.get("s")))
        if name in ("full", "full_like", "new_full", "fill", "scalar_tensor"):
            if isinstance(value, torch.Tensor):
                return self._state(value) or Unknown("its values are computed")
            return constant(value)
        if name in ("randn", "randn_like"):
            return normal()
        if name in ("rand", "rand_like"):
            return uniform()
        if name == "uniform":
            return uniform(given["from"], given["to"])
        if name == "normal" and not isinstance(given.get("std"), torch.Tensor):
            if not isinstance(given.get("mean"), torch.Tensor):
                return normal(given["mean"], given["std"])
        return None

    def _copied(self, tensors, states):
        source, found = tensors[-1], states[-1]
        if isinstance(found, Distribution) and found.draw < 0 and not found.zero_row:
            return found
        if isinstance(found, Unknown):
            return found
        if found is None:
            if isinstance(source, FakeTensor):
                return Unknown("its values are computed")
            # A copy that is a real tensor needs no entry: `begin` reads its values.
            is_fake = isinstance(tensors[0], FakeTensor)
            return (_constant_of(source) or Unknown("its values are computed")) if is_fake else None
        if tensors[0].numel() != source.numel() or 0 in source.stride():
            return Unknown("its values repeat")
        if found.zero_row and not (_is_whole(source) and source.is_contiguous()):
            return Unknown("its parts are initialised differently")
        return found

    def _folded(self, function, args, kwargs, states):
        """The result of a call, computed with the known number of each tensor
        argument."""
        left = iter(states)

        def plain(value):
            if not isinstance(value, torch.Tensor):
                return value
            return torch.full((), next(left).mean, dtype=value.dtype, device="cpu")

        args, kwargs = pytree.tree_map(plain, (args, dict(kwargs)))
        with _without_modes():
            return constant(function(*args, **kwargs).item())


def _after_partial_write(before, found, part):
    """The distribution of a tensor after a write to `part`, a view of it. `before` is
    its distribution before the write, `found` the distribution of the written
    elements."""
    if found == before and isinstance(found, Distribution) and found.draw < 0:
        return found
    size, first = part.numel(), part.storage_offset()
    if (
        found == constant(0)
        and isinstance(before, Distribution)
        and not before.zero_row
        and part.is_contiguous()
        and size
        and first % size == 0
    ):
        return dataclasses.replace(before, zero_row=(first // size, size))
    return Unknown("its parts are initialised differently")


def _transformed(name, given, states):
    """The result of an operator on a drawn tensor and numbers."""

    def number(what):
        value = given.get(what)
        if isinstance(value, torch.Tensor):
            other = states[1]
            return other.mean if _is_number(other) else None
        return value if isinstance(value, (int, float)) else None

    own, other = states[0], number("other")
    times = given.get("alpha", 1)
    if name == "neg":
        return own.scaled(-1.0)
    if name == "erfinv":
        return own.of_inverse_error_function()
    if name in ("clamp", "clip"):
        low, high = given.get("min"), given.get("max")
        if isinstance(low, torch.Tensor) or isinstance(high, torch.Tensor):
            return None
        return own.clamped(-math.inf if low is None else low, math.inf if high is None else high)
    if other is None:
        return None
    if name in ("mul", "multiply"):
        return own.scaled(other)
    if name in ("div", "divide", "true_divide") and other and not given.get("rounding_mode"):
        return own.scaled(1 / other)
    if name in ("add", "sub", "subtract"):
        return own.scaled(1.0, other * times * (1 if name == "add" else -1))
    if name == "rsub":
        return own.scaled(-times, other)
    return None


def _is_number(state):
    """Whether all elements are the same known number."""
    return isinstance(state, Distribution) and state.start == "Constant" and not state.zero_row


def _is_whole(tensor):
    """Whether a tensor is the whole of its memory."""
    size = tensor.untyped_storage().nbytes()
    return int(size) == tensor.numel() * tensor.element_size() and 0 not in tensor.stride()


def _constant_of(tensor):
    """The constant that all elements of a real tensor equal, or None."""
    if isinstance(tensor, FakeTensor) or tensor.is_meta or not tensor.numel():
        return None
    with _without_modes(), torch.no_grad():
        first = tensor.reshape(-1)[0]
        return constant(first.item()) if bool((tensor == first).all()) else None


@contextlib.contextmanager
def _without_modes():
    with torch.utils._python_dispatch._disable_current_modes():
        yield


@contextlib.contextmanager
def recording():
    """Yields a Recorder that sees all calls in this context."""
    whole = torch.nn.init._no_grad_trunc_normal_
    recorder = Recorder()

    def truncated(tensor, mean, std, a, b, *_, **__):
        # PyTorch draws again until all elements are inside the bounds, which needs
        # values.
        if not isinstance(tensor, FakeTensor):
            whole(tensor, mean, std, a, b, *_, **__)
        recorder.set(
            tensor,
            truncated_normal(mean, std, a, b)
            if _is_whole(tensor)
            else Unknown("its parts are initialised differently"),
        )
        return tensor

    torch.nn.init._no_grad_trunc_normal_ = truncated
    try:
        with recorder:
            yield recorder
    finally:
        torch.nn.init._no_grad_trunc_normal_ = whole


def set_starts(recorder, parameters):
    """Sets the `start` of each parameter. `parameters` has them by name."""
    of_draw = {}
    for name, parameter in parameters.items():
        found = recorder.of(parameter) or Unknown("its values are computed")
        if isinstance(found, Distribution):
            found = found.simplest()
            if found.zero_row and found.zero_row[1] * parameter.shape[0] != parameter.numel():
                found = Unknown("its parts are initialised differently")
        if isinstance(found, Distribution):
            if found.draw >= 0:
                of_draw.setdefault(found.draw, []).append(name)
        parameter.start = found
    for names in of_draw.values():
        if len(names) > 1:
            for name in names:
                other = next(n for n in names if n != name)
                parameters[name].start = Unknown(f"it has the same initial values as {other}")


def package_entry(parameter):
    """A package's entry for a parameter without values."""
    found = parameter.start
    return {"start": "Given"} if isinstance(found, Unknown) else found.entry()


def missing(parameters):
    """A sentence that lists the parameters whose initial values a run cannot draw. Empty
    if there are none."""
    unknown = {}
    for name, parameter in parameters.items():
        if isinstance(parameter.start, Unknown):
            unknown.setdefault(parameter.start.reason, []).append(name)
    if not unknown:
        return ""
    lines = []
    for reason, names in unknown.items():
        more = f" and {len(names) - 4} more" if len(names) > 4 else ""
        lines.append(f"  {', '.join(names[:4])}{more}: {reason}")
    return (
        "a run cannot draw the initial values of some parameters: start it with --load, "
        "or export without --no-values:\n" + "\n".join(lines)
    )
