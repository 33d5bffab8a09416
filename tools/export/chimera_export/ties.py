# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Finds parameters that were tied and have become separate.

A tied parameter is one nn.Parameter under two names. After torch.export.load, it is two
nn.Parameters with one memory. After a cast or a copy, it is two nn.Parameters with
equal values. Autograd would train the two separately. Parameters with one memory are
tied again here. Parameters with equal values may be intended. They are refused if one
is in the first layer and one in the last layer, because tied parameters are usually
there. For other layers there is only a warning.
"""

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from .model import Refused, WithLoss
from .notices import warn
from .traced import own_name

FEW = 16  # a parameter with fewer elements may be equal to another by chance
UNTIED = "or say Model(…, untied=True) if they are two"


def _extent(parameter):
    """The range of bytes that a parameter has in its memory, as (first, end)."""
    last = sum((n - 1) * s for n, s in zip(parameter.shape, parameter.stride()))
    first = parameter.storage_offset()
    size = parameter.element_size()
    return first * size, (first + last + 1) * size


def tie_shared_memory(model):
    """If two parameters are the same memory, makes them one parameter. Refuses
    parameters that share only a part of their memory."""
    by_memory, same = {}, {}
    for name, parameter in WithLoss(model).named_parameters():
        if not parameter.numel():
            continue
        known = by_memory.setdefault(StorageWeakRef(parameter.untyped_storage()), {})
        for other, its in known.items():
            if (
                _extent(parameter) == _extent(its)
                and parameter.shape == its.shape
                and parameter.stride() == its.stride()
                and parameter.dtype == its.dtype
                and parameter.requires_grad == its.requires_grad
            ):
                same[id(parameter)] = its
                print(f"tied: {own_name(name)} and {own_name(other)} share their memory")
                break
            first, last = _extent(parameter)
            begin, end = _extent(its)
            if first < end and begin < last:
                raise Refused(
                    f"expected parameters with memory of their own, but "
                    f"'{own_name(name)}' and '{own_name(other)}' share some: tie them, so "
                    "that they are one parameter, or give one a copy"
                )
        else:
            known[name] = parameter
    for module in WithLoss(model).modules():
        for leaf, parameter in module._parameters.items():
            if id(parameter) in same:
                module._parameters[leaf] = same[id(parameter)]


def check_configurations(model):
    """Refuses a model of transformers whose configuration says that its head is tied,
    although it is not."""
    if model.untied:
        return
    names = {id(p): own_name(n) for n, p in WithLoss(model).named_parameters()}
    for module in model.module.modules():
        if not getattr(getattr(module, "config", None), "tie_word_embeddings", False):
            continue
        found = []
        for which in ("get_input_embeddings", "get_output_embeddings"):
            try:
                found.append(getattr(module, which)().weight)
            except (AttributeError, NotImplementedError, TypeError):
                break
        if len(found) == 2 and found[0] is not found[1] and found[0].shape == found[1].shape:
            first, last = (names.get(id(p), "?") for p in found)
            raise Refused(
                f"expected '{first}' and '{last}' to be one parameter, because the "
                "configuration says tie_word_embeddings, but they are two: call the "
                f"module's tie_weights(), {UNTIED}"
            )


def _value_key(parameter):
    """A key that tells most parameters apart without a comparison of all elements. None
    if a parameter has too few elements, or if all of its elements are equal."""
    flat = parameter.detach().reshape(-1)
    some = flat[:: max(flat.numel() // FEW, 1)].tolist()
    if len(some) < FEW or len(set(some)) == 1 and bool((flat == flat[0]).all()):
        return None
    return tuple(parameter.shape), *some


def check_values(model, first, last):
    """Refuses equal parameters if one is in the first layer and one in the last layer.
    `first` and `last` are the names of these layers' parameters. Warns of other equal
    parameters."""
    groups = {}
    for name, parameter in model.named_parameters():
        if key := _value_key(parameter):
            for other, its in groups.setdefault(key, []):
                if not torch.equal(parameter, its):
                    continue
                if (
                    not model.untied
                    and ({name, other} & set(first))
                    and ({name, other} & set(last))
                ):
                    raise Refused(
                        f"expected '{other}' and '{name}' to be one parameter, because "
                        "they have equal values, but they are two: a cast, a copy or "
                        "torch.export.load may have divided a tied one. Tie them again, "
                        f"like head.weight = embedding.weight, {UNTIED}"
                    )
            groups[key].append((name, parameter))
    equal = [
        names for each in groups.values()
        if len(names := [n for n, p in each if torch.equal(p, each[0][1])]) > 1
    ]  # fmt: skip
    if equal and not model.untied:
        more = f", and {len(equal) - 1} more groups" if len(equal) > 1 else ""
        shown = ", ".join(equal[0][:3]) + (" and others" if len(equal[0]) > 3 else "")
        warn(
            f"{shown} have equal values{more}: they are trained separately. To tie them, "
            "make them one parameter object with several names"
        )
