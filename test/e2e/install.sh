#!/usr/bin/env bash
# Installs the build, builds examples/embed with that installation only, and
# lets it train a sample program. It must print the losses that chimera-run
# logs.
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
# A failure is reported and gives a status other than 0.
if "$work/embed/embed" "$work/none" 2>"$work/error"; then exit 1; fi
grep "cannot open" "$work/error"
