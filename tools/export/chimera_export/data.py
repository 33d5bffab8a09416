# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Finds inputs and labels of a model that a text or tokens do not have. It has the same
rules as runtime/data/TextData.cpp."""

import torch

TOKENS, LABELS, FOLLOWS = "input_ids", "labels", "next_sentence_label"
# The names of fields with one number for each token. FOLLOWS has one for each sample.
OF_TOKENS = {TOKENS, "token_type_ids", "attention_mask", "position_ids", LABELS}
TYPES = {
    torch.bool, torch.uint8, torch.int32, torch.int64, torch.float32, torch.float64,
}  # fmt: skip


def notice(model):
    """The text of a note about the first input or label of `model` that needs arrays as
    data; empty if there is none."""
    name, tensor = _first_unknown(model)
    if name is None:
        return ""
    shape, dtype = list(tensor.shape[1:]), str(tensor.dtype).removeprefix("torch.")
    return (
        f"tokens have no '{name}' ({dtype} of shape {shape} a sample): train on arrays, "
        f"with chimera-run --data {name}=FILE.npy and so for each input and label, or "
        "--data FILE.safetensors"
    )


def _first_unknown(model):
    found = _name_of_tokens(model.inputs, TOKENS)
    context = None if found is None else model.inputs[found].shape[1]
    for fields, tokens in ((model.inputs, TOKENS), (model.labels, LABELS)):
        found = _name_of_tokens(fields, tokens)
        for name, tensor in fields.items():
            shape = () if name == FOLLOWS else (context,)
            known = name in OF_TOKENS or name in (found, FOLLOWS)
            if not known or tensor.dtype not in TYPES or tensor.shape[1:] != shape:
                return name, tensor
    return None, None


def _name_of_tokens(fields, name):
    """The name of the field with the tokens (or their labels): `name`, or the only one.
    None if there is no such field."""
    if name not in fields and len(fields) == 1:
        (name,) = fields
    is_tokens = name in fields and fields[name].dtype == torch.int64 and fields[name].dim() == 2
    return name if is_tokens else None
