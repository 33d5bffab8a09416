#!/usr/bin/env bash
# torch 2.15's trunc_normal_, orthogonal_, sparse_ and dirac_ do nothing to a tensor on
# the meta device. torch 2.11 calls the same operators there as on a CPU.
#
# Versions: torch 2.11.0 and 2.15.0 (Python 3.11).
# Behaviour: A dispatch mode sees every operator that torch.nn.init calls. Since 2.15
#   these four functions return before they call any, if the tensor is on the meta
#   device. normal_, uniform_, the Kaiming and the Xavier functions still call theirs.
# Seen on 2026-11-27, how many operators were called on the meta device:
#   2.11.0: normal_ 1 trunc_normal_ 5 orthogonal_ 9 sparse_ 21 dirac_ 21
#   2.15.0: normal_ 1 trunc_normal_ 0 orthogonal_ 0 sparse_ 0 dirac_ 0
# Why it matters: A module that is built on the meta device shows by these calls how
#   its weights begin, without memory for them. With 2.15 a weight that such a function
#   should set seems to keep what the layer's own constructor gave it.
# What chimera does: Without values (--no-values) the exporter makes the module on fake
#   tensors, which are not on the meta device for these functions. It records
#   trunc_normal_ as a whole, and names the parameters whose start it cannot draw.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for version in 2.11.0 2.15.0; do
  python3 -m venv "$work/venv"
  "$work/venv/bin/pip" install -q --no-compile "torch==$version" \
    numpy==2.4.6
  "$work/venv/bin/python" -W ignore - <<'PYTHON'
import torch
from torch.nn import init
from torch.utils._python_dispatch import TorchDispatchMode


class Counting(TorchDispatchMode):
    calls = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.calls += 1
        return function(*args, **(kwargs or {}))


counts = {}
for name, shape, *more in (
    ("normal_", (6, 4)),
    ("trunc_normal_", (6, 4)),
    ("orthogonal_", (6, 4)),
    ("sparse_", (6, 4), 0.1),
    ("dirac_", (6, 4, 3)),
):
    weight = torch.empty(shape, device="meta")
    with Counting() as counting:
        getattr(init, name)(weight, *more)
    counts[name] = counting.calls
print(f"{torch.__version__}:", *(f"{name} {n}" for name, n in counts.items()))
newer = not torch.__version__.startswith("2.11.")
known = [1] + ([0, 0, 0, 0] if newer else [5, 9, 21, 21])
assert list(counts.values()) == known, f"changed: expected {known}"
PYTHON
  rm -rf "$work/venv"
done
