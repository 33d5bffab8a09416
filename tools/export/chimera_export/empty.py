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
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode, ShapeEnv
from torch.multiprocessing.reductions import StorageWeakRef

from . import initial, ties
from .model import Model, Refused, WithLoss
from .traced import own_name


@contextlib.contextmanager
def _as_fakes(mode, recorder):
    """A context in which a parameter loses its values as soon as a module gets it. So
    only one parameter at a time has its values in memory. Buffers keep their values."""
    register = torch.nn.Module.register_parameter
    known = {}  # fake parameters by memory and view of the real one, so that shared ones stay shared

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

    apply = torch.nn.Module._apply
    converted = []  # in the current conversion: parameters before and after, by id

    def apply_to_fakes(module, function, recurse=True):
        """Like Module._apply, which double() and others call, but for fake parameters.
        PyTorch's own function cannot exchange their memory."""
        is_outermost = not converted
        if is_outermost:
            converted.append({})
        fakes = {n: p for n, p in module._parameters.items() if isinstance(p, FakeTensor)}
        module._parameters.update(dict.fromkeys(fakes))
        try:
            apply(module, function, recurse)
            for name, parameter in fakes.items():
                if id(parameter) not in converted[0]:
                    with torch.no_grad():
                        made = function(parameter)
                    if made is not parameter:
                        made = torch.nn.Parameter(made, parameter.requires_grad)
                    converted[0][id(parameter)] = parameter, made
                fakes[name] = converted[0][id(parameter)][1]
        finally:
            module._parameters.update(fakes)
            if is_outermost:
                converted.clear()
        return module

    torch.nn.Module.register_parameter = register_without
    torch.nn.Module._apply = apply_to_fakes
    try:
        yield
    finally:
        torch.nn.Module.register_parameter = register
        torch.nn.Module._apply = apply


def without_values(make):
    """The Model that `make` returns, with fake parameters. A fake parameter has a
    shape, a type, a device and `start`, its initial distribution."""
    mode = FakeTensorMode(shape_env=ShapeEnv(), allow_non_fake_inputs=True)
    try:
        with (
            initial.recording() as recorder,
            _as_fakes(mode, recorder),
            warnings.catch_warnings(),
        ):
            # Copying a module accesses the data pointers of its parameters. Ignore this
            # warning.
            warnings.filterwarnings("ignore", "Accessing the data pointer", UserWarning)
            model = make()
    except (DataDependentOutputException, GuardOnDataDependentSymNode) as error:
        call = f" ({error.func})" if isinstance(error, DataDependentOutputException) else ""
        raise Refused(
            "expected a model that can be made without values, but the code that makes "
            f"it reads values of parameters{call}: leave out --no-values"
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
    ties.tie_shared_memory(model)
    initial.set_starts(recorder, {own_name(n): p for n, p in whole.named_parameters()})
    return model
