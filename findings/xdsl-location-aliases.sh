#!/usr/bin/env bash
# xDSL cannot read what MLIR prints with --mlir-print-debuginfo: MLIR defines
# aliases of locations after their use.
#
# Versions: mlir-opt of Debian's mlir-19-tools 19.1.7 and xdsl 0.74.0 (Python 3.11).
# Behaviour: MLIR prints most aliases before the module and aliases of locations
#   after it. Its own parser waits for the definition. xDSL looks an alias up where
#   it is used and stops. With the same lines moved before the module xDSL reads
#   the file, and without --mlir-print-debuginfo there is nothing to move.
# Seen on 2026-11-27:
#   printed: undefined symbol alias '#loc
#   first: read                                  (definitions moved to the top)
#   without: read                                (printed without locations)
# Why it matters: Locations tie an operation of a compiled schedule to the line of
#   its description. Python tools based on xDSL see the IR only without them.
# What chimera does: A test has xDSL read the IR after each phase, without
#   locations. The README of dialect/ names this limit.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

[[ $(dpkg-query -W -f='${Version}' mlir-19-tools) == 1:19.1.7-* ]] ||
  { echo "needs mlir-19-tools=1:19.1.7*: apt-get install it" >&2; exit 2; }
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --no-compile xdsl==0.74.0
cd "$work"

cat >f.mlir <<'MLIR'
func.func @f(%a: i32) -> i32 {
  %b = arith.addi %a, %a : i32
  return %b : i32
}
MLIR
mlir-opt-19 --mlir-print-debuginfo f.mlir -o printed.mlir
{ grep '^#loc' printed.mlir; grep -v '^#loc' printed.mlir; } >first.mlir
mlir-opt-19 f.mlir -o without.mlir
mlir-opt-19 printed.mlir -o /dev/null # MLIR reads its own order
status=0
for file in printed first without; do
  if venv/bin/xdsl-opt $file.mlir >out 2>error; then
    seen="read"
  else
    seen=$(grep -o "undefined symbol alias '#loc" error || tail -n 1 error)
  fi
  echo "$file: $seen"
  case $file,$seen in
  printed,undefined* | first,read | without,read) ;;
  *) echo "changed: $file" >&2; status=1 ;;
  esac
done
exit $status
