# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exports PyTorch models as packages of layers, which chimera compiles."""

__all__ = ["Model", "Refused"]


class Refused(Exception):
    """An error: the model, or a part of it, cannot be exported. The message says why."""


def __getattr__(name):
    # Imported late, so that a command can first check its arguments and look for torch.
    if name == "Model":
        from .model import Model

        return Model
    raise AttributeError(name)
