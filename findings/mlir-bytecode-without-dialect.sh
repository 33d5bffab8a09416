#!/usr/bin/env bash
# MLIR reads bytecode of a dialect that it does not know with other attributes than
# were written, from bytecode version 5 on, and calls the result valid.
#
# Versions: mlir-opt of Debian's mlir-19-tools 19.1.7 and jaxlib 0.10.2 (Python
#   3.11), which is MLIR 23.0.0git.
# Behaviour: From bytecode version 5 on, the attributes of an operation are written
#   without names, as its declaration says. A reader with
#   allow_unregistered_dialects has no declaration. It takes the first number that
#   it finds for the index of a single attribute. Version 4 is read as it was
#   written.
# Seen on 2026-11-27 (func.func @f, read in a context without the dialect func):
#   version 4: "func.func"() ({ ... }) {function_type = () -> (), sym_name = "f"} …
#   version 5: "func.func"() <"f.mlir"> ({ ... }) : () -> (), verify() is True
#   version 6: "func.func"() <"f.mlir"> ({ ... }) : () -> (), verify() is True
#   "f.mlir" is the name of the source file. The name of the function is lost.
# Why it matters: allow_unregistered_dialects is how generic tools, viewers and
#   Python scripts look at IR of dialects that they do not link. The text form is
#   safe for them, and bytecode is not: they see wrong values without an error.
# What chimera does: chimera-opt writes version 4, which such readers read as it is.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

[[ $(dpkg-query -W -f='${Version}' mlir-19-tools) == 1:19.1.7-* ]] ||
  { echo "needs mlir-19-tools=1:19.1.7*: apt-get install it" >&2; exit 2; }
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --no-compile jaxlib==0.10.2
cd "$work"

echo 'func.func @f() { return }' >f.mlir
for version in 4 5 6; do
  mlir-opt-19 f.mlir --emit-bytecode --emit-bytecode-version=$version \
    -o f.$version
done
venv/bin/python - <<'PYTHON'
import pathlib

from jaxlib.mlir import ir

for version in 4, 5, 6:
    context = ir.Context()
    context.allow_unregistered_dialects = True
    data = pathlib.Path(f"f.{version}").read_bytes()
    module = ir.Module.parse(data, context)
    [function] = [line for line in str(module).splitlines() if "func.func" in line]
    [attributes] = [line for line in str(module).splitlines() if "}) " in line]
    print(f"version {version}: {function.strip()} ... {attributes.strip()}, "
          f"verify() is {module.operation.verify()}")
    known = 'sym_name = "f"' if version == 4 else '<"f.mlir">'
    assert known in str(module), f"changed: no {known}"
    assert version == 4 or "sym_name" not in str(module), "changed: it is right"
    assert module.operation.verify(), "changed: it is refused"
PYTHON
