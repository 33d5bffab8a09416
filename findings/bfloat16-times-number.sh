#!/usr/bin/env bash
# In C++, Tensor::mul_ rounds a number to bfloat16 before it multiplies. Tensor::mul does
# not, nor does Python's mul_.
#
# Versions: torch 2.11.0 (Python 3.11), on a CPU.
# Behaviour: A product of a bfloat16 tensor with a number is computed in float32 and
#   rounded once, if the number is the second operand of the kernel. The C++ function
#   mul_(number) makes the number the first operand, so the number itself is rounded.
# Seen on 2026-12-01, for 1.375 times 1/0.9, which is 1.527778:
#   C++: mul 1.53125, mul_ 1.523438, mul_ with a tensor 1.53125
#   Python: mul 1.53125, mul_ 1.53125
# Why it matters: 1/0.9 is the factor of a dropout. Rounded to bfloat16 it is 1.109375, so
#   all elements that are kept are 0.16 % too small. A port of a model from Python to
#   C++, line by line, gives other numbers.
# What chimera does: the factor of a dropout is a tensor on hosts, and a kernel of its own
#   multiplies in float32 on GPUs, so both give the same bits (CudaKernelsTest.cpp).
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
command -v g++ >/dev/null || {
  echo "needs g++ (Debian package g++)" >&2
  exit 2
}

python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --no-compile torch==2.11.0 numpy==2.4.6
cat >"$work/product.cpp" <<'CPP'
#include <ATen/ATen.h>
#include <cstdio>

int main() {
  const double factor = 1 / (1 - 0.1);
  const at::Tensor x = at::full({4}, 1.375, at::kBFloat16);
  const at::Tensor made[] = {
      x.mul(factor), x.clone().mul_(factor),
      x.clone().mul_(at::scalar_tensor(factor, at::kDouble))};
  std::printf("C++: mul %.7g, mul_ %.7g, mul_ with a tensor %.7g\n",
              made[0][0].item<double>(), made[1][0].item<double>(),
              made[2][0].item<double>());
}
CPP
torch=$("$work/venv/bin/python" -c 'import torch; print(torch.__path__[0])')
# The libraries of CUDA, which are in other folders, are not used.
g++ -std=c++17 "$work/product.cpp" -I"$torch/include" -L"$torch/lib" -lc10 -ltorch_cpu \
  -Wl,-rpath,"$torch/lib" -Wl,--allow-shlib-undefined -o "$work/product"
LD_LIBRARY_PATH=$(find "$work/venv" -name 'lib*.so*' -path '*nvidia*' -printf '%h\n' |
  sort -u | paste -sd:) "$work/product" | tee "$work/said"
"$work/venv/bin/python" - <<'PYTHON' | tee -a "$work/said"
import torch

x, factor = torch.full((4,), 1.375, dtype=torch.bfloat16), 1 / (1 - 0.1)
print(f"Python: mul {x.mul(factor)[0].item():.7g}, mul_ {x.clone().mul_(factor)[0].item():.7g}")
PYTHON
diff - "$work/said" <<'EXPECTED' || {
C++: mul 1.53125, mul_ 1.523438, mul_ with a tensor 1.53125
Python: mul 1.53125, mul_ 1.53125
EXPECTED
  echo "changed" >&2
  exit 1
}
