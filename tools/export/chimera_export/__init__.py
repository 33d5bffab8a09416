# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exports PyTorch models as packages of layers, which chimera compiles."""

__all__ = ["Model", "Refused"]


class Refused(Exception):
    """A model, or a part of it, that cannot be exported, and why."""


def __getattr__(name):
    # Late, so that a command can look for torch, and at its arguments, first.
    if name == "Model":
        from .model import Model

        return Model
    raise AttributeError(name)
