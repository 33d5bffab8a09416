# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Queries on a traced graph."""

import contextlib
import pathlib
import re
import traceback
from unittest import mock

from torch import fx

from .frames import OWN, are_of_user

# The traced module is model.WithLoss, whose child `model` is the user's module.
PREFIX = "model."


def attribute(root, path):
    """The attribute that a get_attr node with the target `path` reads."""
    for name in path.split("."):
        root = getattr(root, name)
    return root


def arguments_of(node):
    """The arguments of a call by name, with the schema's defaults."""
    return {
        a.name: node.args[i] if i < len(node.args) else node.kwargs.get(a.name, a.default_value)
        for i, a in enumerate(node.target._schema.arguments)
    }


def ancestors(nodes):
    """The nodes and all nodes that they depend on."""
    seen, rest = set(), list(nodes)
    while rest:
        node = rest.pop()
        if node not in seen:
            seen.add(node)
            rest += node.all_input_nodes
    return seen


_FRAME = re.compile(r'File "(.*)", line (\d+), in (.*)(?:\n +(.*))?')
_FUNCTIONS_OF_USERS = ("made", "loss_of", "_logits")  # of WithLoss


def _of_users(frames):
    """Some frames of a traced model. The first one tells whether the module or the loss
    was running. Then come the frames of the user's code; the last one is the line to
    show. If there is no user's code, the last frame of PyTorch comes instead."""
    entries = [
        i
        for i, f in enumerate(frames)
        if f.filename.startswith(OWN) and f.name in _FUNCTIONS_OF_USERS
    ]
    if not entries:
        return []
    inner = frames[entries[0] + 1 :]
    own = [f for f in inner if are_of_user(f)]
    return [frames[entries[0]], *(own or inner[-1:])]


@contextlib.contextmanager
def lines_of_users():
    """A context in which traced nodes record the user's lines in functions of any name.
    PyTorch records only those in functions named forward."""
    name = "_filter_traceback_frames"
    theirs = getattr(fx.proxy.TracerBase, name, None)
    if theirs is None:
        yield
        return

    def frames(tracer, summary):
        own = _of_users(summary)
        return traceback.StackSummary.from_list(own) if own else theirs(tracer, summary)

    with mock.patch.object(fx.proxy.TracerBase, name, frames):
        yield


def _line(trace, path):
    """The module and the last user's line of a stack trace, as text for a message."""
    frames = _FRAME.findall(trace)
    parts = [f"'{own_name(path)}'"] if path.startswith(PREFIX) else []
    if frames and frames[0][0].startswith(OWN) and frames[0][2] == "loss_of":
        parts = ["the loss"]
    if frames and not frames[-1][0].startswith(OWN):
        file, line, _, code = frames[-1]
        parts.append(f"{pathlib.Path(file).name}:{line}: {code.strip()}".rstrip(": "))
    return " in " + ", ".join(parts) if parts else ""


def where(node):
    """The module and the user's line that made a node, as text for a message."""
    stack = node.meta.get("nn_module_stack") or node.meta.get("fwd_nn_module_stack")
    path = list(stack.values())[-1][0] if stack else ""
    return _line(node.meta.get("stack_trace") or "", path)


def here():
    """The user's line that is running while the model is traced, as text for a
    message."""
    return _line("".join(traceback.format_list(_of_users(traceback.extract_stack()))), "")


def line_of(error):
    """The user's line that raised an error while the model was traced, as text for a
    message."""
    frames = _of_users(traceback.extract_tb(error.__traceback__))
    return _line("".join(traceback.format_list(frames)), "")


def own_name(path):
    """The path in the user's module. Skips the wrapper module that torch.distributed
    inserts for activation checkpointing."""
    return path.removeprefix(PREFIX).replace("_checkpoint_wrapped_module.", "")
