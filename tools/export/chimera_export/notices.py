# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Messages about a model that is exported nevertheless."""

import functools
import sys


@functools.cache
def _say(kind, text):
    """Prints each message only once."""
    print(f"chimera-export: {kind}: {text}", file=sys.stderr, flush=True)


def warn(text):
    """Warns that a model may not do what its author meant."""
    _say("warning", text)


def note(text):
    """Prints a note about a model that is right."""
    _say("note", text)
