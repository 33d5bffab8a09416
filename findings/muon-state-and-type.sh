#!/usr/bin/env bash
# Muon's state is an average although its formula says a sum, and even an update in
# float64 is computed in bfloat16.
#
# Versions: torch 2.11.0 (Python 3.11).
# Behaviour: The formula of torch.optim.Muon adds each gradient to momentum × buffer.
#   The optimizer itself moves the buffer by (1 - momentum) of the way to the gradient.
#   So the saved momentum_buffer is smaller by the factor 1 - momentum. Updates agree,
#   because they are normalised. The orthogonalisation casts to bfloat16, whatever the
#   type of the parameter.
# Seen on 2026-11-28 (equal gradients, momentum 0.9):
#   buffer / gradient after two steps: 0.19 (the formula gives 1.90)
#   float64: the update differs from the same computation in float64 by 1.4e-02
# Why it matters: A state that follows the formula is resumed with a tenth of its
#   weight. Two implementations cannot be compared beyond two digits.
# What chimera does: the state is the average, so that checkpoints agree with
#   PyTorch's; it orthogonalises in the type in which the layers compute. Its tests
#   replace PyTorch's cast.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --no-compile torch==2.11.0 numpy==2.4.6
"$work/venv/bin/python" -W ignore - <<'PYTHON'
import torch

MOMENTUM = 0.9
formula = r"B_t \leftarrow \mu B_{t-1} + g_t"
assert formula in torch.optim.Muon.__doc__, "changed: the formula in the documentation"
torch.manual_seed(0)
gradient = torch.randn(16, 24, dtype=torch.float64)


def update(steps):
    """The last change of a weight of zeros by equal gradients, and the buffer."""
    weight = torch.nn.Parameter(torch.zeros_like(gradient))
    optimizer = torch.optim.Muon([weight], lr=1.0, momentum=MOMENTUM, weight_decay=0.0)
    for _ in range(steps):
        weight.grad = gradient.clone()
        before = weight.detach().clone()
        optimizer.step()
    return before - weight.detach(), optimizer.state[weight]["momentum_buffer"]


change, buffer = update(2)
ratio = (buffer / gradient).mean().item()
print(f"buffer / gradient after two steps: {ratio:.2f} (the formula gives {1 + MOMENTUM:.2f})")
assert abs(ratio - (1 - MOMENTUM**2)) < 1e-9, "changed: the buffer is not an average"

own = torch.Tensor.bfloat16
torch.Tensor.bfloat16 = lambda tensor: tensor.clone()
exact, _ = update(2)
torch.Tensor.bfloat16 = own
difference = ((change - exact).abs().max() / exact.abs().max()).item()
print(f"float64: the update differs from the same computation in float64 by {difference:.1e}")
assert difference > 1e-3, "changed: float64 is not cast to bfloat16"
PYTHON
