#!/usr/bin/env bash
# Trains your own PyTorch module (here examples/own_module.py) on four ranks: exports it
# as a package of layers, compiles it for a schedule and runs it. Requires a build of
# chimera (examples/quickstart.sh builds it) and Python's torch (tools/setup.sh --export).
#
#   examples/own-module.sh              train on the texts of Debian's fortunes
#   examples/own-module.sh TEXT         train on your own file
#   STEPS=N examples/own-module.sh      number of steps (default: 150)
#   SAVE=FILE examples/own-module.sh    keep the trained weights
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
bin=${CHIMERA_BIN:-$root/build/release/bin}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

text=${1:-$work/fortunes.txt}
[ -n "${1:-}" ] || dpkg-query -L fortunes fortunes-min | grep /games/fortunes/ |
  grep -v -E '\.(dat|u8)$' | sort | xargs cat >"$text"

# Cuts the module into layers: graphs with costs and sizes, and a file of values.
"$root/tools/export/chimera-export" "$root/examples/own_module.py" -o "$work/package" \
  --check

# Describes the ranks and the schedule.
cat >"$work/train.mlir" <<'MLIR'
chimera.model @own exported("package")
chimera.training @adamw learning_rate(2.0e-3)
chimera.pipeline @train of @own with @adamw stages(4) micro_batches(4) schedule("chimera")
    micro_batch_size(8)
MLIR
"$bin/chimera-compile" "$work/train.mlir" --timeline -o "$work/train.chimera"

"$bin/chimera-run" "$work/train.chimera" --data "$text" --steps "${STEPS:-150}" \
  --load "$work/package/values.safetensors" --check-replicas \
  --save "${SAVE:-$work/trained.safetensors}"
