# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exports PyTorch models as packages of layers, which chimera compiles."""

__all__ = ["Model", "Refused"]


def __getattr__(name):
    # Late, so that a command can look for torch first.
    if name in __all__:
        from . import model

        return getattr(model, name)
    raise AttributeError(name)
