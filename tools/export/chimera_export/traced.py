# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Questions about a traced graph."""

# The user's module is this one's child: model.WithLoss is what is traced.
PREFIX = "model."


def attribute(root, path):
    """What a get_attr node with the target `path` gives."""
    for name in path.split("."):
        root = getattr(root, name)
    return root


def ancestors(nodes):
    """The nodes, and what they depend on."""
    seen, rest = set(), list(nodes)
    while rest:
        node = rest.pop()
        if node not in seen:
            seen.add(node)
            rest += node.all_input_nodes
    return seen


def where(node):
    """The module and the function that made a node, for people."""
    stack = list((node.meta.get("nn_module_stack") or {}).values())
    parts = [f"'{own_name(stack[-1][0])}'"] if stack else []
    trace = (node.meta.get("stack_trace") or "").strip().splitlines()
    if trace:
        parts.append(trace[-1].strip())
    return " in " + ", ".join(parts) if parts else ""


def own_name(path):
    """A path as the user's module has it."""
    return path.removeprefix(PREFIX)
