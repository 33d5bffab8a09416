#!/usr/bin/env bash
# torch 2.11 counts no FLOPs for attention on a CPU. torch 2.15 counts them, and
# refuses the formula that a program adds for the older version.
#
# Versions: torch 2.11.0 and 2.15.0 (Python 3.11).
# Behaviour: scaled_dot_product_attention on a CPU is one operator. Only the newer
#   torch.utils.flop_counter has a formula for it. There, register_flop_formula
#   raises if it is called for this operator.
# Seen on 2026-11-27 (two heads, 8 tokens, width 4 per head):
#   torch 2.11.0: 0 FLOPs counted; own formula: registered
#   torch 2.15.0: 2048 FLOPs counted; own formula: duplicate registrations for
#     aten._scaled_dot_product_flash_attention_for_cpu
# Why it matters: Tools cut a model into stages and compute utilisation by such
#   counts. With the older version attention is free, without a warning. A module
#   that registers the formula cannot be imported with the newer version.
# What chimera does: The exporter registers a formula only if torch has none.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for version in 2.11.0 2.15.0; do
  python3 -m venv "$work/venv"
  "$work/venv/bin/pip" install -q --no-compile "torch==$version" \
    numpy==2.4.6
  "$work/venv/bin/python" -W ignore - <<'PYTHON'
import torch
from torch.utils.flop_counter import FlopCounterMode, register_flop_formula

query = torch.randn(1, 2, 8, 4)
with FlopCounterMode(display=False) as counter:
    torch.nn.functional.scaled_dot_product_attention(query, query, query)
count = counter.get_total_flops()
operator = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
try:
    register_flop_formula(operator)(lambda *shapes, **options: 0)
    own = "registered"
except RuntimeError as error:
    own = str(error)
print(f"torch {torch.__version__}: {count} FLOPs counted; own formula: {own}")
if torch.__version__ < "2.15":
    assert (count, own) == (0, "registered"), "changed: 2.11 has a formula"
else:
    # Two products per head: each 2 * 8 * 8 * 4 operations.
    assert count == 2 * 2 * 2 * 8 * 8 * 4, "changed: another count"
    assert own.startswith("duplicate registrations"), "changed: no refusal"
PYTHON
  rm -rf "$work/venv"
done
