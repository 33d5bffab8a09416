# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rewrites operations in place, like `y += 1`, as operations that make a new tensor.

Only where nothing else shows the tensor that is changed: it was made by an earlier
operation, and no view of it was made before. Then whoever uses it after the change
uses the new tensor. All others stay, and refusals.check_graph refuses them.
"""

import torch
from torch import fx

aten = torch.ops.aten


def _memory(node):
    """What tells apart the memory of tensors while the model was traced."""
    try:
        return node.meta["val"].untyped_storage()._cdata
    except (KeyError, AttributeError, RuntimeError):
        return None  # no tensor, or one of torch.vmap


def _functional(target):
    """The operator that computes what `target` does and changes nothing, or None."""
    name = target.overloadpacket.__name__
    written = [a.alias_info for a in target._schema.arguments]
    if not name.endswith("_") or not written[0] or any(written[1:]):
        return None
    packet = getattr(aten, name.removesuffix("_"), None)
    return getattr(packet, target._overloadname, None) if packet else None


def _result(target, node):
    """What `target` makes of the arguments of `node`, or None if it refuses them."""
    arguments = fx.map_arg((node.args, dict(node.kwargs)), lambda n: n.meta["val"])
    try:
        return target(*arguments[0], **arguments[1])
    except Exception:
        return None


def rewrite(graph):
    before = {}  # by their memory, the nodes that have it
    for node in list(graph.nodes):
        memory = _memory(node)
        if (
            node.op == "call_function"
            and isinstance(node.target, torch._ops.OpOverload)
            and node.target._schema.is_mutable
            and (made := _rewrite(graph, node, before.get(memory)))
        ):
            # In the module views of it are of the same memory.
            before[memory] = [made]
        else:
            before.setdefault(memory, []).append(node)


def _rewrite(graph, node, known):
    """What stands for `node` now, or None. `known` have the memory that it changes."""
    changed, target = node.args[0], _functional(node.target)
    if (
        target is None
        or changed.op != "call_function"
        or _memory(node) is None
        or known != [changed]
    ):
        return None
    result = _result(target, node)
    old = changed.meta["val"]
    if result is None or (result.shape, result.dtype) != (old.shape, old.dtype):
        return None
    earlier = set()
    for each in graph.nodes:
        if each is node:
            break
        earlier.add(each)
    with graph.inserting_before(node):
        made = graph.call_function(target, node.args, node.kwargs)
    made.meta = {**node.meta, "val": result}
    node.replace_all_uses_with(made)
    changed.replace_all_uses_with(
        made, delete_user_cb=lambda user: user not in earlier and user is not made
    )
    graph.erase_node(node)
    return made
