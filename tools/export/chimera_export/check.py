# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares a package with the loss and the gradients that PyTorch's autograd computes."""

import dataclasses

import torch
from torch._guards import detect_fake_mode

from . import affine, calls, graphs
from .model import Refused, WithLoss
from .notices import warn

TYPES = {name: dtype for dtype, name in graphs.TYPES.items()}


def _argument(given, kind, values, samples):
    what = given["kind"]
    if what == "Value":
        return values[given["values"][0]]
    if what == "Values":
        return [None if v < 0 else values[v] for v in given["values"]]
    if what == "None":
        return None
    if what == "Boolean":
        return bool(given["integers"][0])
    if what == "Booleans":
        return [bool(i) for i in given["integers"]]
    if what == "Integer":
        if "MemoryFormat" in kind or "memory_format" in kind:
            return graphs.MEMORY_FORMATS[given["integers"][0]]
        return affine.integers_of(given, samples)[0]
    if what == "Integers":
        return affine.integers_of(given, samples)
    if what == "Number":
        return float(given["numbers"][0])
    if what == "Numbers":
        return [float(n) for n in given["numbers"]]
    if what == "Type":
        return TYPES[given["type"]]
    return given["text"]


def run(graph, inputs, samples):
    """Runs a graph on `samples` samples. Returns its outputs by (role, index). The
    default type is float32, as in a run of chimera."""
    default = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32)
    try:
        return _run(graph, inputs, samples)
    finally:
        torch.set_default_dtype(default)


def _run_call(call, values, samples):
    """The results of a call."""
    namespace, _, name = call["operator"].partition("::")
    if namespace == "chimera":
        given = [_argument(a, "", values, samples) for a in call["arguments"]]
        return calls.run(call["operator"], given)
    target = getattr(getattr(torch.ops.aten, name), call["overload"] or "default")
    named, listed = {}, []
    for given, argument in zip(call["arguments"], target._schema.arguments):
        kind = f"{argument.name} {argument.type}"
        value = _argument(given, kind, values, samples)
        if argument.kwarg_only:
            named[argument.name] = value
        else:
            listed.append(value)
    return target(*listed, **named)


def _run(graph, inputs, samples):
    values = {p["value"]: inputs[p["role"], p["index"]] for p in graph["inputs"]}
    for call in graph["calls"]:
        try:
            made = _run_call(call, values, samples)
        except RuntimeError as error:
            raise Refused(
                f"expected operators that run as they were traced, but {call['operator']} "
                f"does not: {str(error).splitlines()[0]} Contiguous tensors may help: "
                "PyTorch traces some operators, like norms over a batch, as if theirs were"
            ) from None
        made = made if isinstance(made, (tuple, list)) else [made]
        values.update(
            {r: v for r, v in zip(call["results"], made) if r >= 0}
        )
    return {(p["role"], p["index"]): values[p["value"]] for p in graph["outputs"]}


def _constant(constant):
    raw = torch.tensor(constant["bytes"], dtype=torch.uint8)
    return raw.view(TYPES[constant["type"]]).reshape(constant["shape"])


def constants_of(kind):
    return {("Constant", i): _constant(c) for i, c in enumerate(kind["constants"])}


def _eager_loss(package, model):
    """Returns the loss that PyTorch computes for a step with only this micro-batch, and
    the labels with which the graphs compute the same loss. If the loss is a single pair
    of a sum and its weight, returns the sum, not divided by the weight."""
    made = WithLoss(model)(*model.given())
    labels = list(model.labels.values())
    if isinstance(made, torch.Tensor):
        return made, labels
    sums, weights = made[::2], made[1::2]
    last = package["kinds"][package["layers"][-1]["kind"]]
    weigh = last["graphs"]["weight"]
    given = constants_of(last)
    given |= {("Label", i): t for i, t in enumerate(labels)}
    by_graph = run(weigh, given, model.samples())
    for i, weight in enumerate(weights):
        if by_graph["Output", i].item() != weight.item():
            raise Refused("expected the weight of the loss, got another one")
    if len(sums) == 1:
        return sums[0], labels
    # If a term has weight 0, none of its labels counts, so its share of the loss is 0.
    scales = torch.tensor(
        [1 / w.item() if w.item() else 0 for w in weights], dtype=sums[0].dtype
    )
    labels.append(scales.expand(model.samples(), -1).contiguous())
    return sum(each * scale for each, scale in zip(sums, scales)), labels


SMALL = 1e-3
CHECKED = (1, 3)  # numbers of samples to compare, besides that of the examples


def compare(package, model, narrowed):
    """Refuses a package if its loss or a gradient differs from autograd's by more than
    rounding, for the example micro-batch or for other numbers of samples. `narrowed` are
    lines of the model that compute in a smaller type than its parameters have, and begin
    with the name of the type. Rounding then is that of the smallest type."""
    if any(calls.call_has_dropout(c) for k in package["kinds"]
           for c in k["graphs"]["forward"]["calls"]):  # fmt: skip
        raise Refused(
            "--check needs a model without dropout, because autograd drops other elements: "
            "for the check, set its probability to 0 or call the module's eval(). Then "
            "export without --check"
        )
    named = dict(model.named_parameters())
    if detect_fake_mode(list(named.values())):
        raise Refused("--check needs the parameters' values: leave out --no-values")
    given = model.samples()
    found = []
    for count in sorted({given, *CHECKED}):
        try:
            found.append(_difference(package, model.with_samples(count)))
        except Refused:
            raise
        except Exception as error:  # of the user's code
            if count == given:
                raise
            reason = (str(error).strip() or type(error).__name__).splitlines()[0]
            warn(f"--check leaves out micro-batches of {count}, which PyTorch refuses: {reason}")
    smaller = f", which computes in a smaller type in {narrowed[0]}" if narrowed else ""
    same = f"--check: the loss and {len(named)} gradients are autograd's"
    exact = [each for each in found if each.is_exact]
    rounded = [each for each in found if not each.is_exact]
    if not rounded:
        print(f"{same}, bit by bit, for {_samples(exact)}{smaller}")
        return
    worst = max(rounded)
    types = [worst.dtype, *(getattr(torch, line.split()[0]) for line in narrowed)]
    if not worst.size <= 64 * max(torch.finfo(each).eps for each in types):
        raise Refused(
            f"expected autograd's result, got one of {worst.where} that differs by "
            f"{worst.size:.1e} (relative) with {worst.samples} samples"
        )
    others = f", and bit by bit for {_samples(exact)}" if exact else ""
    print(
        f"{same} to rounding for {_samples(rounded)}{others}; {worst.where} differs most, by "
        f"{worst.size:.1e} (relative){smaller}"
    )


def _samples(differences):
    """The numbers of samples of some differences, as text."""
    *first, last = (each.samples for each in differences)
    text = f"{', '.join(map(str, first))} and {last}" if first else str(last)
    return f"{text} sample{'s' if text != '1' else ''}"


@dataclasses.dataclass
class Difference:
    """The largest difference between autograd's results and those of a package. `size`
    is relative. It may be 0 if a result has other bits, such as -0.0."""

    is_exact: bool = True
    size: float = 0.0
    where: str = "the loss"
    samples: int = 0
    dtype: torch.dtype = torch.float64

    def __lt__(self, other):
        # A size that is not a number counts as the largest.
        return (not self.is_exact, not self.size >= 0, self.size) < (
            not other.is_exact, not other.size >= 0, other.size,
        )  # fmt: skip


def _run_package(package, model, labels):
    """The loss of the example micro-batch and the gradients of the parameters, by name,
    as the package computes them."""
    values = {name: p.detach() for name, p in model.named_parameters()}
    samples = model.samples()
    layers = []
    for layer in package["layers"]:
        kind = package["kinds"][layer["kind"]]
        names = [layer["path"] + p["name"] for p in kind["parameters"]]
        layers.append((kind["graphs"], names, constants_of(kind)))
    gradients, kept = {}, []
    flowing = list(model.inputs.values())
    for number, (graphs_of, names, constants) in enumerate(layers):
        given = dict(constants)
        given |= {("Parameter", i): values[n] for i, n in enumerate(names)}
        given |= {("Input", i): t for i, t in enumerate(flowing)}
        if number + 1 == len(layers):
            given |= {("Label", i): t for i, t in enumerate(labels)}
        made = run(graphs_of["forward"], given, samples)
        kept.append({**given, **made})
        flowing = [made["Output", i] for i in range(len(graphs_of["outputs"]))]
    loss = flowing[0]
    back = [torch.ones_like(loss)]
    for (graphs_of, names, _), given in zip(reversed(layers), reversed(kept)):
        given |= {("OutputGradient", i): t for i, t in enumerate(back)}
        made = run(graphs_of["backward"], given, samples)
        for (role, index), value in made.items():
            if role == "WeightGradient":
                name = names[index]
                gradients[name] = gradients[name] + value if name in gradients else value
        # Autograd gives no gradient for an input if only the input's shape is used:
        # use zeros. Gradients are contiguous in a run, so make them contiguous here.
        back = [
            made.get(("InputGradient", i), torch.zeros_like(given["Input", i])).contiguous()
            if ("Input", i) in given
            else None
            for i in range(len(graphs_of["inputs"]))
        ]
    return loss, gradients


def _difference(package, model):
    """The difference for the example micro-batch."""
    named = dict(model.named_parameters())
    for p in named.values():
        p.grad = None
    eager, labels = _eager_loss(package, model)
    with torch.no_grad():
        loss, gradients = _run_package(package, model, labels)
    eager.backward()
    found = Difference(torch.equal(eager.detach(), loss), samples=model.samples())
    found.dtype = loss.dtype
    if eager.item() != loss.item():
        found.size = abs(eager.item() - loss.item()) / max(abs(eager.item()), 1e-30)
    # A gradient may be zero but for rounding. So if it is much smaller than all others
    # together, its difference is relative to SMALL times their norm.
    norm = sum(p.grad.norm() ** 2 for p in named.values() if p.grad is not None) ** 0.5
    for name, p in named.items():
        if p.grad is None:
            continue
        got = gradients.get(name, torch.zeros_like(p))
        found.is_exact &= torch.equal(p.grad, got)
        size = ((p.grad - got).norm() / max(p.grad.norm(), SMALL * norm)).item()
        if not size <= found.size and not torch.equal(p.grad, got):
            found.size, found.where = size, f"the gradient of {name}"
        p.grad = None
    return found
