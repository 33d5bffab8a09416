#!/usr/bin/env bash
# torch 2.11 computes F.grouped_mm in float32, and cannot export it: its fake tensors
# take bfloat16 only. torch 2.15 exports it.
#
# Versions: torch 2.11.0 and 2.15.0 (Python 3.11).
# Behaviour: The kernel of a CPU computes the product of groups of rows with a matrix
#   each, as mixtures of experts need it, in float32 and in bfloat16. In 2.11 the
#   function that gives the shape of the result accepts bfloat16 alone.
# Seen on 2026-11-28:
#   2.11.0 float32: computes True, exports Expected inputs of BF16 type
#   2.11.0 bfloat16: computes True, exports True
#   2.15.0 float32: computes True, exports True
#   2.15.0 bfloat16: computes True, exports True
# Why it matters: transformers' mixtures of experts call it by default. Such a model
#   runs in float32, and its export ends with an error about a type that the model
#   does not use.
# What chimera does: examples/models/huggingface.py chooses experts that are computed
#   by a batched product. The operator is none of those that a package may call, with
#   either version, and the exporter says how to choose other experts.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for version in 2.11.0 2.15.0; do
  python3 -m venv "$work/venv"
  "$work/venv/bin/pip" install -q --no-compile "torch==$version" numpy==2.4.6
  "$work/venv/bin/python" -W ignore - <<'PYTHON'
import logging

import torch
from torch.nn import functional as F

logging.disable()  # torch logs the error of 2.11 with its traceback
version = torch.__version__.split("+")[0]


class Experts(torch.nn.Module):
    def forward(self, rows, matrices, ends):
        return F.grouped_mm(rows, matrices, offs=ends)


for type_ in torch.float32, torch.bfloat16:
    # Rows 0 to 3 belong to the first expert, rows 4 to 7 to the second.
    inputs = (torch.randn(8, 16, dtype=type_), torch.randn(2, 16, 16, dtype=type_),
              torch.tensor([4, 8], dtype=torch.int32))
    rows, matrices, _ = inputs
    expected = torch.cat([rows[:4] @ matrices[0], rows[4:] @ matrices[1]])
    near = torch.allclose(Experts()(*inputs), expected, rtol=0.02, atol=0.02)
    try:
        exports = torch.export.export(Experts(), inputs) is not None
    except RuntimeError as error:
        exports = "Expected inputs of BF16 type" if "BF16 type" in str(error) else error
    name = str(type_).split(".")[1]
    print(f"{version} {name}: computes {near}, exports {exports}")
    refused = version == "2.11.0" and type_ == torch.float32
    assert near, "changed: the product is another one"
    assert exports == ("Expected inputs of BF16 type" if refused else True), "changed"
PYTHON
  rm -rf "$work/venv"
done
