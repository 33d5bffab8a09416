#!/usr/bin/env python3
# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Holds the bytes that each rank has at its peak against those that the program
states: within 10 %, for every schedule, in all types, with and without
dropout, and that recomputation and halving lower it. A rank has its arena, which the runtime allocates whole, and its
stashes, whose tensors the allocator counts."""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

HALVING = '"chimera", {concatenation = "halving"}'
DESCRIPTION = """
chimera.model @model gpt2 layers(4) heads(4) width(64) context(64)
    vocabulary(256) dropout({dropout})
chimera.pipeline @train of @model stages(4) micro_batches(4)
    schedule({schedule}) micro_batch_size(4) {types} {options}
"""


def measure(args, folder, **options):
    source, program, log = (folder / name for name in ("d.mlir", "program", "log"))
    source.write_text(DESCRIPTION.format(**options))
    tools = args.tools
    # fmt: off
    subprocess.run([tools / "chimera-compile", source, "-o", program], check=True)
    subprocess.run([tools / "chimera-run", program, "--data", args.data, "--steps",
                    "2", "--quiet", "--evaluate-batches", "0", "--log", log],
                   check=True, stdout=subprocess.DEVNULL)
    # fmt: on
    return json.loads(log.read_text().splitlines()[-1])["summary"]["ranks"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tools", type=pathlib.Path, required=True)
    parser.add_argument("--data", type=pathlib.Path, required=True)
    args = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for schedule in ('"chimera"', '"gpipe"', '"1f1b"', HALVING):
            whole = None
            f32, f64, bf16 = "", "weight_type(f64)", "activation_type(bf16)"
            for types, dropout, options in (
                (f32, "1.0e-1", ""),
                (f32, "1.0e-1", "recompute(all)"),
                (f64, "0.0", ""),
                (f32, "0.0", "split_backward"),
                (f64, "1.0e-1", "split_backward recompute([0, 2] fused)"),
                (f64, "1.0e-1", "split_backward"),
                (bf16, "0.0", ""),
                (bf16, "1.0e-1", "split_backward"),
            ):
                ranks = measure(
                    args, folder, schedule=schedule, types=types,
                    dropout=dropout, options=options,
                )  # fmt: skip
                for rank in ranks:
                    measured = rank["arena_bytes"] + rank["stash_bytes"]
                    ratio = measured / rank["stated_peak_bytes"]
                    good = rank["stash_bytes"] > 0 and 0.9 <= ratio <= 1.1
                    failed += not good
                    print(
                        f"{'ok  ' if good else 'FAIL'} {schedule} {types or 'float32'} "
                        f"dropout {dropout} {options or 'whole'} "
                        f"rank {rank['rank']}: measured {measured} of stated {rank['stated_peak_bytes']} "
                        f"({ratio:.3f})"
                    )
                stashes = [rank["stash_bytes"] for rank in ranks]
                if options == "":
                    whole = whole or stashes
                if options == "recompute(all)":
                    # Whoever holds more than one stash must now hold fewer.
                    good = sum(stashes) < 0.6 * sum(whole) and all(
                        new <= old for new, old in zip(stashes, whole, strict=True)
                    )
                    failed += not good
                    print(f"{'ok  ' if good else 'FAIL'} {schedule} recomputed: "
                          f"stashes {stashes} instead of {whole}")  # fmt: skip
    sys.exit(f"{failed} ranks are off" if failed else 0)


if __name__ == "__main__":
    main()
