# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a user hands to the exporter, and how it refuses what it cannot export."""

import dataclasses
import typing

import torch

from .traced import own_name


class Refused(Exception):
    """A model, or a part of it, that cannot be exported, and why."""


@dataclasses.dataclass
class Model:
    """A module to train, with examples of what it is given.

    `inputs` and `labels` are tensors of one micro-batch, whose first dimension
    counts its samples. The module is called with the inputs; `loss` is called
    with what the module returns and the labels. It returns the mean loss of the
    micro-batch, a scalar, where all micro-batches weigh alike; else the sum of the
    losses and how many there are, a function of the labels alone: the loss of a
    step is then all sums over all weights, whatever a micro-batch has of them.

    `split_at` names the modules (a ModuleList or Sequential) whose children are
    layers to cut at; without it the largest one is taken.
    """

    module: torch.nn.Module
    inputs: tuple[torch.Tensor, ...]
    labels: tuple[torch.Tensor, ...]
    loss: typing.Callable
    split_at: typing.Optional[str] = None

    def __post_init__(self):
        for name in ("inputs", "labels"):
            value = getattr(self, name)
            if isinstance(value, torch.Tensor):
                value = (value,)
            if not isinstance(value, (tuple, list)) or not all(
                isinstance(t, torch.Tensor) and t.dim() > 0 for t in value
            ):
                raise Refused(
                    f"expected {name} to be tensors whose first dimension counts "
                    f"samples, got {value!r:.200}"
                )
            setattr(self, name, tuple(value))

    def named_parameters(self):
        """Those of the module and, where it is a module too, of the loss."""
        return [
            (own_name(name), p) for name, p in WithLoss(self).named_parameters()
        ]


class WithLoss(torch.nn.Module):
    """A model as one function of its inputs and labels."""

    def __init__(self, model):
        super().__init__()
        self.model = model.module
        self.inputs = len(model.inputs)
        self.loss = model.loss

    def forward(self, *arguments):
        made = self.model(*arguments[: self.inputs])
        loss = self.loss(made, *arguments[self.inputs :])
        parts = loss if isinstance(loss, (tuple, list)) else (loss,)
        if len(parts) > 2 or not all(isinstance(p, torch.Tensor) for p in parts):
            raise Refused(
                "expected the loss to be a tensor, or two: a sum and its weight, got "
                f"{loss!r:.200}"
            )
        return loss
