# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes a layer's forward and backward graphs.

Each layer is traced together with its gradient as autograd computes it. Operations that
depend on no gradient of an output are the forward, all others the backward. As in
autograd, the forward saves the values that the backward needs. If such a value is a view,
the tensor that it views is saved. Inputs, outputs and parameters are not saved: the
backward takes them by name.

A backward can run in two halves. I computes the input gradients: it has all operations
on which the input gradients depend. W computes the weight gradients: it has all other
operations. Each operation is in one half, so the two halves together compute exactly
the same bits as the backward. The values that I computes and W needs are the `kept`
values.
"""

import contextlib
import dataclasses
import operator

import torch
from torch import fx
from torch._functorch import aot_autograd, partitioners
from torch._functorch._aot_autograd import descriptors
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils import _pytree as pytree

from . import calls, linear_cross_entropy, waits
from .model import Refused
from .traced import ancestors

aten = torch.ops.aten


@dataclasses.dataclass
class Port:
    """An input or output of a graph, and its role."""

    role: str
    index: int
    node: fx.Node


@dataclasses.dataclass
class Function:
    """A graph. The nodes of `inputs` are its placeholders."""

    graph: fx.Graph
    inputs: list
    outputs: list


@dataclasses.dataclass
class Differentiated:
    forward: Function
    backward: Function
    kept: list  # nodes of the backward's graph that W takes from I
    parameters: list  # names of the parameters, in the order of their ports
    constants: list  # names of the buffers, in the order of their ports


VIEWS = {
    aten.view.default, aten._unsafe_view.default, aten.permute.default,
    aten.t.default, aten.transpose.int, aten.expand.default,
    aten.unsqueeze.default, aten.squeeze.dim, aten.squeeze.dims,
    aten.squeeze.default, aten.select.int, aten.slice.Tensor,
    aten.detach.default, aten.alias.default, aten.split.Tensor,
    aten.unbind.int, aten.split_with_sizes.default, aten.as_strided.default,
    aten.diagonal.default, aten.unfold.default,
}  # fmt: skip


def is_view(node):
    if node.op != "call_function":
        return False
    if node.target is operator.getitem:
        return is_view(node.args[0])
    return node.target in VIEWS


def base(node):
    """The tensor that `node` is a view of, or `node` itself."""
    while is_view(node):
        node = node.args[0]
    return node


def outputs_of(graph):
    return list(pytree.arg_tree_leaves(*graph.find_nodes(op="output")[0].args))


def _correct_meta_kernel():
    """Corrects the meta function of attention. In torch 2.11 it returns the log-sum-exps
    of float64 inputs as float32, so a backward would be traced with wrong types."""

    def attention(q, k, v, dropout_p=0.0, is_causal=False, attn_mask=None, scale=None):
        dtype = torch.float64 if q.dtype == torch.float64 else torch.float32
        sums = torch.empty(
            (q.size(0), q.size(2), q.size(1)), dtype=dtype, device=q.device
        )
        return torch.empty_like(q), sums.transpose(1, 2)

    call = aten._scaled_dot_product_flash_attention_for_cpu.default
    call.py_kernels[torch._C.DispatchKey.Meta] = attention
    call._dispatch_cache.clear()


_correct_meta_kernel()


def _extract(root, graph, inputs, outputs, subgraph):
    made = partitioners._extract_graph_with_inputs_outputs(
        graph, inputs, outputs, [None] * len(outputs), subgraph,
        ignore_must_be_in_fw_bw=True,
    )  # fmt: skip
    # PyTorch marks attention as possibly random. Without this, attention whose result
    # is unused would remain in the backward.
    made.eliminate_dead_code(is_impure_node=lambda n: n.op in ("placeholder", "output"))
    return made


def _function(root, graph, inputs, outputs, subgraph):
    """The part of `graph` that computes `outputs`. Leaves out `inputs` that this part
    does not use."""
    made = _extract(
        root, graph, [p.node for p in inputs], [p.node for p in outputs], subgraph
    )
    ports = []
    for placeholder, port in zip(made.find_nodes(op="placeholder"), inputs):
        if placeholder.users:
            ports.append(Port(port.role, port.index, placeholder))
        else:
            made.erase_node(placeholder)
    results = [
        Port(p.role, p.index, node) for p, node in zip(outputs, outputs_of(made))
    ]
    return Function(made, ports, results)


def differentiate(module, arguments, labels):
    """The forward and backward of `module`, which has the parameters `arguments` and
    then `labels`. The backward computes the gradients of arguments that require a
    gradient."""
    with contextlib.ExitStack() as stack:
        joint = aot_autograd.aot_export_joint_with_descriptors(
            stack, module, (*arguments, *labels)
        ).graph_module
    graph = joint.graph
    calls.number_dropouts(graph)
    waits.replace(graph)
    output = graph.find_nodes(op="output")[0]
    results = list(
        zip(outputs_of(graph), pytree.arg_tree_leaves(output.meta["desc"]))
    )

    parameters, constants, primals, tangents, inputs = [], [], [], [], {}
    for node in graph.find_nodes(op="placeholder"):
        what = node.meta["desc"]
        if isinstance(what, descriptors.TangentAOTInput):
            tangents.append(Port("OutputGradient", what.output.idx, node))
        elif isinstance(what, descriptors.ParamAOTInput):
            primals.append(Port("Parameter", len(parameters), node))
            parameters.append(what.target)
        elif isinstance(what, descriptors.BufferAOTInput):
            primals.append(Port("Constant", len(constants), node))
            constants.append(what.target)
        elif what.idx < len(arguments):
            primals.append(Port("Input", what.idx, node))
            inputs[what.idx] = node
        else:
            primals.append(Port("Label", what.idx - len(arguments), node))

    outputs, input_gradients, weight_gradients = [], [], []
    for node, what in results:
        if node is None:
            continue
        if not isinstance(what, descriptors.GradAOTOutput):
            outputs.append(Port("Output", len(outputs), node))
        elif isinstance(what.grad_of, descriptors.ParamAOTInput):
            weight_gradients.append(
                Port("WeightGradient", parameters.index(what.grad_of.target), node)
            )
        else:
            input_gradients.append(Port("InputGradient", what.grad_of.idx, node))

    by_backward = []
    if maker := linear_cross_entropy.backward_with_loss(graph, outputs[0].node):
        with graph.inserting_after(maker):
            node = graph.call_function(operator.getitem, (maker, linear_cross_entropy.LOSS))
        node.meta["val"] = maker.meta["val"][linear_cross_entropy.LOSS]
        by_backward.append(Port("Output", 0, node))

    # Nodes that depend on a tangent (an output gradient) belong to the backward.
    backward_nodes = {p.node for p in tangents}
    for node in graph.nodes:
        if any(n in backward_nodes for n in node.all_input_nodes):
            backward_nodes.add(node)
    used = []
    for node in graph.nodes:
        if node in backward_nodes and node.op == "call_function":
            for source in node.all_input_nodes:
                if source not in backward_nodes:
                    used.append(base(source))
    # If a gradient is a value of the forward, it must be saved too.
    for port in [*input_gradients, *weight_gradients]:
        if port.node not in backward_nodes:
            used.append(base(port.node))
    of_outputs = {p.node: p for p in reversed(outputs)}
    named, saved = [], []
    for node in dict.fromkeys(used):
        if node.op == "placeholder":
            continue  # a primal: an input, a label, a parameter or a buffer
        if node in of_outputs:
            named.append(Port("Output", of_outputs[node].index, node))
        elif node.all_input_nodes:  # else a constant, which is computed again
            saved.append(Port("Saved", len(saved), node))

    forward = _function(joint, graph, primals, [*outputs, *saved], "forward")
    backward = _function(
        joint, graph, [*primals, *named, *saved, *tangents],
        [*input_gradients, *weight_gradients, *by_backward], "backward",
    )  # fmt: skip
    return Differentiated(
        forward, backward, values_of_weight_gradients(backward), parameters, constants
    )


def forward_without_saved(made):
    """The forward of a Differentiated module, without its saved outputs."""
    graph = made.forward.graph
    outputs = [p for p in made.forward.outputs if p.role == "Output"]
    graph.erase_node(graph.find_nodes(op="output")[0])
    graph.output(tuple(p.node for p in outputs))
    graph.eliminate_dead_code()
    ports = []
    for port in made.forward.inputs:
        if port.node.users:
            ports.append(port)
        else:
            graph.erase_node(port.node)
    return Function(graph, ports, outputs)


def trace_label_weights(module, labels, buffers):
    """The graph of `module`, a function of the labels. `buffers` are the names of the
    layer's buffers, which include those of `module`."""
    own = dict(module.named_buffers())

    def call(*given):
        return torch.func.functional_call(
            module, dict(zip(own, given)), given[len(own) :]
        )

    if not own.keys() <= set(buffers):
        raise Refused(
            "expected the weight of a loss to be computed from labels, numbers and "
            "buffers that the loss also uses, but it uses another"
        )
    graph = make_fx(call)(*own.values(), *labels).graph
    graph.eliminate_dead_code()
    calls.number_dropouts(graph)
    constants = [Port("Constant", buffers.index(name), None) for name in own]
    given = [*constants, *(Port("Label", i, None) for i in range(len(labels)))]
    ports = []
    for port, node in zip(given, graph.find_nodes(op="placeholder")):
        if node.users:
            ports.append(Port(port.role, port.index, node))
        else:
            graph.erase_node(node)
    results = [Port("Output", i, node) for i, node in enumerate(outputs_of(graph))]
    return Function(graph, ports, results)


def values_of_weight_gradients(backward):
    """The `kept` values: those that the half I of the backward computes and the half W
    needs."""

    first = ancestors(p.node for p in backward.outputs if p.role != "WeightGradient")
    # An operator of I with several results, such as the backward of a norm, may also
    # compute weight gradients. So W gets these results from I. Exception: both halves
    # call the backward of a linear cross-entropy, because the gradient of its weight is
    # larger than the operands of this call.
    runs_in_both = lambda node: node.target is linear_cross_entropy.BACKWARD
    for node in backward.graph.nodes:
        if (
            node.target is operator.getitem
            and node.args[0] in first
            and not runs_in_both(node.args[0])
        ):
            first.add(node)
    results = [p.node for p in backward.outputs if p.role == "WeightGradient"]
    ports = {p.node: p for p in backward.inputs}
    second = ancestors(results) - first - ports.keys()
    kept = []
    for node in backward.graph.nodes:
        if node in second:
            for source in node.all_input_nodes:
                read = source.all_input_nodes if runs_in_both(source) else [source]
                kept += [base(n) for n in read if n not in second]
    kept += [base(n) for n in results if n not in second]
    # W can read parameters and constants itself. A value without inputs is computed
    # again.
    return [
        node
        for node in dict.fromkeys(kept)
        if not (node in ports and ports[node].role in ("Parameter", "Constant"))
        and (node in ports or node.all_input_nodes)
    ]
