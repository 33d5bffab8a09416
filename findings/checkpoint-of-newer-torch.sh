#!/usr/bin/env bash
# torch 2.11 cannot read a distributed checkpoint of torch 2.15, although both call
# its format version 1.0.0.
#
# Versions: torch 2.11.0 and 2.15.0 (Python 3.11).
# Behaviour: The .metadata file of torch.distributed.checkpoint is a pickle. Since
#   2.15 the properties of a tensor have one more field in it, the strides. 2.11
#   expects five fields and raises. 2.15 reads checkpoints of both.
# Seen on 2026-11-27:
#   written by 2.11.0, read by 2.15.0: version 1.0.0, [0.0, 1.0, 2.0, 3.0]
#   written by 2.15.0, read by 2.11.0: too many values to unpack (expected 5)
# Why it matters: After one checkpoint with the newer version, a run cannot go back
#   to the older one. Machines with both versions cannot share checkpoints. The
#   version in the file does not show it.
# What chimera does: It reads and writes weights as safetensors files, which hold no
#   pickle. Convert a distributed checkpoint with the version that wrote it.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for version in 2.11.0 2.15.0 2.11.0; do
  python3 -m venv "$work/venv"
  "$work/venv/bin/pip" install -q --no-compile "torch==$version" \
    numpy==2.4.6
  "$work/venv/bin/python" -W ignore - "$work" <<'PYTHON'
import os
import sys

import torch
import torch.distributed.checkpoint as checkpoint

for version in "2.11.0", "2.15.0":
    folder = f"{sys.argv[1]}/{version}"
    if not os.path.exists(folder):
        if torch.__version__.startswith(version):
            checkpoint.save({"w": torch.arange(4.0)}, checkpoint_id=folder)
        continue
    state = {"w": torch.zeros(4)}
    try:
        reader = checkpoint.FileSystemReader(folder)
        seen = f"version {reader.read_metadata().version}, "
        checkpoint.load(state, storage_reader=reader)
        seen += str(state["w"].tolist())
    except ValueError as error:
        seen = str(error)
    print(f"written by {version}, read by {torch.__version__}: {seen}")
    newer = torch.__version__ < version
    known = ("too many values to unpack (expected 5)" if newer else
             "version 1.0.0, [0.0, 1.0, 2.0, 3.0]")
    assert seen == known, f"changed: expected {known}"
PYTHON
  rm -rf "$work/venv"
done
