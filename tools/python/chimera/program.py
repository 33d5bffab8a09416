# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles a pipeline of a model into a program."""

from __future__ import annotations

import os
import pathlib

from chimera import tools
from chimera.exporting import Package
from chimera.schedule import Schedule


class Program(os.PathLike):
    """A program file: a stream of instructions for each rank, proven to have no deadlock
    and no race. `chimera.train` and chimera-run execute it."""

    def __init__(self, path: str | os.PathLike):
        self.path = pathlib.Path(path)

    def __fspath__(self) -> str:
        return str(self.path)

    def __repr__(self):
        return f"<chimera.Program {self.path}>"


def compile(
    pipeline: Schedule | str | os.PathLike,
    output: str | os.PathLike,
    *,
    model: Package | str | None = None,
    micro_batch_size: int | None = None,
    training: str | None = None,
    more: str = "",
) -> Program:
    """Compiles a pipeline into the program file `output`, and proves it.

        chimera.compile(
            chimera.Pipeline(workers=2, micro_batches=4, schedule="1f1b"), "own.chimera",
            model=package, micro_batch_size=8,
            training="learning_rate(2.0e-3)")

    pipeline: a schedule, or a description: its file (a path object), or its text.
    model: for a schedule: a package (`chimera.export`), or the clauses of a chimera.model,
        such as 'exported("package")' with the folder that chimera-export wrote, or
        'gpt2 layers(4) heads(2) width(64) context(64) vocabulary(256)'.
        dialect/Chimera.md has all clauses.
    micro_batch_size: for a schedule: samples in a micro-batch.
    training: for a schedule: the clauses of a chimera.training. Default: AdamW.
    more: for a schedule: more clauses of its chimera.pipeline, such as "weight_type(f64)".

    A relative folder of a package counts from the current folder. Raises `chimera.Error`
    with the text of chimera-compile if the pipeline cannot be compiled, and
    FileNotFoundError if chimera-compile is not found.
    """
    if isinstance(pipeline, Schedule):
        text = _description(pipeline, model, micro_batch_size, training, more)
    elif model or micro_batch_size or training or more:
        raise TypeError(
            "expected model, micro_batch_size, training and more only with a schedule: a "
            "description states them"
        )
    elif isinstance(pipeline, os.PathLike):
        tools.run("chimera-compile", pipeline, "-o", output)
        return Program(output)
    elif isinstance(pipeline, str):
        text = pipeline
    else:
        raise TypeError(f"expected a chimera.Schedule, a path or a text, got {pipeline!r}")
    tools.run("chimera-compile", "-", "-o", output, text=text)
    return Program(output)


def _description(pipeline, model, micro_batch_size, training, more):
    if not model or micro_batch_size is None:
        raise TypeError(
            "expected model= and micro_batch_size= with a schedule, such as "
            "model='exported(\"package\")', micro_batch_size=8"
        )
    if isinstance(model, Package):
        model = f'exported("{tools.quoted(model.path.resolve())}")'
    return (
        f"chimera.model @model {model}\n"
        + (f"chimera.training @training {training}\n" if training else "")
        + pipeline.to_mlir(
            of="of @model" + (" with @training" if training else ""),
            more=f"micro_batch_size({int(micro_batch_size)}) {more}".strip(),
        )
    )
