# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Cuts a model into layers.

The model is traced as one graph. The graph says for each operation inside which modules
it ran. So the graph can be cut at the children of one module (--split-at). The
operations before the first child (mostly embeddings) are the first layer, each child is
a layer, and the operations after the last child (a final norm, a head, the loss) are
the last layer.

    inputs ──► layer 0 ──► layer 1 ──► … ──► layer L ──► loss
                                                ▲
                                              labels

If an operation of one layer uses a value of an earlier layer, the value crosses all
boundaries between the two layers. So several tensors may cross one boundary. A value
that depends on no input and no parameter, like a causal mask, crosses no boundary: each
layer that uses such a value computes it again.
"""

import dataclasses
import functools
import operator
import warnings

import torch
from torch import fx
from torch.utils import _pytree as pytree

from . import dropout, dtypes, growth, inplace, linear_cross_entropy, precision, reading, refusals
from . import labels as labels_of_loss
from .arguments import near
from .model import SCALES, Refused, WithLossAndLogits
from .traced import PREFIX, ancestors, attribute, lines_of_users, own_name, where

aten = torch.ops.aten


@dataclasses.dataclass
class Layer:
    """A layer as a module of its own. It is traced, but not differentiated yet.

    Its graph takes the tensors of the boundary before it and, in the last layer, the
    labels. It returns the tensors of the next boundary, or the loss. `prefix` is the path
    that the names of its parameters have in common, or the empty string.
    """

    module: fx.GraphModule
    inputs: list  # fake tensors, one for each input
    source_lines: list  # for each input, the user's line that makes it, as text for a message
    differentiable: list  # for each input, whether it needs a gradient
    labels: list  # fake tensors
    prefix: str
    logits: fx.GraphModule = None  # of the last layer: the logits without the loss
    weight: fx.GraphModule = None  # of the last layer: the weights of the loss terms
    dropped: tuple = ()  # for each dropout in the model, the number of rows per sample
    returned: object = None  # the module's result, with a growth.Shape for each tensor
    narrowed: tuple = ()  # lines of the model that compute in a smaller type
    probabilities: tuple = ()  # names of the model's labels that are these (labels.py)


class Traced(WithLossAndLogits):
    """WithLossAndLogits as the function that is traced. Refuses Python code that uses a
    tensor's value. If there is a `dtype`, the model is traced as if it computed in this
    type (dtypes.py)."""

    def __init__(self, model, dtype):
        super().__init__(model)
        self.dtype = dtype

    def forward(self, *arguments):
        with refusals.nothing_by_value():
            return super().forward(*arguments)

    def made(self, arguments):
        if not self.dtype:
            return super().made(arguments)
        made = super().made(dtypes.convert(arguments, self.dtype))
        return dtypes.convert_result(made, self.loss)

    def loss_of(self, made, arguments):
        if not self.dtype:
            return super().loss_of(made, arguments)
        # Labels are used after the module, so convert them here.
        arguments = dtypes.convert(arguments, dtypes.of_loss(self.dtype))
        return dtypes.widened(super().loss_of(made, arguments))


def find_split(module):
    """The path of the ModuleList or Sequential to cut at: the one with the most
    children, among those with at least half as many parameters as the largest one."""
    candidates = [
        (path, len(child), sum(p.numel() for p in child.parameters()))
        for path, child in module.named_modules()
        if isinstance(child, (torch.nn.ModuleList, torch.nn.Sequential))
        and len(child) > 0
    ]
    if not candidates:
        raise Refused(
            "expected a ModuleList or a Sequential to cut at, found none: name the module "
            "whose children are the layers with --split-at; --split-at \"\" is the whole "
            "module"
        )
    largest = max(size for _, _, size in candidates)
    large = [c for c in candidates if 2 * c[2] >= largest]
    return max(large, key=lambda c: c[1])[0]


def trace(model, dtype):
    """The whole model with its loss as one graph of ATen operators, and the module's
    result with a growth.Shape for each tensor. For `dtype`, see Traced."""
    # Clone the tensors. If one tensor were given twice, both would become one argument.
    arguments = tuple(t.clone() for t in model.given())
    whole, returned = Traced(model, dtype), []
    whole.seen = lambda tensors: returned.append(growth.shapes_of(tensors))
    refusals.check_module(whole)
    with (
        refusals.nothing_custom(),
        refusals.nothing_in_place(whole),
        lines_of_users(),
        warnings.catch_warnings(),
    ):
        # PyTorch warns that recurrent layers keep a list of their own parameters.
        # Ignore this.
        warnings.filterwarnings("ignore", r".*\n?.*_flat_weights", UserWarning)
        program = torch.export.export(whole, arguments, strict=False)
    return program.module(check_guards=False), returned[0]


def place(graph, split):
    """Assigns operations to layers. Returns the layer number of each node, the number
    of layers, and the name of each layer's child module. The name is None for
    operations before the first child and after the last child."""

    def child_of(node):
        stack = node.meta.get("nn_module_stack") or {}
        for path, _ in stack.values():
            if path.startswith(inside):
                return path.removeprefix(inside).split(".")[0]
        return None

    inside = f"{PREFIX}{split}." if split else PREFIX
    calls = [node for node in graph.nodes if node.op == "call_function"]
    last = max((i for i, node in enumerate(calls) if child_of(node)), default=None)
    if last is None:
        raise Refused(
            f"expected operations inside the modules of '{split}', where the "
            f"model is to be cut, found none"
        )
    numbers, seen = {}, []
    for i, node in enumerate(calls):
        child = child_of(node)
        if child is not None and child not in seen:
            seen.append(child)
        elif child is not None and child != seen[-1]:
            raise Refused(
                f"expected the modules of '{split}' to run one after another, "
                f"but '{split}.{child}' runs again after '{split}.{seen[-1]}'"
            )
        numbers[node] = len(seen) + (1 if i > last else 0)
    return _merge_without_parameters(numbers, [None, *seen, None])


def _parameters(numbers, number):
    """The ids of the parameters that the operations of layer `number` use."""
    return {
        id(source.meta["parameter"])
        for node in numbers
        if numbers[node] == number
        for source in node.all_input_nodes
        if "parameter" in source.meta
    }


def _merge_without_parameters(numbers, children):
    """Merges a layer without parameters into the layer before it, and a first layer
    without parameters into the next one. If the last layer uses all parameters of the
    first layer, merges the first layer into the next one. If the first layer uses all
    parameters of the last layer, merges the last layer into the one before it. Then
    each layer has parameters that no other layer has."""
    uses = [_parameters(numbers, number) for number in range(len(children))]
    tied = uses[0] & uses[-1]
    has = [bool(each) for each in uses]
    has[0], has[-1] = bool(uses[0] - tied), bool(uses[-1] - tied)
    if not any(has):
        raise Refused("expected a model with parameters, got one without")
    new, kept = [], []
    for number, child in enumerate(children):
        if has[number]:
            kept.append(child)
        new.append(max(len(kept) - 1, 0))
    return {node: new[number] for node, number in numbers.items()}, len(kept), kept


def strip(graph):
    """Removes operations that compute nothing: checks, and copies of constants."""
    for node in reversed(list(graph.nodes)):
        if node.op == "call_module" and node.target == "_guards_fn":
            graph.erase_node(node)
        elif (
            node.target is aten.detach_.default
            and node.args[0].target is aten.lift_fresh_copy.default
        ):  # a constant that the forward makes
            node.replace_all_uses_with(node.args[0])
            graph.erase_node(node)
        elif node.target in (aten._assert_tensor_metadata.default,
                             aten.sym_constrain_range.default):
            graph.erase_node(node)


def cut(model, examples=None, conversion=None):
    """The layers of the model, in order. If there are `examples`, which are the same model
    with real values of its inputs and labels, checks how the loss uses its labels. If there
    is a dtypes.Conversion, the model is traced as if it computed in another type."""
    split = model.split_at
    if split is None:
        split = find_split(model.module)
    elif split not in dict(model.module.named_modules()):
        names = [name for name, _ in model.module.named_modules()]
        raise Refused(
            f"--split-at: expected a module of the model, got '{split}'"
            f"{near(split, names)}"
        )
    whole, returned = trace(model, conversion and conversion.dtype)
    graph = whole.graph
    strip(graph)
    inplace.rewrite(graph)
    refusals.check_graph(whole)
    dropped = dropout.rewrite_dropout(graph, model.samples())
    graph.eliminate_dead_code()
    of_labels = dict(
        zip(model.labels, graph.find_nodes(op="placeholder")[len(model.inputs) :])
    )
    probabilities = labels_of_loss.of_probabilities(graph, of_labels)
    if examples:
        _check_labels(whole, model, examples, of_labels)
    loss, weights, logits = _results(graph, model.samples())
    if examples and not weights:
        values = examples.labels.values()
        labels_of_loss.warn_of_uneven_mean(graph, loss, of_labels, values)
    for node in graph.find_nodes(op="get_attr"):
        value = attribute(whole, node.target)
        # Frozen parameters become buffers.
        if isinstance(value, torch.nn.Parameter) and value.requires_grad:
            node.meta["parameter"] = value
    narrowed = []
    if conversion and conversion.dtype == dtypes.NARROW:
        dtypes.widen(whole, conversion.originals)
    elif not conversion:
        narrowed = precision.narrowed(graph, model.named_parameters()[0][1].dtype)
    loss = linear_cross_entropy.rewrite(graph, loss)
    numbers, count, children = place(graph, split)
    if logits is not None and numbers.get(logits) != count - 1:
        if model.logits is not None:
            raise Refused(
                f"expected logits that are computed after the last module of '{split}', "
                "got earlier ones"
            )
        logits = None

    placeholders = graph.find_nodes(op="placeholder")
    loaded = placeholders[: len(model.inputs)]
    labels = placeholders[len(model.inputs) :]

    # Sort the parameters so that tied parameters, which both the first and the last
    # layer use, are the first ones of the first layer and the last ones of the last
    # layer.
    parameters = [p for _, p in model.named_parameters()]
    tied = _parameters(numbers, 0) & _parameters(numbers, count - 1)
    is_tied = lambda parameter: id(parameter) in tied

    # `dynamic`: nodes that depend on an input or a parameter. `learned`: nodes that
    # depend on a parameter.
    dynamic, learned = set(placeholders), set()
    for node in graph.nodes:
        if "parameter" in node.meta:
            dynamic.add(node)
            learned.add(node)
        elif node.op == "call_function":
            if any(n in dynamic for n in node.all_input_nodes):
                dynamic.add(node)
            if any(n in learned for n in node.all_input_nodes):
                learned.add(node)

    if loss not in learned or not loss.meta["val"].is_floating_point():
        raise Refused(
            "expected a loss that depends on the parameters, a number of floating "
            f"point, got one of {loss.meta['val'].dtype} that does not"
        )
    weighing = ancestors(weights)
    if weighing & (learned | set(loaded)):
        raise Refused(
            "expected the weight of a loss to depend on labels alone, because every rank "
            "computes the weights of all micro-batches, but it depends on the model's "
            "inputs or parameters"
        )
    for node in labels:
        for user in node.users:
            if user.op == "call_function" and numbers[user] != count - 1:
                raise Refused(
                    "expected labels to be used after the last layer, by the "
                    f"loss, but '{user.name}' uses them before"
                )

    # A value crosses the boundaries between the layer that makes it (`made`) and the
    # last layer that uses it (`reach`).
    def made(node):
        return 0 if node.op == "placeholder" else numbers[node]

    reach = {}
    for node in [*loaded, *numbers]:
        if node not in dynamic:
            continue
        uses = [numbers[u] for u in node.users if u in numbers]
        furthest = max(uses, default=-1)
        if node is loss or node in weights:
            continue
        if furthest > made(node):
            reach[node] = furthest

    layers = []
    for k in range(count):
        crossing_in = (
            loaded
            if k == 0
            else [n for n, r in reach.items() if made(n) < k <= r]
        )
        crossing_out = [n for n, r in reach.items() if made(n) <= k < r]
        last = k == count - 1
        inputs = [*crossing_in, *(labels if last else [])]
        module = _extract(
            whole, sorted(parameters, key=is_tied, reverse=not last), k, numbers,
            inputs, [loss] if last else crossing_out, dynamic,
        )
        layers.append(
            Layer(
                module=module,
                inputs=[n.meta["val"] for n in crossing_in],
                source_lines=[where(n) for n in crossing_in],
                differentiable=[
                    n in learned and n.meta["val"].is_floating_point()
                    for n in crossing_in
                ],
                labels=[n.meta["val"] for n in labels] if last else [],
                weight=_extract(
                    whole, [], -1, {n: -1 for n in numbers if n in weighing}, labels,
                    weights, dynamic,
                )
                if last and weights
                else None,
                dropped=tuple(dropped),
                narrowed=tuple(narrowed),
                probabilities=probabilities,
                returned=returned,
                logits=_extract(
                    whole, sorted(parameters, key=is_tied, reverse=True), k,
                    _only(numbers, logits), crossing_in, [logits], dynamic,
                )
                if last and logits is not None
                else None,
                prefix=".".join(filter(None, (split, children[k])))
                if children[k]
                else "",
            )
        )
    return layers


def _check_labels(whole, model, examples, labels):
    """Checks that the loss compares labels with the right logits, if labels are next
    tokens."""
    found = labels_of_loss.comparisons(whole.graph, labels)
    labels_of_loss.check_shift(found)
    if model.samples() != examples.samples():
        return  # already checked with all samples
    reading.check(whole, examples, found)
    if name := reading.tokens_of(examples.inputs):
        tokens = whole.graph.find_nodes(op="placeholder")[list(model.inputs).index(name)]
        labels_of_loss.warn_of_few_classes(whole.graph, found, tokens)


def _is_fresh(node):
    """Whether a node certainly is not a view of another node's memory."""
    if node.target is operator.getitem:
        node = node.args[0]
    if node.op != "call_function" or not isinstance(node.target, torch._ops.OpOverload):
        return False
    return not any(
        result.alias_info is not None for result in node.target._schema.returns
    ) and not torch._C._dispatch_has_kernel_for_dispatch_key(
        node.target.name(), "CompositeImplicitAutograd"
    )


def _only(numbers, node):
    """The operations on which `node` depends, with their layer numbers."""
    needed = ancestors([node])
    return {n: number for n, number in numbers.items() if n in needed}


def _results(graph, samples):
    """Returns the node of the loss, the nodes of the weights of its terms (none if the
    loss is a mean), and the node of the logits, if there are any. If there are several
    terms, adds them to one loss. Each term is first multiplied by a scale, so that it
    becomes a share of the mean over a step. The run gives the scales in a label that
    this function adds."""
    output = graph.find_nodes(op="output")[0]
    results = list(pytree.arg_tree_leaves(*output.args))
    logits = results.pop() if results[-1].meta["val"].dim() else None
    if len(results) == 1:
        return results[0], [], logits
    sums, weights = results[::2], results[1::2]
    if len(sums) == 1:
        return sums[0], weights, logits

    def call(target, *arguments):
        node = graph.call_function(target, arguments)
        node.meta["val"] = target(*fx.map_arg(arguments, lambda n: n.meta["val"]))
        return node

    with graph.inserting_after(graph.find_nodes(op="placeholder")[-1]):
        scales = graph.placeholder(SCALES)
    # The scales have one row for each sample, as other labels do. All rows are equal.
    scales.meta["val"] = sums[0].meta["val"].new_empty((samples, len(sums)))
    with graph.inserting_before(output):
        row = call(aten.select.int, scales, 0, 0)
        shares = [
            call(aten.mul.Tensor, each, call(aten.select.int, row, 0, k))
            for k, each in enumerate(sums)
        ]
        loss = functools.reduce(lambda a, b: call(aten.add.Tensor, a, b), shares)
    return loss, weights, logits


def _extract(whole, parameters, k, numbers, inputs, outputs, dynamic):
    """Makes a module of the operations of layer `k`. The module registers the
    parameters that these operations use, in the order of `parameters`."""
    graph, root = fx.Graph(), torch.nn.Module()

    def take(node, register, value):
        name = own_name(node.target).replace(".", "/")
        register(name, value)
        copied = graph.get_attr(name)
        copied.meta = dict(node.meta)
        return copied

    def copy(node):
        if node not in made:
            made[node] = (
                take(node, root.register_buffer, attribute(whole, node.target).detach())
                if node.op == "get_attr"
                else graph.node_copy(node, copy)
            )
        return made[node]

    made = {}
    for node in inputs:
        made[node] = graph.placeholder(node.name)
        made[node].meta = dict(node.meta)
    used = {}
    for node in numbers:
        if numbers[node] == k:
            for source in node.all_input_nodes:
                if "parameter" in source.meta:
                    used.setdefault(id(source.meta["parameter"]), []).append(source)
    # Register the parameters in the given order.
    for parameter in parameters:
        for source in used.get(id(parameter), []):
            if source not in made:
                made[source] = take(source, root.register_parameter, parameter)

    for node in numbers:
        if numbers[node] == k and node in dynamic:
            copy(node)
    results = []
    for node in outputs:
        value = copy(node)
        if not _is_fresh(value) or not node.meta["val"].is_contiguous():
            # Let a copy of the value cross the boundary: it is contiguous, shares no
            # memory, and has a gradient of its own.
            value = graph.call_function(
                aten.clone.default, (value,),
                {"memory_format": torch.contiguous_format},
            )  # fmt: skip
            value.meta = dict(node.meta)
        results.append(value)
    graph.output(tuple(results))
    graph.lint()
    return fx.GraphModule(root, graph)
