# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes the arrays of chimera-run-arrays.test: 80 samples of 2 tokens below 5, and the
tokens after them as labels."""

import json
import os
import struct
import zipfile


def npy(name, descr, numbers):
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': ({len(numbers) // 2}, 2), }}"
    header = header.ljust(117) + "\n"
    elements = struct.pack(f"<{len(numbers)}{'q' if descr == '<i8' else 'i'}", *numbers)
    with open(name, "wb") as file:
        file.write(b"\x93NUMPY\1\0" + struct.pack("<H", 118) + header.encode() + elements)


def safetensors(name, **fields):
    header, data = {}, b""
    for field, numbers in fields.items():
        elements = struct.pack(f"<{len(numbers)}q", *numbers)
        header[field] = {
            "dtype": "I64",
            "shape": [len(numbers) // 2, 2],
            "data_offsets": [len(data), len(data) + len(elements)],
        }
        data += elements
    text = json.dumps(header).encode()
    with open(name, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


TOKENS = [i * i % 5 for i in range(160)]
LABELS = [(i + 1) ** 2 % 5 for i in range(160)]
npy("tokens.npy", "<i8", TOKENS)
npy("labels.npy", "<i8", LABELS)
npy("narrow.npy", "<i4", TOKENS)
npy("large.npy", "<i8", [9] * 160)
safetensors("1.safetensors", tokens=TOKENS[:60], labels=LABELS[:60])
safetensors("2.safetensors", labels=LABELS[60:], tokens=TOKENS[60:])
for folder in ("ids", "next", "npz"):
    os.mkdir(folder)
# In the order of their numbers, and not of their names.
for shard, (first, end) in enumerate(((0, 20), (20, 90), (90, 160)), start=8):
    npy(f"ids/{shard}.npy", "<i8", TOKENS[first:end])
    npy(f"next/{shard}.npy", "<i8", LABELS[first:end])
for name, method in (("npz/all.npz", zipfile.ZIP_STORED), ("small.npz", zipfile.ZIP_DEFLATED)):
    with zipfile.ZipFile(name, "w", method, allowZip64=True) as archive:
        for field in ("tokens", "labels"):
            archive.write(f"{field}.npy")
