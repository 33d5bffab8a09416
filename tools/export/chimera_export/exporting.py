# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exports a model to the folder of a package."""

import contextlib
import dataclasses
import logging

import torch

from . import check, data, files, notices, package, ties


@dataclasses.dataclass(frozen=True)
class Exported:
    """What was exported.

    layers, kinds: the number of layers, and of different ones.
    parameters: the number of values of all exported parameters.
    types: the names of the types in which runs can compute, first that of the parameters.
    used: the names of the exported parameters.
    unused: the names of those that the loss does not depend on.
    """

    layers: int
    kinds: int
    parameters: int
    types: list[str]
    used: set[str]
    unused: list[str]


def export(model, folder, types=None, is_checked=False, compiler=None):
    """Writes the package of `model` to `folder`, all of its files or none.

    types: the types in which runs must be able to compute. Default: all that the model can.
    is_checked: also runs the graphs, and compares them with PyTorch's autograd.
    compiler: a native.Compiler, to which the graphs are given; or None.

    Raises Refused if the model cannot be exported, and what the model's own code raises.
    """
    ties.tie_shared_memory(model)
    # If the module uses torch.compile, running it once would take minutes.
    with torch.compiler.set_stance("force_eager"), _quiet():
        exporter = package.Exporter(model, types)
        packages = exporter.export()
        made = packages[0]
        if is_checked:
            check.compare(made, model, exporter.narrowed)
        if compiler:
            exporter.compile(made, compiler)
    archives = compiler.archives if compiler else {}
    files.write(packages, model, folder, exporter.has_values, archives)
    if text := data.notice(model):
        notices.note(text)
    used = package.names_of(made)
    names = dict(model.named_parameters())
    return Exported(
        layers=len(made["layers"]),
        kinds=len(made["kinds"]),
        parameters=sum(p.numel() for name, p in names.items() if name in used),
        types=[each["type"].lower() for each in packages],
        used=used,
        unused=[name for name in names if name not in used],
    )


@contextlib.contextmanager
def _quiet():
    """No warnings of conditions on values: the exporter refuses these with one line."""
    logger = logging.getLogger("torch.fx.experimental.symbolic_shapes")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)
