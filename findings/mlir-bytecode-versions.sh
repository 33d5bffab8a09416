#!/usr/bin/env bash
# MLIR 19 and MLIR 24 both write bytecode version 6, and neither reads a function
# that the other wrote.
#
# Versions: mlir-opt of Debian's mlir-19-tools 19.1.7 and iree-opt of
#   iree-base-compiler 3.13.0, which is MLIR 24.0.0git.
# Behaviour: From bytecode version 5 on, the attributes of an operation are written
#   without names, as its declaration says. The version counts changes of the
#   format, not of declarations, and func.func and func.call have more attributes in
#   MLIR 24 (no_inline). Version 4 writes names too and is read by both.
# Seen on 2026-11-27:
#   version 4, written by mlir-opt, read by iree-opt: read
#   version 4, written by iree-opt, read by mlir-opt: read
#   version 5, written by mlir-opt, read by iree-opt:
#     error: expected mlir::ArrayAttr, but got: "f.mlir"
#   version 5, written by iree-opt, read by mlir-opt:
#     error: expected mlir::StringAttr, but got: (i32) -> i32
#   version 6: as version 5, in both directions
# Why it matters: Bytecode is the form in which large IR is kept and handed over.
#   Its version number does not say whether another release of MLIR can read it.
# What chimera does: chimera-opt writes version 4, which other releases read.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

[[ $(dpkg-query -W -f='${Version}' mlir-19-tools) == 1:19.1.7-* ]] ||
  { echo "needs mlir-19-tools=1:19.1.7*: apt-get install it" >&2; exit 2; }
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --no-compile \
  iree-base-compiler==3.13.0
ln -s /usr/bin/mlir-opt-19 "$work/mlir-opt"
ln -s "$work/venv/bin/iree-opt" "$work/iree-opt"
cd "$work"

cat >f.mlir <<'MLIR'
func.func private @g(i32) -> i32
func.func @f() -> i32 {
  %three = arith.constant 3 : i32
  %result = func.call @g(%three) : (i32) -> i32
  return %result : i32
}
MLIR
for version in 4 5 6; do
  for pair in "mlir-opt iree-opt" "iree-opt mlir-opt"; do
    read -r writer reader <<<"$pair"
    "./$writer" f.mlir --emit-bytecode --emit-bytecode-version=$version -o f.bc
    # The fifth byte is the version, coded as a variable-width integer.
    stated=$(($(od -An -tu1 -j4 -N1 f.bc) / 2))
    if "./$reader" f.bc -o f.out 2>error; then
      seen="read"
    else
      seen=$(grep -o -m1 'error: .*' error)
    fi
    echo "version $stated, written by $writer, read by $reader: $seen"
    case $version,$seen in
    4,read | [56],"error: expected mlir::"*) [ $stated = $version ] ;;
    *) false ;;
    esac || { echo "changed: another release reads other versions" >&2; exit 1; }
  done
done
