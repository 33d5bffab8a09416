# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the exporter says of a model that it exports all the same."""

import functools
import sys


@functools.cache
def warn(text):
    """Says it once."""
    print(f"chimera-export: warning: {text}", file=sys.stderr, flush=True)
