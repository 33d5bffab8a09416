#!/usr/bin/env bash
# Fine-tunes a causal language model of Hugging Face's transformers on four ranks, and
# writes its weights back. FOLDER is a folder of save_pretrained with a tokenizer.json.
# Requires a build of chimera (examples/quickstart.sh builds it) and Python's torch and
# transformers (tools/setup.sh --export). The weights may be in one file or in shards,
# in float32, bfloat16 or float16. They are written to one file in float32.
#
#   examples/fine-tune.sh FOLDER TEXT OUTPUT
#   chimera-run OUTPUT/train.chimera --load OUTPUT/model.safetensors --generate 100
#     --prompt TOKENS | tools/export/chimera-tokens --decode --tokenizer …
#   STEPS=N CONTEXT=N RANKS=N examples/fine-tune.sh …    (default: 100, 128, 4)
set -euo pipefail
[ $# = 3 ] || { sed -n '/FOLDER TEXT/s/^# *//p' "$0" >&2; exit 2; }
root=$(cd "$(dirname "$0")/.." && pwd)
bin=${CHIMERA_BIN:-$root/build/release/bin}
model=$(realpath "$1") text=$(realpath "$2") output=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$root/tools/export/chimera-tokens" "$text" --tokenizer "$model/tokenizer.json" \
  -o "$work/tokens.bin"
"$root/tools/export/chimera-export" "$root/examples/models/huggingface.py" \
  "source=$model" "context=${CONTEXT:-128}" samples=2 --no-values -o "$work/package"
cat >"$work/train.mlir" <<MLIR
chimera.model @tuned exported("package")
chimera.training @adamw learning_rate(5.0e-5)
chimera.pipeline @train of @tuned with @adamw stages(${RANKS:-4}) micro_batches(4)
    schedule("chimera") micro_batch_size(2)
MLIR
"$bin/chimera-compile" "$work/train.mlir" -o "$work/train.chimera"

# The other files of FOLDER stay the same, except for the type and files of the weights.
mkdir -p "$output"
cp "$model"/*.json "$work/train.chimera" "$output/"
rm -f "$output/model.safetensors.index.json"
sed -i 's/"\(torch_\)\?dtype": "[a-z0-9]*"/"\1dtype": "float32"/' "$output/config.json"
"$bin/chimera-run" "$work/train.chimera" --data "$work/tokens.bin" \
  --load "$model" --steps "${STEPS:-100}" \
  --save "$output/model.safetensors"
