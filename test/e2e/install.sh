#!/usr/bin/env bash
# Installs the build, builds examples/embed with that installation only, and
# lets it train a sample program. It must print the losses that chimera-run
# logs. Does the same with the program of the guide embed.md, which must print
# the losses that the guide states.
#
#   install.sh BUILD SOURCE
set -euo pipefail
build=$1 source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cmake --install "$build" --prefix "$work/installed" >"$work/log"
cmake -S "$source/examples/embed" -B "$work/embed" -G Ninja \
  -DCMAKE_PREFIX_PATH="$work/installed" >"$work/log"
cmake --build "$work/embed" >"$work/log" || { cat "$work/log"; exit 1; }

"$build/bin/write-sample" "$work/sample"
"$work/embed/embed" "$work/sample" >"$work/losses"
"$work/installed/bin/chimera-run" "$work/sample" --stages exact --steps 3 \
  --log "$work/run" --quiet >"$work/log"
python3 - "$work/losses" "$work/run" <<'PYTHON'
import json, sys
own = [float(line) for line in open(sys.argv[1])]
logged = [json.loads(line)["loss"] for line in list(open(sys.argv[2]))[:3]]
sys.exit(0 if own == logged else f"expected {logged}, got {own}")
PYTHON
# block NAME: prints the block of the guide that is written to the file NAME.
guide=$source/examples/guides/embed.md
block() {
  awk -v end="file=$1" '/^```$/ { on = 0 } on { print }
                        /^```/ && index($0, end) { on = 1 }' "$guide"
}
if [ -x "$build/bin/chimera-compile" ]; then
  mkdir "$work/train"
  block train.cpp >"$work/train/train.cpp"
  block train.mlir >"$work/train.mlir"
  sed 's/embed.cpp/train.cpp/; s/(embed/(train/; s/PRIVATE/PRIVATE chimera::graph/' \
    "$source/examples/embed/CMakeLists.txt" >"$work/train/CMakeLists.txt"
  cmake -S "$work/train" -B "$work/train/build" -G Ninja \
    -DCMAKE_PREFIX_PATH="$work/installed" >"$work/log"
  cmake --build "$work/train/build" >"$work/log" || { cat "$work/log"; exit 1; }
  "$build/bin/chimera-compile" "$work/train.mlir" -o "$work/train.chimera"
  got=$("$work/train/build/train" "$work/train.chimera" | sed 's/.*loss //' | xargs)
  stated=$(tr '\n' ' ' <"$guide" | sed -E \
    's/.*prints a loss of ([0-9.]+) after 20 steps, ([0-9.]+) after 40 and ([0-9.]+) after 60.*/\1 \2 \3/')
  [ "$got" = "$stated" ] || {
    echo "expected the losses $stated of $guide, got $got"
    exit 1
  }
fi
# A failure is reported and gives a status other than 0.
if "$work/embed/embed" "$work/none" 2>"$work/error"; then exit 1; fi
grep "cannot open" "$work/error"
