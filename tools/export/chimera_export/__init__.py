# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exports PyTorch models as packages of layers, which chimera compiles."""

from .model import Model, Refused

__all__ = ["Model", "Refused"]
