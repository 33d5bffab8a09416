# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Switches off activation checkpointing of modules. A run does not need it: the pipeline
of a description says what is computed again (recompute)."""

import contextlib
from unittest import mock

from torch.utils import checkpoint

ADVICE = "recompute(all) in a description's pipeline computes forwards again"


@contextlib.contextmanager
def switched_off():
    """A context in which torch.utils.checkpoint calls functions without checkpointing.
    It replaces internal functions that `checkpoint` calls. Replacing `checkpoint`
    itself would not be enough, because a module may have imported it already. Yields a
    list to which each checkpointed function is added."""
    calls = []

    class Plain:
        @staticmethod
        def apply(function, _, *arguments):
            calls.append(function)
            return function(*arguments)

    def around(function, *_, **__):
        calls.append(function)
        yield  # the function runs here; after it there is nothing to do

    with contextlib.ExitStack() as stack:
        for name, plain in (
            ("CheckpointFunction", Plain),
            ("_checkpoint_without_reentrant_generator", around),
            ("_checkpoint_without_reentrant_generator_impl", around),  # of torch 2.15
        ):
            if hasattr(checkpoint, name):
                stack.enter_context(mock.patch.object(checkpoint, name, plain))
        yield calls
