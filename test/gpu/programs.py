#!/usr/bin/env python3
# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles what is run on GPUs, which need no compiler where they are: programs
of every scheme of the registry with its options, proven for the order in which a
GPU communicates. Beside each stands what one device makes of it with exact
stages, which are integers: the digest of its weights."""

import argparse
import json
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
import grid  # noqa: E402

DIGEST = re.compile(r"digest of the weights (\w+)")
STEPS = 3
# One of each kind for a scheme, in turns.
OPTIONS = (
    "",
    "split_backward",
    "recompute(all)",
    "all_reduce(eager_opt) bucket_bytes(24)",
    "recompute([0]) split_backward all_reduce(eager)",
)


def descriptions():
    """(name, description, ranks)"""
    number = 0
    for stages in (2, 4):
        for scheme, schedule in grid.schedules(stages):
            options = OPTIONS[number % len(OPTIONS)]
            # Two copies where that makes no more than four ranks.
            width = 2 if stages == 2 and number % 2 else 1
            tied = number % 3 == 1 and scheme not in grid.WITHOUT_FLUSH
            model = grid.tied_model(stages) if tied else ""
            of, size = ("of @m ", "micro_batch_size(2)") if tied else ("", "")
            yield f"{number:02}-{scheme}", (
                f"{model}chimera.pipeline @p {of}stages({stages}) "
                f"micro_batches({2 * stages + number % 2}) schedule({schedule}) "
                f"data_parallel({width}) {size} {options}\n"
            ), stages * width
            number += 1


def models():
    """The same of models that train on text."""
    for stages, schedule, more in (
        (2, '"chimera"', ""),
        (2, '"1f1b"', "split_backward"),
        (4, '"chimera"', "recompute(all)"),
        (4, '"gpipe"', ""),
    ):
        dropout = "dropout(0.1)" if stages == 4 else ""
        tied = "tied" if more else ""
        name = f"gpt2-{stages}-{len(more)}"
        yield name, (
            "chimera.model @m gpt2 layers(4) heads(4) width(128) context(64) "
            f"vocabulary(256) {dropout} {tied}\n"
            f"chimera.pipeline @p of @m stages({stages}) micro_batches({2 * stages}) "
            f"schedule({schedule}) micro_batch_size(4) {more}\n"
        ), stages


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tools", type=pathlib.Path, required=True)
    parser.add_argument("--to", type=pathlib.Path, required=True, help="a folder")
    options = parser.parse_args()
    options.to.mkdir(parents=True, exist_ok=True)

    def compiled(case):
        name, description, ranks = case
        program = options.to / f"{name}.chimera"
        # fmt: off
        grid.compile_to(options.tools, description, program,
                        "--messages", "stream-per-device")
        # fmt: on
        program.with_suffix(".mlir").unlink()
        return {"program": program.name, "description": description, "ranks": ranks}

    def one(case):
        try:
            made = compiled(case)
            program = options.to / made["program"]
            # fmt: off
            text = grid.run(options.tools / "chimera-run", program, "--stages",
                            "exact", "--steps", STEPS, "--sequential")
            # fmt: on
        except RuntimeError as error:
            raise RuntimeError(f"{case[1]}{error}") from None
        return made | {"steps": STEPS, "digest": DIGEST.search(text)[1]}

    every = list(grid.in_parallel(one, descriptions()))
    (options.to / "programs.json").write_text(json.dumps(every, indent=1))
    trained = [compiled(case) for case in models()]
    (options.to / "models.json").write_text(json.dumps(trained, indent=1))
    text = pathlib.Path(__file__).resolve().parent.parent.parent / "README.md"
    (options.to / "text").write_bytes(text.read_bytes())
    print(f"{len(every) + len(trained)} programs are in {options.to}")


if __name__ == "__main__":
    main()
