# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the exporter says of a model that it exports all the same."""

import functools
import sys


@functools.cache
def _say(kind, text):
    """Says it once."""
    print(f"chimera-export: {kind}: {text}", file=sys.stderr, flush=True)


def warn(text):
    """Of a model that may not do what its author meant."""
    _say("warning", text)


def note(text):
    """Of a model that is right."""
    _say("note", text)
