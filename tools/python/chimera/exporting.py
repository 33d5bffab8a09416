# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exports a PyTorch module as a package, which a pipeline can train."""

from __future__ import annotations

import contextlib
import io
import os
import pathlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from chimera import tools

if TYPE_CHECKING:
    import torch


class Package(os.PathLike):
    """The folder of an exported model: its layers as graphs, and the values of its
    parameters in `values.safetensors`.

    layers, kinds: the number of layers, and of different ones.
    parameters: the number of values of all parameters.
    types: the types in which runs can compute.
    unused: the names of parameters that are left out, because the loss does not depend on
        them.
    """

    def __init__(self, path: str | os.PathLike, layers: int, kinds: int, parameters: int,
                 types: Sequence[str], unused: Sequence[str] = ()):  # fmt: skip
        self.path = pathlib.Path(path)
        self.layers, self.kinds = layers, kinds
        self.parameters, self.types = parameters, list(types)
        self.unused = list(unused)

    @property
    def values(self) -> pathlib.Path:
        """The file with the values, for `chimera.train(..., load=package.values)`."""
        return self.path / "values.safetensors"

    def __fspath__(self) -> str:
        return str(self.path)

    def __repr__(self):
        return (
            f"<chimera.Package {self.path}: {self.layers} layers of {self.kinds} kinds, "
            f"{self.parameters:,} parameters>"
        )


def export(
    module: torch.nn.Module,
    inputs: dict[str, torch.Tensor] | tuple | torch.Tensor,
    labels: dict[str, torch.Tensor] | tuple | torch.Tensor,
    loss: Callable,
    output: str | os.PathLike,
    *,
    compute: str | Sequence[str] | None = None,
    check: bool = False,
    **more,
) -> Package:
    """Exports a module to the folder `output`. The module stays as it is. In eval mode it is
    exported without dropout.

        package = chimera.export(model, tokens, labels, loss, "package")
        program = chimera.compile(
            chimera.Pipeline(workers=2, micro_batches=4, schedule="1f1b"), "own.chimera",
            model=package, micro_batch_size=8)

    module: its layers are the children of its largest ModuleList or Sequential. What comes
        before and after them becomes a part of the first and of the last layer.
    inputs, labels: example tensors of one micro-batch. Their first dimension counts
        samples. A dict has the names of the parameters of the module's forward and of the
        loss. For a text, the labels are the next tokens already.
    loss: takes the module's result and the labels. Returns their mean, or a pair: the sum
        of the losses and the number of labels that count.
    compute: the type in which runs can compute, or several, such as ["float32", "bfloat16"].
        Default: all that the module can. Each type takes as long as the first one.
    check: also compare the graphs with PyTorch's autograd.
    more: other fields of chimera_export.Model, such as split_at="transformer.h".

    Raises `chimera.Error` if the module cannot be exported, with the reason and the line
    of the module, and ModuleNotFoundError without torch.
    """
    import torch
    from chimera_export import Model, Refused, exporting

    types = None
    if compute is not None:
        compute = [compute] if isinstance(compute, str) else compute
        for name in compute:
            if name not in ("float32", "bfloat16", "float64"):
                raise ValueError(
                    f"expected compute= with float32, bfloat16 or float64, got {name!r}"
                )
        types = [getattr(torch, name) for name in compute]
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            made = exporting.export(
                Model(module, inputs, labels, loss, **more), output, types, check
            )
    except Refused as refused:
        raise tools.Error(str(refused)) from None
    return Package(output, made.layers, made.kinds, made.parameters, made.types, made.unused)
