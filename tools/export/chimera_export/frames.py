# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which frames of a stack trace are of the user's code, and errors with only these."""

import pathlib
import traceback

import torch

OWN = f"{pathlib.Path(__file__).parent}/"
# Code that is not the user's. Generated code, such as PyTorch's graphs, has file names
# like <eval_with_key>.1.
_OTHERS = (OWN, f"{pathlib.Path(torch.__file__).parent}/", "<")


def are_of_user(frame):
    return not frame.filename.startswith(_OTHERS)


def short_traceback(error):
    """The text of an error with only the user's frames. Empty if there are none."""
    short = traceback.TracebackException.from_exception(error)
    return "".join(short.format()) if _shorten(short) else ""


def _shorten(error):
    """Keeps only the user's frames of an error, and of its causes only those with such
    frames. Returns whether there are any."""
    error.stack = traceback.StackSummary.from_list(filter(are_of_user, error.stack))
    found = bool(error.stack)
    for link in ("__cause__", "__context__"):
        before = getattr(error, link)
        if before is not None and _shorten(before):
            found = True
        else:
            setattr(error, link, None)
    return found
