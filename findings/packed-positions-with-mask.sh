#!/usr/bin/env bash
# Positions that begin again keep packed texts apart only if there is no mask.
#
# Versions: transformers 5.24.0 with torch 2.11.0 (Python 3.11).
# Behaviour: Several texts in one row are told apart by position_ids that begin
#   again at 0. If the model also gets an attention_mask, even one of ones, it does
#   not look at the positions: each text then attends to those before it, without
#   a warning.
# Seen on 2026-11-28 (a Llama of two layers, two texts of 8 tokens in a row):
#   positions alone: the second text's logits differ by 6e-08
#   positions and a mask of ones: they differ by 0.15
# Why it matters: Collators often make a mask. Packed fine-tuning then trains on
#   texts that see their neighbours.
# What chimera does: chimera-samples writes packed rows with positions and no mask;
#   --within-documents begins positions again only for models without a mask.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --no-compile torch==2.11.0 \
  transformers==5.24.0 numpy==2.4.6
HF_HUB_OFFLINE=1 "$work/venv/bin/python" -W ignore - <<'PYTHON'
import torch
from transformers import LlamaConfig, LlamaForCausalLM

torch.manual_seed(0)
model = LlamaForCausalLM(LlamaConfig(
    vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=2,
    num_attention_heads=4, use_cache=False, bos_token_id=0, eos_token_id=0)).eval()
first, second = torch.randint(0, 64, (2, 1, 8))
packed = torch.cat([first, second], 1)
positions = torch.arange(8).repeat(2)[None]
ones = torch.ones_like(packed)


def difference(**inputs):
    """Of the second text's logits in the row from those of the text alone."""
    with torch.no_grad():
        together = model(packed, position_ids=positions, **inputs).logits[:, 8:]
        return (together - model(second).logits).abs().max().item()


without, given = difference(), difference(attention_mask=ones)
print(f"positions alone: the second text's logits differ by {without:.0e}")
print(f"positions and a mask of ones: they differ by {given:.2f}")
assert without < 1e-4, "changed: positions alone do not keep texts apart"
assert given > 1e-2, "changed: texts are kept apart beside a mask, too"
PYTHON
