#!/usr/bin/env bash
# The consolidated safetensors file of torch's Hugging Face writer has no metadata,
# and its tensors begin at odd addresses.
#
# Versions: torch 2.11.0 with safetensors 0.8.0 (Python 3.11).
# Behaviour: HuggingFaceStorageWriter writes shards by the safetensors library,
#   which pads the header to 8 bytes, puts the largest type first and adds
#   {"format": "pt"}. With enable_consolidation torch then writes one more file
#   without the library: it has no padding and no metadata, and its tensors are in
#   the order of their names. The format allows this.
# Seen on 2026-11-27 (a float16 tensor `a` of 3 elements, a float32 tensor `b` of 5):
#   shard:        metadata yes, `a` begins at byte 284, `b` at byte 264
#   consolidated: metadata no,  `a` begins at byte 131, `b` at byte 137
#   safetensors reads the values of both.
# Why it matters: A reader that maps the file into memory and reads float32 in place
#   reads from an odd address, which C and C++ do not define. A reader that requires
#   metadata["format"] refuses the file. Tests with files of the library show
#   neither.
# What chimera does: `chimera-run --load` needs no metadata and reads each tensor
#   into memory of its own, so it reads such files correctly.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --no-compile torch==2.11.0 \
  safetensors==0.8.0 numpy==2.4.6
"$work/venv/bin/python" -W ignore - "$work" <<'PYTHON'
import json
import pathlib
import sys

import torch
import torch.distributed.checkpoint as checkpoint
from safetensors.torch import load_file

folder = pathlib.Path(sys.argv[1], "model")
state = {"a": torch.arange(3, dtype=torch.float16), "b": torch.arange(5.0)}
checkpoint.save(state, storage_writer=checkpoint.HuggingFaceStorageWriter(
    str(folder), save_distributed=True, enable_consolidation=True))
[shard], [whole] = folder.glob("sharded/*.safetensors"), \
    folder.glob("*.safetensors")
seen = {}
for name, path in ("shard", shard), ("consolidated", whole):
    data = path.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])
    begins = [start + header[t]["data_offsets"][0] for t in "ab"]
    seen[name] = "__metadata__" in header, *begins
    print(f"{name}: metadata {'yes' if seen[name][0] else 'no'}, `a` begins at "
          f"byte {begins[0]}, `b` at byte {begins[1]}")
    read = load_file(path)
    assert all(torch.equal(read[t], state[t]) for t in "ab"), "changed: values"
assert seen["shard"][0] and seen["shard"][2] % 4 == 0, "changed: the shard"
assert not seen["consolidated"][0], "changed: the file has metadata"
assert seen["consolidated"][2] % 4 != 0, "changed: the tensors are aligned"
PYTHON
