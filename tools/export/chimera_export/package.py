# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes a package of a model."""

import contextlib
import dataclasses
import hashlib
import json

import torch
from torch._guards import detect_fake_mode
from torch.utils import flop_counter

from . import (
    affine, calls, checkpointing, cut, dtypes, graphs, growth, initial, joint,
    linear_cross_entropy, operators, precision, refusals, sizes, ties,
)  # fmt: skip
from .model import SCALES, Refused, WithLoss
from .notices import note, warn
from .sizes import bytes_of
from .traced import line_of, where

VERSION = 3
TYPES_OF_PARAMETERS = (torch.float32, torch.float64)
LARGEST_CONSTANT = 1 << 20  # bytes


def _products_of_attention(query, key):
    """The FLOPs of the product of queries with keys, or of scores with values. If there
    are fewer key heads than query heads, the key heads are repeated."""
    batch, heads, rows, size = query
    return 2 * batch * heads * rows * key[2] * size


def _attention(query, key, *_, out_shape=None, **__):
    return 2 * _products_of_attention(query, key)


def _attention_backward(gradient, query, key, *_, out_shape=None, **__):
    # The backward of attention computes the scores again, and two products for each product of
    # the forward.
    return 5 * _products_of_attention(query, key)


def _register_formulas():
    """Registers FLOP formulas for attention on CPUs, which PyTorch 2.11 lacks and 2.15
    has."""
    for operator, formula in (
        (torch.ops.aten._scaled_dot_product_flash_attention_for_cpu, _attention),
        (
            torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward,
            _attention_backward,
        ),
    ):
        if operator not in flop_counter.flop_registry:
            flop_counter.register_flop_formula(operator)(formula)


_register_formulas()


def flops_of(function, targets=None):
    """The FLOPs of the part of a graph that `targets` need. Products and convolutions
    are counted by PyTorch's formulas. Any other operation counts as one FLOP for each
    element of its result."""
    wanted = set(targets if targets is not None else [p.node for p in function.outputs])
    total = 0
    for node in reversed(function.graph.nodes):
        if node not in wanted or node.op != "call_function":
            continue
        wanted.update(node.all_input_nodes)
        value = node.meta.get("val")
        count = getattr(node.target, "overloadpacket", None)
        if node.target in linear_cross_entropy.NAMES:
            total += linear_cross_entropy.flops(node, wanted)
        elif count in flop_counter.flop_registry:
            arguments = torch.fx.map_arg(node.args, lambda n: n.meta["val"])
            options = torch.fx.map_arg(dict(node.kwargs), lambda n: n.meta["val"])
            total += flop_counter.flop_registry[count](
                *arguments, **options, out_val=value
            )
        elif isinstance(value, torch.Tensor) and not joint.is_view(node):
            total += value.numel()
    return int(total)


@dataclasses.dataclass
class Trace:
    """A layer that was traced and differentiated for one number of samples."""

    entry: dict  # LayerGraphs of package.fbs for this number of samples
    made: joint.Differentiated
    numbers: dict  # the numbers of the nodes of the graphs "forward" and "backward"

    def where(self, graph, call):
        """The place of a call of a graph in the user's code, as text for a message."""
        entry = self.entry[graph]["calls"][call]
        numbers = self.numbers.get(graph, {})
        nodes = [n for n, number in numbers.items() if number in entry["results"]]
        return entry["operator"] + (where(nodes[0]) if nodes else "")


class Exporter:
    """Exports a model. `types` are the types in which runs must be able to compute. By
    default, these are all types in which the model can compute. The type of the
    parameters is always among them."""

    def __init__(self, model, types=None):
        self.model, self.types = model, types or dtypes.ALL
        self.is_strict = types is not None
        self.narrowed = ()  # lines that compute in a smaller type than the parameters have
        # If the parameters are fake tensors, they have a fake mode and no values to
        # write.
        self.mode = detect_fake_mode([p for _, p in model.named_parameters()])
        self.has_values = self.mode is None
        if not self.has_values and any(
            not p.requires_grad for p in WithLoss(model).parameters()
        ):
            raise Refused(
                "expected values of the frozen parameters (requires_grad=False), because "
                "they are a part of the package: leave out --no-values"
            )

    def export(self):
        """Returns the packages, first the one for the type of the parameters."""
        with checkpointing.switched_off() as checkpointed:
            made = self._export()
        if checkpointed:
            note(f"exported without activation checkpointing: {checkpointing.ADVICE}")
        return made

    def _type_of_parameters(self):
        types = {p.dtype for _, p in self.model.named_parameters()}
        if len(types) != 1 or not types <= set(TYPES_OF_PARAMETERS):
            raise Refused(
                "expected parameters of one type, float32 or float64, got "
                f"{', '.join(sorted(map(str, types)))}: "
                + ("--type float32 converts them" if self.has_values
                   else "make the module in one of these, because --no-values converts "
                   "no types")
                + ". Runs can compute in bfloat16 with parameters of float32, or round "
                "them to bfloat16 (weight_type(bf16) in the pipeline)"
            )
        return types.pop()

    def _export(self):
        dtype = self._type_of_parameters()
        ties.check_configurations(self.model)
        if self.has_values:
            refusals.check_buffers(self.model)
        # The entries about initial values: from a file (Given) if the model has values,
        # otherwise drawn from a distribution.
        starts = {
            name: {"start": "Given"} if self.has_values else initial.package_entry(p)
            for name, p in self.model.named_parameters()
        }
        self.builder = _Builder(self.model, dtype, self.mode, starts, is_converted=False)
        package = self._of_parameters(dtype)
        packages = [package]
        for other in self.types:
            if other == dtype:
                continue
            try:
                with dtypes.converted(self.model, other, self.mode) as conversion:
                    builder = _Builder(self.model, other, self.mode, starts, is_converted=True)
                    layers = builder.cut(conversion=conversion)
                    with dtypes.default_type(dtypes.of_loss(other)):
                        made = builder.package(layers)
            except Exception as error:  # often of the user's code
                reason = (
                    f"runs cannot compute in {dtypes.name_of(other)}, because the model "
                    f"cannot{line_of(error)}: {_first_line(error)}"
                )
                if self.is_strict:
                    raise Refused(reason) from error
                note(reason)
                continue
            if "divisible" in package:
                made["divisible"] = package["divisible"]
            packages.append(made)
        return packages

    def _of_parameters(self, dtype):
        """The package for the type of the parameters, after all checks of the model."""
        builder = self.builder
        examples = self.model.with_samples(builder.counts[0])
        by_samples = builder.cut(examples)
        returned = by_samples[0][-1].returned
        growth.check(examples, returned, by_samples[0][-1].probabilities)
        self.narrowed = by_samples[0][0].narrowed
        if self.narrowed:
            warn(precision.notice(self.narrowed, dtype))
        package = builder.package(by_samples)
        sizes.check(
            builder.kinds,
            [trace.entry for trace in builder.traced],
            [sizes.heaviest((t.made.forward, t.made.backward)) for t in builder.traced],
            package["type"],
        )
        if self.has_values:
            names = [names_of_layer(package, layer) for layer in package["layers"]]
            ties.check_values(self.model, names[0], names[-1])
        reasons = [sizes.fixed_boundary(by_samples, builder.counts)]
        if not growth.is_divisible(examples, returned):
            reasons.append(growth.INDIVISIBLE)
        for reason in filter(None, reasons):
            package["divisible"] = False
            warn(reason)
        return package

    def compile(self, package, compiler):
        """Compiles the graphs of the package for the type of the parameters with
        `compiler` (native.py). Adds the digests of the native code to the package."""
        self.builder.compile(package, compiler)


def _first_line(error):
    return (str(error).strip() or type(error).__name__).splitlines()[0]


class _Builder:
    """Makes the package for one type. `model` has parameters of this type. `starts` has
    the entries about the parameters' initial values, by name. `is_converted` says that
    the model has not run in this type."""

    def __init__(self, model, dtype, mode, starts, is_converted):
        self.model, self.dtype, self.mode, self.starts = model, dtype, mode, starts
        self.is_converted = is_converted
        self.allowed = operators.allowed()
        self.counts = affine.counts_for(model.samples())
        self.kinds, self.known = [], {}
        self.traced = []  # for each kind: its Trace for the first number of samples
        # If a parameter has several names, the first one is used.
        self.names = {id(p): name for name, p in model.named_parameters()}

    def cut(self, examples=None, conversion=None):
        """The layers of the model for each of `counts`. For the arguments, see cut.cut."""
        models = [self.model.with_samples(count, self.mode) for count in self.counts]
        by_samples = [self._cut(each, examples, conversion) for each in models]
        if len({layers[0].dropped for layers in by_samples}) > 1:
            raise Refused(
                "expected dropout of tensors whose first dimension grows with the "
                "samples, but with other numbers of them it does not"
            )
        return by_samples

    def package(self, by_samples):
        """The package of the layers `by_samples`, which `cut` made."""
        layers, names = [], []
        for layer in zip(*by_samples, strict=True):
            entry, full = self._layer(layer)
            layers.append(entry)
            names.append(full)
        package = {
            "version": VERSION,
            "producer": f"torch {torch.__version__.split('+')[0]}",
            "type": graphs.TYPES[self.dtype],
            "inputs": list(self.model.inputs),
            "labels": list(self.model.labels),
            "kinds": self.kinds,
            "layers": layers,
        }
        if len(by_samples[0][-1].labels) > len(self.model.labels):
            package["labels"].append(SCALES)
        if tied := self._tied(names):
            package["tied"] = tied
        return package

    def _cut(self, model, examples, conversion):
        """The layers of `model`. Its examples have the number of samples to trace."""
        given, count = self.model.samples(), model.samples()
        try:
            return cut.cut(model, examples, conversion)
        except Exception as error:  # often of the user's code
            # Examples of one sample are traced with two samples first. A refusal then
            # has another reason than their number.
            is_first = count == self.counts[0]
            if count == given or is_first and isinstance(error, Refused):
                raise
            raise Refused(
                "expected a model that takes every number of samples, got one that takes "
                f"{given} but not {count}{line_of(error)}: {_first_line(error)}"
            ) from error

    def compile(self, package, compiler):
        samples = self.counts[0]
        for number, (kind, trace) in enumerate(zip(self.kinds, self.traced)):
            first = [layer["kind"] for layer in package["layers"]].index(number)
            path = package["layers"][first]["path"].removesuffix(".")
            name = f"layer {first}" + (f" ({path})" if path else "")
            made = (trace.made, trace.numbers["forward"], trace.numbers["backward"])
            if digest := compiler.compile(*made, name):
                kind["graphs"]["native"] = [{"samples": samples, "sha256": digest}]

    def _argument(self, like, requires_grad=False):
        """A tensor to trace with, of the shape and type of `like`."""
        with self.mode or contextlib.nullcontext():
            made = torch.zeros(tuple(like.shape), dtype=like.dtype)
            return made.requires_grad_(requires_grad)

    def _layer(self, layer):
        """The package's entry of a layer, and the names of its parameters. `layer` is a
        list: the same layer, traced for each number of samples."""
        names = [self.names[id(p)] for p in layer[0].module.parameters()]
        path = layer[0].prefix + "." if layer[0].prefix else ""
        if not all(name.startswith(path) for name in names):
            path = ""
        decays = [self.model.decay_of(name) for name in names]
        key = (self._key(layer), str(decays))
        if key in self.known:
            return {"kind": self.known[key], "path": path}, names
        parameters = [
            {
                "name": name.removeprefix(path),
                "shape": graphs.shape_of(p)["shape"],
                **self.starts[name],
                **decay,
            }
            for name, p, decay in zip(names, layer[0].module.parameters(), decays)
        ]
        traces = [self._trace(each) for each in layer]
        if self.is_converted:
            # For other numbers of samples, the operators are the same.
            for function in (traces[0].made.forward, traces[0].made.backward):
                dtypes.check_operators(function.graph)
        kind = {
            "parameters": parameters,
            "constants": [self._constant(*c) for c in layer[0].module.named_buffers()],
            "graphs": affine.merge([t.entry for t in traces], self.counts, traces[0].where),
        }
        digest = hashlib.sha256(json.dumps(kind).encode()).digest()
        if digest not in self.known:
            self.known[digest] = len(self.kinds)
            self.kinds.append(kind)
            self.traced.append(traces[0])
        self.known[key] = self.known[digest]
        return {"kind": self.known[digest], "path": path}, names

    def _key(self, layer):
        """A digest that is equal for equal layers. It is computed before they are
        differentiated, because differentiating a layer takes a tenth of a second."""
        parts = []
        for one in layer:
            numbers = {n: i for i, n in enumerate(one.module.graph.nodes)}
            for node in one.module.graph.nodes:
                arguments = torch.fx.map_arg(
                    (node.args, dict(node.kwargs)), lambda n: f"%{numbers[n]}"
                )
                target = node.target if node.op == "call_function" else node.op
                if node.op == "get_attr":
                    prefix = one.prefix.replace(".", "/") + "/"
                    target = f"get_attr {node.target.removeprefix(prefix)}"
                parts.append(f"{target} {arguments}")
            parts += [f"{tuple(v.shape)} {v.dtype}" for v in (*one.inputs, *one.labels)]
            parts.append(str(one.differentiable))
            parts += [
                f"{tuple(p.shape)} {self.starts[self.names[id(p)]]}"
                for p in one.module.parameters()
            ]
            parts += [
                hashlib.sha256(self._bytes_of(b)).hexdigest() for b in one.module.buffers()
            ]
            parts += [
                self.names[id(p)].removeprefix(one.prefix)
                for p in one.module.parameters()
            ]
        return hashlib.sha256("\n".join(parts).encode()).digest()

    @staticmethod
    def _bytes_of(tensor):
        return tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()

    def _constant(self, name, tensor):
        if bytes_of(tensor) > LARGEST_CONSTANT:
            raise Refused(
                f"expected buffers and frozen parameters of at most "
                f"{LARGEST_CONSTANT} bytes, got one of {bytes_of(tensor)}, "
                f"'{name.replace('/', '.')}'"
            )
        return {**graphs.shape_of(tensor), "bytes": list(self._bytes_of(tensor))}

    def _trace(self, layer):
        made = joint.differentiate(
            layer.module,
            [
                self._argument(v, d)
                for v, d in zip(layer.inputs, layer.differentiable)
            ],
            [self._argument(v) for v in layer.labels],
        )
        parameters = [name for name, _ in layer.module.named_parameters()]
        for function in (made.forward, made.backward):
            for port in [*function.inputs, *function.outputs]:
                if port.role in ("Parameter", "WeightGradient"):
                    port.index = parameters.index(made.parameters[port.index])
        buffers = [name for name, _ in layer.module.named_buffers()]
        for function in (made.forward, made.backward):
            for port in function.inputs:
                if port.role == "Constant":
                    port.index = buffers.index(made.constants[port.index])
        gradients = {p.index for p in made.backward.outputs if p.role == "WeightGradient"}
        if len(gradients) < len(parameters):
            missing = [n for i, n in enumerate(parameters) if i not in gradients]
            raise Refused(
                "expected a gradient for each parameter that is used, but the loss is "
                "not differentiable in " + ", ".join(n.replace("/", ".") for n in missing)
            )
        sites = calls.number_sites(made.forward)
        forward, forward_numbers = graphs.encode(made.forward, self.allowed, sites)
        backward, numbers = graphs.encode(made.backward, self.allowed, sites)
        values = {
            role: [p.node.meta["val"] for p in made.forward.outputs if p.role == role]
            for role in ("Output", "Saved")
        }
        of_forward = [p.node for p in made.forward.outputs]
        first = [p.node for p in made.backward.outputs if p.role != "WeightGradient"]
        if any(p.role == "Output" for p in made.backward.outputs):
            # A forward of training leaves the loss out.
            of_forward = [p.node for p in made.forward.outputs if p.role == "Saved"]
        whole = flops_of(made.backward)
        inputs = flops_of(made.backward, [*first, *made.kept]) if first else 0
        more = {}
        if layer.weight is not None:
            labels = [self._argument(v) for v in layer.labels]
            function = joint.trace_label_weights(layer.weight, labels, buffers)
            more["weight"], _ = graphs.encode(function, self.allowed)
        if layer.logits is not None:
            more |= self._logits(layer, parameters, buffers)
        entry = more | {
            "inputs": [graphs.shape_of(v) for v in layer.inputs],
            "differentiable": [int(d) for d in layer.differentiable],
            "labels": [graphs.shape_of(v) for v in layer.labels],
            "outputs": [graphs.shape_of(v) for v in values["Output"]],
            "saved": [graphs.shape_of(v) for v in values["Saved"]],
            "forward": forward,
            "backward": backward,
            "kept": [numbers[node] for node in made.kept],
            "kept_shapes": [graphs.shape_of(node.meta["val"]) for node in made.kept],
            "forward_flops": flops_of(made.forward, of_forward),
            "input_gradient_flops": inputs,
            "weight_gradient_flops": max(whole - inputs, 0),
        }
        return Trace(entry, made, {"forward": forward_numbers, "backward": numbers})

    def _logits(self, layer, parameters, buffers):
        differentiated = joint.differentiate(
            layer.logits,
            [self._argument(v, d) for v, d in zip(layer.inputs, layer.differentiable)],
            [],
        )
        function = joint.forward_without_saved(differentiated)
        names = {
            "Parameter": (parameters, differentiated.parameters),
            "Constant": (buffers, differentiated.constants),
        }
        for port in function.inputs:
            if port.role in names:
                of_layer, own = names[port.role]
                port.index = of_layer.index(own[port.index])
        made, _ = graphs.encode(function, self.allowed)
        (result,) = function.outputs
        return {"logits": made, "vocabulary": int(result.node.meta["val"].shape[-1])}

    def _tied(self, names):
        """The index of the tied parameter in the first layer and in the last layer.
        None if the layers share no parameter."""
        seen, tied = {}, None
        for number, of_layer in enumerate(names):
            for index, name in enumerate(of_layer):
                if name not in seen:
                    seen[name] = (number, index)
                    continue
                first, position = seen[name]
                if first != 0 or number != len(names) - 1 or tied:
                    raise Refused(
                        "expected at most one shared parameter, of the first and the "
                        f"last layer, but layers {first} and {number} share '{name}'"
                    )
                tied = {"first": position, "last": index}
        return tied


def names_of_layer(package, layer):
    """The names of the parameters that a layer uses."""
    parameters = package["kinds"][layer["kind"]]["parameters"]
    return [layer["path"] + parameter["name"] for parameter in parameters]


def names_of(package):
    """The names of the parameters that the layers use."""
    return {n for layer in package["layers"] for n in names_of_layer(package, layer)}
