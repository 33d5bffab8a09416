# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes models whose parameters take no memory."""

import contextlib
import warnings

import torch
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    FakeTensor,
    FakeTensorMode,
)
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.multiprocessing.reductions import StorageWeakRef

from . import initial, ties
from .model import Model, Refused, WithLoss
from .traced import own_name


@contextlib.contextmanager
def _as_fakes(mode, recorder):
    """Parameters lose their values as soon as a module gets them, so that no more
    than one is in memory at a time. Buffers keep theirs."""
    register = torch.nn.Module.register_parameter
    known = {}  # by what was given: shared ones stay shared

    def register_without(module, name, parameter):
        if parameter is not None and not isinstance(parameter, FakeTensor):
            memory = StorageWeakRef(parameter.untyped_storage())
            view = parameter.storage_offset(), parameter.shape, parameter.stride()
            if (memory, *view) not in known:
                with mode:
                    empty = torch.empty(parameter.shape, dtype=parameter.dtype)
                fake = torch.nn.Parameter(empty, requires_grad=parameter.requires_grad)
                recorder.begin(fake, parameter)
                known[memory, *view] = fake
            parameter = known[memory, *view]
        register(module, name, parameter)

    torch.nn.Module.register_parameter = register_without
    try:
        yield
    finally:
        torch.nn.Module.register_parameter = register


def without_values(make):
    """What `make` returns, a Model, whose parameters are fake: they have a shape,
    a type and a device, and `start`, how they begin."""
    mode = FakeTensorMode(shape_env=ShapeEnv(), allow_non_fake_inputs=True)
    try:
        with (
            initial.recording() as recorder,
            _as_fakes(mode, recorder),
            warnings.catch_warnings(),
        ):
            # A copy of a module asks where its parameters are.
            warnings.filterwarnings("ignore", "Accessing the data pointer", UserWarning)
            model = make()
    except DataDependentOutputException as error:
        raise Refused(
            "expected a model that can be made without values, but making it looks at "
            f"values of parameters ({error.func}): leave out --no-values"
        ) from None
    if not isinstance(model, Model):
        return model
    whole = WithLoss(model)
    for name, buffer in whole.named_buffers():
        if isinstance(buffer, FakeTensor):
            raise Refused(
                f"expected buffers that do not depend on the values of parameters, but "
                f"'{own_name(name)}' does: leave out --no-values"
            )
    ties.unite(model)
    initial.attach(recorder, {own_name(n): p for n, p in whole.named_parameters()})
    return model
