# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes a traced graph as an entry of a package (runtime/program/package.fbs)."""

import math
import operator

import torch

from . import calls, operators
from .model import Refused
from .traced import where

TYPES = {
    torch.bool: "Boolean", torch.uint8: "UInt8", torch.int8: "Int8",
    torch.int16: "Int16", torch.int32: "Int32", torch.int64: "Int64",
    torch.float16: "Float16", torch.bfloat16: "BFloat16",
    torch.float32: "Float32", torch.float64: "Float64",
}  # fmt: skip
# Operators that return their argument. Only autograd needs them.
SAME = {torch.ops.aten.detach.default, torch.ops.aten.alias.default}
# In the order of the enum c10::MemoryFormat.
MEMORY_FORMATS = [
    torch.contiguous_format, torch.preserve_format, torch.channels_last,
    torch.channels_last_3d,
]  # fmt: skip


def type_name(dtype):
    if dtype not in TYPES:
        raise Refused(f"expected tensors of one of {', '.join(map(str, TYPES))}, got {dtype}")
    return TYPES[dtype]


def shape_of(value):
    if value.numel() == 0:
        raise Refused(
            "expected tensors with elements, got a parameter, a constant, or a value "
            f"that is saved or passed on, of the shape {list(value.shape)}"
        )
    return {"type": type_name(value.dtype), "shape": [int(n) for n in value.shape]}


def number(value):
    """A float for JSON. JSON has no infinities or NaN, so these become strings, which
    the reader accepts."""
    value = float(value)
    return value if math.isfinite(value) else str(value)


def encode_argument(value, kind, numbers):
    """A package's entry for an argument. `kind` is its type in the operator's schema."""
    kind = str(kind).removeprefix("Optional[").removesuffix("]")
    if isinstance(value, torch.fx.Node):
        return {"kind": "Value", "values": [numbers[value]]}
    if value is None or isinstance(value, (torch.device, torch.layout)):
        return {"kind": "None"}  # the run decides the device
    if isinstance(value, bool):
        return {"kind": "Boolean", "integers": [int(value)]}
    if isinstance(value, torch.dtype):
        return {"kind": "Type", "type": type_name(value)}
    if isinstance(value, torch.memory_format):
        return {"kind": "Integer", "integers": [MEMORY_FORMATS.index(value)]}
    if isinstance(value, int):
        return {"kind": "Integer", "integers": [value]}
    if isinstance(value, float):
        return {"kind": "Number", "numbers": [number(value)]}
    if isinstance(value, str):
        return {"kind": "Text", "text": value}
    if isinstance(value, (list, tuple)):
        if "Tensor" in kind:
            return {
                "kind": "Values",
                "values": [-1 if v is None else numbers[v] for v in value],
            }
        if value and all(isinstance(v, bool) for v in value):
            return {"kind": "Booleans", "integers": [int(v) for v in value]}
        if "float" in kind:
            return {"kind": "Numbers", "numbers": [number(v) for v in value]}
        if all(isinstance(v, int) for v in value):
            return {"kind": "Integers", "integers": list(value)}
    raise Refused(f"cannot export {value!r}, a {kind}")


def _conversion(source, dtype, result):
    """The call that converts value `source` to another type, as value `result`."""
    operator_ = torch.ops.aten._to_copy.default
    given = {"dtype": dtype}
    arguments = [{"kind": "Value", "values": [source]}]
    for argument in operator_._schema.arguments[1:]:
        value = given.get(argument.name, argument.default_value)
        arguments.append(encode_argument(value, argument.type, {}))
    return {
        "operator": operator_._schema.name,
        "overload": operator_._schema.overload_name,
        "arguments": arguments,
        "results": [result],
    }


def _to_convert(node):
    """The integer inputs of `node` that must be converted to its type before it runs.
    An operator that makes floating-point numbers from integers makes them in the
    default type, which is float32 in a run. So if the traced result has another
    floating-point type, the inputs need a conversion."""
    made = node.meta["val"]
    given = [n for n in node.all_input_nodes if isinstance(n.meta["val"], torch.Tensor)]
    if (
        not isinstance(made, torch.Tensor)
        or not made.is_floating_point()
        or made.dtype == torch.float32
        or any(n.meta["val"].is_floating_point() for n in given)
        or any(isinstance(value, torch.dtype) for value in node.kwargs.values())
    ):
        return []
    return given


def _described(node, sites):
    """The name and the overload of the operator of a call, and for each argument its
    name, type and value."""
    if own := calls.described(node, sites):
        return own[0], "", own[1]
    schema, arguments = node.target._schema, []
    for i, argument in enumerate(schema.arguments):
        if i < len(node.args):
            value = node.args[i]
        elif argument.name in node.kwargs:
            value = node.kwargs[argument.name]
        else:
            value = argument.default_value if argument.has_default_value() else None
        if argument.name == "dtype" and value is None and not node.all_input_nodes:
            # State the type: without tensor inputs, the result has the exporter's default
            # type, which a run does not know.
            value = node.meta["val"].dtype
        arguments.append((argument.name, argument.type, value))
    return schema.name, schema.overload_name, arguments


def encode(function, allowed, sites=None):
    """The package's entry for the graph of a joint.Function, and the value number of each
    node. Refuses operators that are not in `allowed`. `sites` are the sites of the calls
    with dropout (calls.number_sites); by default, those of this graph."""
    sites = calls.number_sites(function) if sites is None else sites
    numbers, entries, results_of = {}, [], {}
    for port in function.inputs:
        numbers[port.node] = len(numbers)
    count = len(numbers)
    for node in function.graph.nodes:
        if node.op in ("placeholder", "output"):
            continue
        if node.op != "call_function":
            raise Refused(f"cannot run '{node.op} {node.target}'{where(node)}")
        if node.target is operator.getitem:
            source, index = node.args
            numbers[node] = count
            results_of[source][index] = count
            count += 1
            continue
        if node.target in SAME:
            numbers[node] = numbers[node.args[0]]
            continue
        name, overload, given = _described(node, sites)
        if name not in allowed:
            raise Refused(
                f"expected one of the operators that packages may call "
                f"(operators.txt), got {name}{where(node)}: "
                f"{operators.advice_of(node.target)}"
            )
        known = numbers
        for source in _to_convert(node):
            converted = node.meta["val"].dtype
            entries.append(_conversion(numbers[source], converted, count))
            known = {**known, source: count}
            count += 1
        arguments = []
        for argument, kind, value in given:
            try:
                arguments.append(encode_argument(value, kind, known))
            except Refused as refused:
                raise Refused(
                    f"{refused}, which is '{argument}' of {name}{where(node)}"
                ) from None
        value = node.meta["val"]
        if isinstance(value, (list, tuple)):
            results = results_of[node] = [-1] * calls.count_of_results(node)
        else:
            numbers[node] = count
            results = [count]
            count += 1
        entries.append(
            {
                "operator": name,
                "overload": overload,
                "arguments": arguments,
                "results": results,
            }
        )

    def ports(list_of):
        return [
            {"value": numbers[p.node], "index": p.index, "role": p.role}
            for p in list_of
        ]

    graph = {
        "values": count,
        "inputs": ports(function.inputs),
        "calls": entries,
        "outputs": ports(function.outputs),
    }
    return graph, numbers
