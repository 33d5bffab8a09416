# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rewrites operations in place, like `y += 1`, as operations that make a new tensor.

An operation is rewritten only if no other tensor shows the change: an earlier operation
made the changed tensor, and no view of this tensor existed before. The changed tensor
may be a view itself if nothing else uses the tensor that it views, as in
`a.bmm(b).squeeze(-1).add_(c)`. Later uses of the changed tensor then use the new one.

An assignment to slices of a tensor, like `y[:, :n] = x`, becomes a new tensor with these
elements if no other view of the old tensor is used later. All other operations in place
remain, and refusals.check_graph refuses them.
"""

import torch
from torch import fx

aten = torch.ops.aten


# The operators that write the elements of a view back into a copy of the whole tensor.
SCATTERS = {
    aten.slice.Tensor: aten.slice_scatter.default,
    aten.select.int: aten.select_scatter.default,
}


def _memory(node):
    """An identifier of the memory that a tensor had in the trace."""
    try:
        return node.meta["val"].untyped_storage()._cdata
    except (KeyError, AttributeError, RuntimeError):
        return None  # not a tensor, or a tensor of torch.vmap


def _functional(target):
    """The operator that computes the same as `target` and changes nothing, or None."""
    name = target.overloadpacket.__name__
    written = [a.alias_info for a in target._schema.arguments]
    if not name.endswith("_") or not written[0] or any(written[1:]):
        return None
    packet = getattr(aten, name.removesuffix("_"), None)
    return getattr(packet, target._overloadname, None) if packet else None


def _result(target, node):
    """The result of `target` with the arguments of `node`, or None if it fails."""
    arguments = fx.map_arg((node.args, dict(node.kwargs)), lambda n: n.meta["val"])
    try:
        return target(*arguments[0], **arguments[1])
    except Exception:
        return None


def _is_chain(nodes):
    """Whether each node is the only user of the node before it."""
    return nodes[0].op == "call_function" and all(
        list(first.users) == [second] for first, second in zip(nodes, nodes[1:])
    )


def rewrite(graph):
    before = {}  # earlier nodes by memory
    for node in list(graph.nodes):
        memory = _memory(node)
        if (
            node.op == "call_function"
            and isinstance(node.target, torch._ops.OpOverload)
            and node.target._schema.is_mutable
            and (
                made := _rewrite(graph, node, before.get(memory))
                or _rewrite_slice(graph, node, before.get(memory))
            )
        ):
            # From now on the new result has this memory. Its views had the same memory
            # in the trace.
            before[memory] = made
        else:
            before.setdefault(memory, []).append(node)


def _before(graph, node):
    """The nodes before `node`."""
    earlier = set()
    for each in graph.nodes:
        if each is node:
            return earlier
        earlier.add(each)
    return earlier


def _replace_later(old, new, earlier, made):
    """Makes later nodes use `new` instead of `old`, except the nodes `made`."""
    old.replace_all_uses_with(
        new, delete_user_cb=lambda user: user not in earlier and user not in made
    )


def _rewrite(graph, node, known):
    """Replaces `node`, and returns the nodes that now have its memory. Returns None if
    `node` cannot be replaced. `known` are the earlier nodes with the memory that `node`
    changes."""
    changed, target = node.args[0], _functional(node.target)
    if (
        target is None
        or changed.op != "call_function"
        or _memory(node) is None
        or not known
        or known[-1] is not changed
        or not _is_chain(known)
    ):
        return None
    result = _result(target, node)
    old = changed.meta["val"]
    if result is None or (result.shape, result.dtype) != (old.shape, old.dtype):
        return None
    earlier = _before(graph, node)
    with graph.inserting_before(node):
        made = graph.call_function(target, node.args, node.kwargs)
    made.meta = {**node.meta, "val": result}
    node.replace_all_uses_with(made)
    _replace_later(changed, made, earlier, {made})
    graph.erase_node(node)
    return [made]


def _slices(node, base):
    """The slices that make `node` a view of `base`, the last slice first. None if
    `node` is not made by slices alone."""
    chain = []
    while node is not base:
        if node.op != "call_function" or node.target not in SCATTERS:
            return None
        chain.append(node)
        node = node.args[0]
    return chain


def _rewrite_slice(graph, node, known):
    """Does the same as _rewrite for a `node` that changes a slice of a tensor. The
    first of `known` is the whole tensor."""
    changed, target = node.args[0], _functional(node.target)
    if target is None or not known or known[0].op != "call_function":
        return None
    base = known[0]
    chain = _slices(changed, base)
    earlier = _before(graph, node)
    # Later uses of other views would show the old elements.
    views = [n for n in known if n is not base and n is not changed]
    if chain is None or any(
        u not in earlier and u is not node for v in views for u in v.users
    ):
        return None
    made = []

    def call(target, *arguments, **named):
        new = graph.call_function(target, arguments, named)
        new.meta = {**node.meta, "val": _result(target, new)}
        made.append(new)
        return new

    old = changed.meta["val"]
    with graph.inserting_before(node):
        if node.target is aten.copy_.default:
            value = node.args[1]
            if value.meta["val"].dtype != old.dtype:
                value = call(aten.to.dtype, value, old.dtype)
            if value.meta["val"].shape != old.shape:
                value = call(aten.expand.default, value, list(old.shape))
        else:
            value = call(target, *node.args, **node.kwargs)
        whole = value
        for view in chain:
            whole = call(SCATTERS[view.target], view.args[0], whole, *view.args[1:])
    results = [
        (n.meta["val"], wanted.meta["val"])
        for n, wanted in ((value, changed), (whole, base))
    ]
    if any(r is None or (r.shape, r.dtype) != (w.shape, w.dtype) for r, w in results):
        for new in reversed(made):
            graph.erase_node(new)
        return None
    node.replace_all_uses_with(value)
    _replace_later(changed, value, earlier, made)
    _replace_later(base, whole, earlier, made)
    graph.erase_node(node)
    return [whole, value]
