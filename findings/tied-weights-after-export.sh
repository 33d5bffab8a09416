#!/usr/bin/env bash
# A tied weight is two parameters after torch.export.load, and two tensors after
# a cast or a deepcopy of the loaded program.
#
# Versions: torch 2.11.0 and 2.15.0 (Python 3.11).
# Behaviour: A model's head uses the weight of its embedding. torch.export.export
#   keeps one parameter. torch.export.save and load make two parameters that
#   share one storage. A cast (.to) or a deepcopy of the loaded program gives each
#   parameter a storage of its own. The graph reads only one of the two: all uses
#   are uses of the head, and the placeholder of the embedding has none. A cast
#   of the original model keeps the tie.
# Seen on 2026-11-27, alike in both versions:
#   model                  parameters 1, storages 1
#   model, cast            parameters 1, storages 1
#   exported               parameters 1, storages 1
#   loaded                 parameters 2, storages 1
#   loaded, cast           parameters 2, storages 2
#   loaded, deepcopy       parameters 2, storages 2
#   uses in the loaded graph: {'embed.weight': 0, 'head.weight': 2}
# Why it matters: A tool that compares parameters by identity takes the loaded model
#   for an untied one. A count of parameters is too high. If the loaded model is
#   cast and trained, only one of its two weights changes, and a file of its weights
#   has both.
# What chimera does: chimera-export looks for parameters that share a storage or
#   have equal values, not only for equal objects.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for version in 2.11.0 2.15.0; do
  python3 -m venv "$work/venv"
  "$work/venv/bin/pip" install -q --no-compile "torch==$version" \
    numpy==2.4.6
  "$work/venv/bin/python" -W ignore - <<'PYTHON'
import copy
import io

import torch


class Tied(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(8, 4)
        self.head = torch.nn.Linear(4, 8, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, tokens):
        return self.head(self.embed(tokens))


def count(module):
    """Parameters, and storages that they are in."""
    found = dict(module.named_parameters(remove_duplicate=False)).values()
    return (len({id(p) for p in found}),
            len({p.untyped_storage().data_ptr() for p in found}))


model = Tied()
program = torch.export.export(model, (torch.zeros(2, 3, dtype=torch.long),))
file = io.BytesIO()
torch.export.save(program, file)
file.seek(0)
loaded = torch.export.load(file)
seen = {
    "model": count(model),
    "model, cast": count(copy.deepcopy(model).to(torch.float64)),
    "exported": count(program.module()),
    "loaded": count(loaded.module()),
    "loaded, cast": count(loaded.module().to(torch.float64)),
    "loaded, deepcopy": count(copy.deepcopy(loaded.module())),
}
names = loaded.graph_signature.inputs_to_parameters
uses = {names[node.name]: len(node.users) for node in loaded.graph.nodes
        if node.name in names}
print("torch", torch.__version__)
for name, (parameters, storages) in seen.items():
    print(f"  {name:22} parameters {parameters}, storages {storages}")
print("  uses in the loaded graph:", uses)
assert list(seen.values()) == [(1, 1), (1, 1), (1, 1), (2, 1), (2, 2), (2, 2)], \
    "changed: another number of parameters or storages"
assert uses == {"embed.weight": 0, "head.weight": 2}, "changed: other uses"
PYTHON
  rm -rf "$work/venv"
done
