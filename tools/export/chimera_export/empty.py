# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes models whose parameters take no memory."""

import contextlib
import weakref

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv

from .model import WithLoss


@contextlib.contextmanager
def _on_meta():
    """Parameters lose their values as soon as a module gets them, so that no more
    than one is in memory at a time. Buffers keep theirs."""
    register = torch.nn.Module.register_parameter
    known = {}  # by what was given: shared ones stay shared

    def register_without(module, name, parameter):
        if parameter is not None and not parameter.is_meta:
            given = known.get(id(parameter))
            if given is None or given[0]() is not parameter:
                empty = torch.nn.Parameter(
                    torch.empty_like(parameter, device="meta"),
                    requires_grad=parameter.requires_grad,
                )
                known[id(parameter)] = (weakref.ref(parameter), empty)
            parameter = known[id(parameter)][1]
        register(module, name, parameter)

    torch.nn.Module.register_parameter = register_without
    try:
        yield
    finally:
        torch.nn.Module.register_parameter = register


def without_values(make):
    """What `make` returns, a Model, whose parameters are fake: they have a shape,
    a type and a device."""
    with _on_meta():
        model = make()
    mode = FakeTensorMode(shape_env=ShapeEnv(), allow_non_fake_inputs=True)
    fakes = {}
    for module in WithLoss(model).modules():
        for name, parameter in module._parameters.items():
            if parameter is None:
                continue
            if id(parameter) not in fakes:
                with mode:
                    fakes[id(parameter)] = torch.nn.Parameter(
                        torch.empty(parameter.shape, dtype=parameter.dtype),
                        requires_grad=parameter.requires_grad,
                    )
            module._parameters[name] = fakes[id(parameter)]
    return model
