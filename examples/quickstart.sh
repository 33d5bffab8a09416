#!/usr/bin/env bash
# From nothing to a trained model: installs what is missing, builds chimera,
# compiles examples/gpt2.mlir, prints its timeline, trains four ranks on real
# text, and compares the result with a byte-unigram model.
#
#   examples/quickstart.sh              train on the texts of Debian's fortunes
#   examples/quickstart.sh TEXT         train on your own file, 1 MB or more
#   STEPS=N examples/quickstart.sh      number of steps (default: 300)
set -euo pipefail
if [ -n "${1:-}" ]; then
  text=$(realpath "$1")
  [ -f "$text" ] && [ -r "$text" ] || {
    echo "quickstart: expected a readable text file, got $1" >&2
    exit 1
  }
fi

cd "$(dirname "$0")/.."
tools/setup.sh
mkdir -p build/quickstart
echo "building (the log is build/quickstart/build.log)"
{ cmake --preset release &&
  cmake --build --preset release --target \
    chimera-show chimera-plan chimera-compile chimera-run chimera-opt chimera-translate; } \
  >build/quickstart/build.log 2>&1 || {
  tail -n 40 build/quickstart/build.log >&2
  exit 1
}

if [ -z "${text:-}" ]; then
  # The package also holds indexes (.dat) and second names (.u8) of its texts.
  text=build/quickstart/fortunes.txt
  dpkg-query -L fortunes fortunes-min | grep /games/fortunes/ |
    grep -v -E '\.(dat|u8)$' | sort | xargs cat >"$text"
fi
size=$(stat -c %s "$text")
if [ "$size" -lt 1000000 ]; then
  echo "quickstart: expected at least 1000000 bytes of text, got $size in $text" >&2
  exit 1
fi

echo
echo "== examples/gpt2.mlir, compiled =="
build/release/bin/chimera-compile examples/gpt2.mlir --timeline \
  -o build/quickstart/gpt2.chimera

echo
echo "== training four ranks on $text ($size bytes) =="
build/release/bin/chimera-run build/quickstart/gpt2.chimera --data "$text" \
  --steps "${STEPS:-300}" --log build/quickstart/log.jsonl \
  --save build/quickstart/gpt2.safetensors --check-replicas

python3 - build/quickstart/log.jsonl <<'PYTHON'
import json, sys
summary = json.loads(open(sys.argv[1]).read().splitlines()[-1])["summary"]
held_out, unigram = summary["held_out_loss"], summary["unigram_loss"]
ratio = held_out / unigram
print(f"\nheld-out loss {held_out:.4f} nats per byte, unigram model {unigram:.4f}:"
      f" ratio {ratio:.3f} (expected at most 0.85)")
sys.exit(ratio > 0.85)
PYTHON
