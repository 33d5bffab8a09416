#!/usr/bin/env bash
# Pre-trains a small BERT (examples/models/bert.py) on four ranks, with masked tokens and
# pairs of sentences, and evaluates it on held-out text every 50 steps. Tokens are bytes
# (--tokens bytes), plus [MASK], [CLS], [SEP] and [PAD]. Requires a build of chimera
# (examples/quickstart.sh builds it) and Python's torch (tools/setup.sh --export).
#
#   examples/bert.sh              train on the texts of Debian's fortunes
#   examples/bert.sh TEXT         train on your own file, in which % ends a document
#   STEPS=N examples/bert.sh      number of steps (default: 300)
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
bin=${CHIMERA_BIN:-$root/build/release/bin}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

text=${1:-$work/fortunes.txt}
[ -n "${1:-}" ] || dpkg-query -L fortunes fortunes-min | grep /games/fortunes/ |
  grep -v -E '\.(dat|u8)$' | sort | xargs cat >"$text"

# The BERT-48 of Chimera's paper is layers=48 heads=16 width=1024 context=128
# positions=512 vocabulary=30522 tied=False.
"$root/tools/export/chimera-export" "$root/examples/models/bert.py" layers=4 heads=4 \
  width=64 context=64 tied=False samples=8 -o "$work/package"

cat >"$work/train.mlir" <<'MLIR'
chimera.model @bert exported("package")
chimera.training @adamw learning_rate(1.0e-3)
chimera.pipeline @train of @bert with @adamw stages(4) micro_batches(4) schedule("chimera")
    micro_batch_size(8)
MLIR
"$bin/chimera-compile" "$work/train.mlir" --timeline -o "$work/train.chimera"

"$bin/chimera-run" "$work/train.chimera" --data "$text" --tokens bytes --steps "${STEPS:-300}" \
  --mask 256 --pairs 257,258,259 --document-end "$(printf '%d' "'%")" \
  --load "$work/package/values.safetensors" --evaluate-every 50 \
  --save "${SAVE:-$work/bert.safetensors}"
