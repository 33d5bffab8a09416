# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Refuses models whose graphs would not compute what the model computes. Some checks
run before the trace. Others look at the traced graph."""

import contextlib

import torch
from torch import fx
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

from . import checkpointing, operators
from .model import Refused, WithLoss
from .traced import attribute, here, line_of, own_name, where

# By the operator that represents a region in a trace: the name of the region, and advice.
REGIONS = {
    "wrap_with_set_grad_enabled": (
        "regions like torch.no_grad()",
        "detach() cuts gradients too",
    ),
    "wrap_with_autocast": (
        "torch.autocast()",
        "leave it out: activation_type(bf16) in a description's pipeline computes in "
        "bfloat16 with parameters of float32",
    ),
}


def check_module(whole):
    """Refuses hooks, which a trace of the forward does not contain."""
    for name, module in whole.named_modules():
        if module._backward_hooks or module._backward_pre_hooks:
            raise Refused(
                f"expected modules without hooks on their backward, '{own_name(name)}' "
                "has one, and it would not run"
            )
    for name, parameter in whole.named_parameters():
        if parameter._backward_hooks:
            raise Refused(
                f"expected parameters without hooks, '{own_name(name)}' has one, and it "
                "would not run"
            )


def check_buffers(model):
    """Refuses a module whose forward changes its buffers."""
    whole = WithLoss(model)
    before = {n: (b, b.clone()) for n, b in whole.named_buffers()}
    with torch.no_grad():
        whole(*(t.clone() for t in model.given()))
    after = dict(whole.named_buffers())
    changed = [
        name
        for name, (buffer, value) in before.items()
        if after.get(name) is not buffer or not torch.equal(buffer, value)
    ]
    for name, (buffer, value) in before.items():
        buffer.data.copy_(value)
    if changed:
        raise Refused(
            "expected a model whose forward changes no buffer, but it changes "
            f"{_listed(changed)}: a micro-batch would depend on earlier ones. Norms over "
            "a batch do that in training; norms of layers or groups do not"
        )


@contextlib.contextmanager
def nothing_custom():
    """A context in which calling a user's autograd function is refused."""
    apply = torch.autograd.Function.__dict__["apply"]

    def refuse(cls, *_, **__):
        name = f"{cls.__module__}.{cls.__qualname__}"
        advice = ""
        if "checkpoint" in name.lower():
            advice = f": switch it off, because {checkpointing.ADVICE}"
        raise Refused(
            f"expected operations that PyTorch differentiates, got {name}{here()}, an "
            f"autograd function with a backward of its own, which would not run{advice}"
        )

    torch.autograd.Function.apply = classmethod(refuse)
    try:
        yield
    finally:
        torch.autograd.Function.apply = apply


@contextlib.contextmanager
def nothing_by_value():
    """A context, inside the traced function, in which Python may not use a tensor's
    value. Around torch.export the context would be too late, because torch.export
    prints pages about the error."""
    try:
        yield
    except GuardOnDataDependentSymNode as error:
        raise Refused(
            "expected no 'if', loop or Python number that depends on a tensor's value, got one"
            f"{line_of(error)}: a trace cannot follow it, so write it with torch.where or a "
            "mask"
        ) from error


@contextlib.contextmanager
def nothing_in_place(whole):
    """A context in which modules that can work in place, like ReLU, do not. This only
    changes the memory that they use, not their results."""
    modules = [m for m in whole.modules() if getattr(m, "inplace", False) is True]
    for module in modules:
        module.inplace = False
    try:
        yield
    finally:
        for module in modules:
            module.inplace = True


def check_graph(whole):
    """Refuses operations of the traced graph that a package cannot have."""
    for node in whole.graph.nodes:
        if node.op == "get_attr" and isinstance(
            attribute(whole, node.target), fx.GraphModule
        ):
            _refuse_region(whole, node)
        if node.op != "call_function":
            continue
        if isinstance(node.target, torch._ops.OpOverload) and node.target._schema.is_mutable:
            raise Refused(
                "expected operations that do not change tensors in place, got "
                f"{node.target.name()}{where(node)}: {operators.advice_of(node.target)}"
            )
        operators.check_call(node)


def _refuse_region(whole, node):
    names = {user.target.name() for user in node.users if user.op == "call_function"}
    what, advice = next(
        (REGIONS[name] for name in names if name in REGIONS),
        ("control flow of PyTorch (torch.cond and others)", "write it without"),
    )
    raise Refused(f"expected a forward without {what}, got one{_inside(whole, node)}: {advice}")


def _inside(whole, node):
    """The user's line of the first operation in a region."""
    region = attribute(whole, node.target)
    lines = (where(each) for each in region.graph.nodes if each.op == "call_function")
    return next(filter(None, lines), "")


def _listed(names):
    own = [own_name(name) for name in names]
    more = f" and {len(own) - 5} more" if len(own) > 5 else ""
    return ", ".join(own[:5]) + more
