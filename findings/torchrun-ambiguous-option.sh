#!/usr/bin/env bash
# torchrun refuses an option of the training script if it is the beginning of two
# options of its own. A -- before the script helps.
#
# Versions: torch 2.11.0 (Python 3.11).
# Behaviour: What follows the script's name belongs to the script, and most options do
#   arrive there. But one that begins two or more of torchrun's own options, like --log
#   (--log-dir, --logs-specs), ends torchrun before it starts any process. The beginning
#   of a single one, like --log-d, is passed on.
# Seen on 2026-11-27:
#   script.py --log-d x: ['--log-d', 'x']
#   script.py --log x: torchrun: error: ambiguous option: --log could match --log-dir, …
#   -- script.py --log x: ['--log', 'x']
# Why it matters: A script that runs alone fails under torchrun, with a message that
#   names options that nobody gave. A later torchrun with one more option can break a
#   script that ran.
# What chimera does: Its documents and job scripts write the --, as chimera-run has --log.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --no-compile torch==2.11.0 numpy==2.4.6
echo 'import sys; print(sys.argv[1:])' >"$work/script.py"

run() {
  "$work/venv/bin/torchrun" --nproc-per-node 1 "$@" 2>&1 | tail -n 1
}
expect() {
  echo "$1: $2"
  [[ $2 == "$3"* ]] || {
    echo "changed: expected $3" >&2
    exit 1
  }
}
script=$work/script.py
expect "script.py --log-d x" "$(run "$script" --log-d x)" "['--log-d', 'x']"
expect "script.py --log x" "$(run "$script" --log x)" \
  "torchrun: error: ambiguous option: --log could match --log-dir"
expect "-- script.py --log x" "$(run -- "$script" --log x)" "['--log', 'x']"
