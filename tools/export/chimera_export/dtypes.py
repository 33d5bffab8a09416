# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Traces a model as if it computed in another type than that of its parameters.

There is a package for each type in which a run may compute (PackageFile in
runtime/program/package.fbs). For the type of its parameters, a model is traced as it
is. For another type, it is traced as after `module.to(type)`, with PyTorch's default
type set to this type. Floating-point tensors of the data keep their type. They are
converted before the module or the loss gets them.

bfloat16 has only 8 bits of precision. So a package for bfloat16 computes some values in
float32 that `module.to(torch.bfloat16)` computes in bfloat16:

- Values that depend on no trained parameter and no input of floating point, such as the
  angles of rotary embeddings. They are converted when a layer uses them (widen).
- The loss: the module's result is converted before the loss. If the loss has parameters,
  it computes in bfloat16, except the operators LOSSES.
"""

import contextlib
import dataclasses

import numpy
import torch
from torch import fx
from torch._guards import detect_fake_mode
from torch.utils import _pytree as pytree

from . import calls, linear_cross_entropy
from .arguments import COMPUTE
from .model import Refused, WithLoss
from .traced import PREFIX, attribute, where

aten = torch.ops.aten

# The types in which a run may compute.
ALL = tuple(getattr(torch, name) for name in COMPUTE)
NARROW, WIDE = torch.bfloat16, torch.float32
# Operators whose operands must have one type, which a trace does not notice.
OF_ONE_TYPE = {
    aten.mm.default, aten.addmm.default, aten.bmm.default, aten.baddbmm.default,
    aten.convolution.default, aten.convolution_backward.default, calls.ATTENTION,
    linear_cross_entropy.FORWARD,
}  # fmt: skip
PRODUCTS = {*OF_ONE_TYPE, calls.ATTENTION_BACKWARD, linear_cross_entropy.BACKWARD}
# The operators of losses that torch.autocast computes in float32, too.
LOSSES = {
    aten.binary_cross_entropy.default, aten.binary_cross_entropy_with_logits.default,
    aten.cosine_embedding_loss.default, aten.cross_entropy_loss.default,
    aten.hinge_embedding_loss.default, aten.huber_loss.default, aten.kl_div.default,
    aten.l1_loss.default, aten.log_softmax.int, aten.logsumexp.default,
    aten.margin_ranking_loss.default, aten.mse_loss.default, aten.nll_loss_nd.default,
    aten.poisson_nll_loss.default, aten.smooth_l1_loss.default,
    aten.soft_margin_loss.default, aten.triplet_margin_loss.default,
}  # fmt: skip


def name_of(dtype):
    return str(dtype).removeprefix("torch.")


@contextlib.contextmanager
def default_type(dtype):
    """A context with another default type of PyTorch."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


@dataclasses.dataclass
class Conversion:
    """Says that a model computes in the type `dtype`. `originals` has the buffers and the
    frozen parameters before the conversion, by name."""

    dtype: torch.dtype
    originals: dict


@contextlib.contextmanager
def converted(model, dtype, mode):
    """A context in which all floating-point parameters and buffers of the model have the
    type `dtype`. Yields the Conversion. Trained parameters have no values: they are fake
    tensors if there is a fake `mode`, otherwise memory that nobody has written to and
    that takes no space."""
    whole = WithLoss(model)
    originals = dict(whole.named_buffers(remove_duplicate=False))
    originals |= {
        name: p
        for name, p in whole.named_parameters(remove_duplicate=False)
        if not p.requires_grad
    }
    replaced = {}  # by the id of the original, so that a shared tensor stays shared

    def replace(tensor):
        if tensor is None or not tensor.is_floating_point() or tensor.dtype == dtype:
            return tensor
        if id(tensor) not in replaced:
            if isinstance(tensor, torch.nn.Parameter):
                if tensor.requires_grad:
                    with mode or contextlib.nullcontext():
                        made = torch.empty(tensor.shape, dtype=dtype)
                else:
                    made = tensor.detach().to(dtype)
                made = torch.nn.Parameter(made, tensor.requires_grad)
            else:
                made = tensor.to(dtype)
            replaced[id(tensor)] = made
        return replaced[id(tensor)]

    before = []
    try:
        for module in whole.modules():
            for tensors in (module._parameters, module._buffers):
                before.append((module, tensors, dict(tensors)))
                tensors.update({name: replace(t) for name, t in tensors.items()})
            _refresh_flat_weights(module)
        with default_type(dtype):
            yield Conversion(dtype, originals)
    finally:
        for module, tensors, originals in before:
            tensors.update(originals)
            _refresh_flat_weights(module)


def _refresh_flat_weights(module):
    """Recurrent layers have a list of their own parameters, which must be the same
    tensors."""
    if isinstance(module, torch.nn.RNNBase):
        module._flat_weights = [getattr(module, n, None) for n in module._flat_weights_names]


def of_loss(dtype):
    """The type of a loss in a model that computes in `dtype`."""
    return WIDE if dtype == NARROW else dtype


def convert(tensors, dtype):
    """The tensors, those of floating point converted to `dtype`."""
    return [t.to(dtype) if t.is_floating_point() else t for t in tensors]


def convert_result(made, loss):
    """The module's result in the type in which the loss computes."""
    has_parameters = isinstance(loss, torch.nn.Module) and any(True for _ in loss.parameters())
    return made if has_parameters else widened(made)


def widened(tensors):
    """The tensors, those of bfloat16 converted to float32."""
    return pytree.tree_map_only(
        torch.Tensor, lambda t: t.to(WIDE) if t.dtype == NARROW else t, tensors
    )


def check_operators(graph):
    """Refuses operators that a run could not compute in the types of the trace. A trace
    does not notice products of several types, types that an operator lacks, and results
    of another type than the trace says. So the operators run here, on zeros. Products
    do not, because they take time."""
    for node in graph.nodes:
        if node.op != "call_function":
            continue
        value = node.meta.get("val")
        if node.target in OF_ONE_TYPE:
            values = (n.meta.get("val") for n in node.all_input_nodes)
            types = {v.dtype for v in values if v is not None and v.is_floating_point()}
            if len(types) > 1:
                names = " and ".join(sorted(map(name_of, types)))
                raise Refused(f"expected operands of one type, got {names}{where(node)}")
        if node.target in PRODUCTS:
            continue
        try:
            args, kwargs = fx.map_arg((node.args, dict(node.kwargs)), _zeros)
            after = _types(node.target(*args, **kwargs))
        except NotImplementedError as error:  # the operator lacks the type
            raise Refused(f"{str(error).splitlines()[0]}{where(node)}") from error
        except RuntimeError:  # zeros are no good arguments
            continue
        if after != _types(value):
            raise Refused(
                f"PyTorch computes {node.target} in other types than it traces{where(node)}"
            )


def _zeros(node):
    """The tensors that a node makes, as zeros. They take no memory until an operator
    writes to them, because NumPy gets pages of zeros from the system. The graph of a whole
    layer may have gigabytes of such tensors. They have the strides of the trace, because
    kernels may read memory as it was traced."""

    def zeros(tensor):
        steps = sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride()))
        size = tensor.element_size() * (steps + 1 if tensor.numel() else 1)
        memory = torch.from_numpy(numpy.zeros(size, numpy.uint8)).view(tensor.dtype)
        return memory.as_strided(tuple(tensor.shape), tensor.stride())

    return pytree.tree_map_only(torch.Tensor, zeros, node.meta.get("val"))


def _types(values):
    return [v.dtype for v in pytree.tree_leaves(values) if isinstance(v, torch.Tensor)]


def widen(whole, originals):
    """Rewrites the graph of `whole`, which was traced for bfloat16, so that it computes
    some values in float32 (see above). For `originals`, see Conversion. Requires that
    nodes of trained parameters are marked (meta "parameter")."""
    graph = whole.graph
    # Nodes that depend on a trained parameter or an input of floating point; and other
    # nodes that are computed in float32 now, with their conversion to bfloat16 or None.
    dynamic, widened = set(), {}
    for node in list(graph.nodes):
        if (
            node.op == "output"
            or node.op == "placeholder" and node.meta["val"].is_floating_point()
            or "parameter" in node.meta
            or any(source in dynamic for source in node.all_input_nodes)
        ):
            dynamic.add(node)
            _narrow_operands(node, dynamic, widened)
            if node.target in LOSSES and not _is_in_module(node):
                _widen_operands(node)
        elif node.op == "get_attr":
            value = attribute(whole, node.target)
            original = originals.get(node.target, value)
            if value.dtype == NARROW and original.dtype != NARROW:
                _set_attribute(whole, node.target, original.detach().to(WIDE))
                value = original
            if node.meta["val"].dtype == NARROW and value.dtype != NARROW:
                node.meta["val"] = node.meta["val"].to(WIDE)
                widened[node] = None
        elif node.op == "call_function":
            _compute_wide(node, widened)


def _is(node, dtype):
    value = node.meta.get("val")
    return isinstance(value, torch.Tensor) and value.dtype == dtype


def _is_floating(node):
    value = node.meta.get("val")
    return isinstance(value, torch.Tensor) and value.is_floating_point()


def _is_integral(node):
    value = node.meta.get("val")
    return isinstance(value, torch.Tensor) and not value.is_floating_point()


def _is_in_module(node):
    stack = node.meta.get("nn_module_stack") or {}
    return any(f"{path}.".startswith(PREFIX) for path, _ in stack.values())


def _narrow_operands(node, dynamic, widened):
    """Converts the operands of a node that were traced in bfloat16 and are computed in
    float32 now. If the node computes in float32 anyway, they need no conversion."""
    sources = node.all_input_nodes
    if any(s in dynamic and _is_floating(s) and not _is(s, NARROW) for s in sources):
        return
    for source in sources:
        if source in widened:
            node.replace_input_with(source, _narrowed(source, widened))
    # Integers become numbers of PyTorch's default type, which is float32 in a run.
    states_type = any(a is NARROW for a in (*node.args, *node.kwargs.values()))
    if _is(node, NARROW) and all(map(_is_integral, sources)) and not states_type:
        for source in sources:
            node.replace_input_with(source, _converted(source, NARROW))


def _widen_operands(node):
    for source in node.all_input_nodes:
        if _is(source, NARROW):
            node.replace_input_with(source, _converted(source, WIDE))


def _converted(node, dtype):
    """A new node after `node` that converts it."""
    with node.graph.inserting_after(node):
        made = node.graph.call_function(aten._to_copy.default, (node,), {"dtype": dtype})
    made.meta = {**node.meta, "val": node.meta["val"].to(dtype)}
    made.meta.pop("parameter", None)
    return made


def _narrowed(node, widened):
    """The conversion of a node to bfloat16."""
    if widened[node] is None:
        widened[node] = _converted(node, NARROW)
    return widened[node]


def _set_attribute(whole, target, value):
    *path, leaf = target.split(".")
    owner = attribute(whole, ".".join(path)) if path else whole
    if leaf in owner._parameters:
        del owner._parameters[leaf]
    owner.register_buffer(leaf, value)


def _compute_wide(node, widened):
    """Changes a call so that it computes in float32 if it computes in bfloat16. Calls that
    dropout.py has inserted have no "val", and those of constants compute booleans."""
    values = pytree.tree_leaves(node.meta.get("val"))
    if not any(isinstance(v, torch.Tensor) for v in values):
        return
    wide = lambda tree: pytree.tree_map(lambda a: WIDE if a is NARROW else a, tree)
    args, kwargs = wide(node.args), wide(dict(node.kwargs))
    given = fx.map_arg((args, kwargs), lambda n: n.meta["val"])
    with detect_fake_mode(values) or contextlib.nullcontext(), default_type(WIDE):
        made = node.target(*given[0], **given[1])
    before = [getattr(v, "dtype", None) for v in values]
    after = [getattr(v, "dtype", None) for v in pytree.tree_leaves(made)]
    if before != after:
        node.args, node.kwargs = args, kwargs
        node.meta["val"] = made
        if isinstance(made, torch.Tensor):
            widened[node] = None
