#!/usr/bin/env bash
# On a CPU, torch's fused attention computes wrong gradients for a token whose keys all
# have a large negative number in the mask. With 16 keys they are 16 times too large.
#
# Version: torch 2.11.0 (Python 3.11).
# Behaviour: A float mask often hides keys by -1e9 or by the smallest float32. If it has
#   this number for every key of a token, the scores of the token round to the same
#   number, and the output is the mean of the values, as documented. The fused kernel
#   saves the logarithm of the sum of n equal exponentials. Beside 1e9, the logarithm of
#   n is lost. So its backward takes each probability for 1, and not for 1 / n. The
#   backward of the unfused attention is right.
# Seen on 2026-12-01 (16 keys; the gradient of the values of such a token, fused over
#   unfused):
#   mask -10000: 1.000
#   mask -1000000000.0: 16.000
#   mask -3.4028234663852886e+38: 16.000
# Why it matters: Padded sequences have such tokens. If a model reads their outputs, for
#   example in a mean over all positions, it trains on wrong gradients.
# What chimera does: Before it calls the kernel, it subtracts such a number from all keys
#   of the token, which changes no probability.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --no-compile torch==2.11.0 numpy==2.4.6
"$work/venv/bin/python" -W ignore - <<'PYTHON'
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

torch.manual_seed(0)
KEYS, TOKEN = 16, 3
query, key, value = (torch.randn(1, 1, KEYS, 8) for _ in range(3))


def gradient_of_values(backend, mask):
    values = value.clone().requires_grad_()
    with sdpa_kernel(backend):
        output = scaled_dot_product_attention(query, key, values, attn_mask=mask)
    output[0, 0, TOKEN].sum().backward()
    return values.grad.sum().item()


for number, wanted in ((-10000, 1), (-1e9, KEYS), (torch.finfo(torch.float32).min, KEYS)):
    mask = torch.zeros(KEYS, KEYS)
    mask[TOKEN] = number
    fused = gradient_of_values(SDPBackend.FLASH_ATTENTION, mask)
    ratio = fused / gradient_of_values(SDPBackend.MATH, mask)
    print(f"mask {number}: {ratio:.3f}")
    assert abs(ratio - wanted) < 0.01, f"changed: expected {wanted}"
PYTHON
