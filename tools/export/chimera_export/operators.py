# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Refuses, at export, operators and arguments that a run would refuse.

The runtime has a list of operators (operators.txt), and checks some arguments before it
calls one (Executable.cpp, Checks.cpp and CheckPackage.cpp in the runtime). A model that
it would refuse is refused here, with the user's line that calls the operator."""

import pathlib

import torch

from .model import Refused
from .traced import arguments_of, where

aten = torch.ops.aten
# Advice by the beginning of an operator's name.
ADVICE = {
    "aten::embedding_renorm_": "an embedding with max_norm changes its own weight; scale "
    "what it returns",
    "aten::_embedding_bag": "F.embedding and a sum or a mean do the same",
    "aten::_sparse": "packages have no sparse tensors",
    "aten::_fft": "packages have no complex numbers",
    "aten::_grouped_mm": "transformers' experts_implementation='batched_mm' has a form "
    "that can be exported",
    "aten::as_strided_scatter": "view(), select() and slices say which elements are meant",
}


def allowed():
    """The operators that the runtime runs, from its own list."""
    installed = pathlib.Path(__file__).parent / "operators.txt"
    root = pathlib.Path(__file__).resolve().parents[3]
    listed = root / "runtime/model/graph/operators.txt"
    text = (installed if installed.exists() else listed).read_text()
    return {line.strip() for line in text.splitlines()
            if line.strip() and not line.startswith("#")}  # fmt: skip


def advice_of(target):
    """Advice for a user whose model has this operator: what to write instead."""
    name = target.name()
    return next((text for start, text in ADVICE.items() if name.startswith(start)),
                "write it without")  # fmt: skip


def _is_complex(node):
    value = node.meta.get("val")
    return isinstance(value, torch.Tensor) and value.is_complex()


def check_call(node):
    """Refuses a call that a run would refuse, or whose gradient a run would refuse."""
    if _is_complex(node) or any(_is_complex(source) for source in node.all_input_nodes):
        raise Refused(
            f"expected tensors of real numbers, got complex ones{where(node)}: packages "
            "have none. Compute with both parts: a rotation is a product with cosines "
            "and one with sines"
        )
    if node.target is aten.embedding.default:
        given = arguments_of(node)
        if given["scale_grad_by_freq"]:
            raise Refused(
                f"expected an embedding whose gradient is not scaled by how often a token "
                f"occurs, got scale_grad_by_freq=True{where(node)}: leave it out"
            )
        if given["sparse"]:
            raise Refused(
                f"expected an embedding with a dense gradient, got sparse=True"
                f"{where(node)}: leave it out, the values are the same"
            )
