#!/usr/bin/env python3
# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes the order of every description of the grid as text, and compiles the text. The
program must equal the program of the description, except for the name of the schedule
and the source locations. Then changes some whole backwards of the text to split ones,
and some split ones to whole ones (of the full grid only in every fourth description).
Runs this mixed plan on exact stages. The result must be the same integers as on one
device."""

import argparse
import pathlib
import random
import re
import sys
import tempfile

import grid

DIGEST = re.compile(r"digest of the weights (\w+)")
LINE = re.compile(r'(chimera\.order \d+ )"([^"]*)"')
# The parts of a program's dump that may differ: the name of its schedule and its source
# locations.
UNEQUAL = re.compile(
    r'\n  "schedule": .*|\n +"(at|location)": .*|\n  "(files|locations)": \[[^]]*\]'
)
# An action of the text: its stage, kind, micro-batch and the rest.
WORD = re.compile(r"(\d*)([FBIWR])(\d+)(.*)")


def written(tools, description, source):
    """The description in which the order is given as text."""
    source.write_text(description)
    return grid.run(
        tools / "chimera-opt", source, "--chimera-to-scheduled",
        "--chimera-write-order",
    )  # fmt: skip


def program_of(tools, program):
    """The content of a program as JSON, without the name of its schedule and its source
    locations."""
    text = grid.run(tools / "chimera-translate", "--program-to-json", program)
    return UNEQUAL.sub("", text)


def mixed(text, chooser):
    """Changes the text. Splits some whole backwards, with the weight gradient later in
    the section. Makes some split backwards whole, at the position of their input
    gradient. If steps overlap, the two halves stay together in two cases: if the next
    forward may read the update after them, or if recomputes must come immediately
    before them. Drops the slots of the text."""
    together = "updates(each_micro_batch)" in text
    together |= "updates(each_step)" in text and "recompute(" in text

    def changed(match):
        words = [word for word in match[2].split() if word[0] != "."]
        change = {}  # whether a backward changes, with all its parts
        out, later = [], []
        for word in words:
            if word == "|":
                out += [*later, word]
                later.clear()
                continue
            stage, kind, batch, rest = WORD.fullmatch(word).groups()
            if kind in "BIW" and (stage, batch) not in change:
                change[stage, batch] = chooser.random() < 0.5
            if kind not in "BIW" or not change[stage, batch]:
                out.append(word)
            elif kind == "B":
                out.append(f"{stage}I{batch}{rest}")
                later.append(f"{stage}W{batch}{rest}")
            elif kind == "I":
                out.append(f"{stage}B{batch}{rest}")
            if later and (together or chooser.random() < 0.4):
                out.append(later.pop(0))
        out += later
        return f'{match[1]}"{" ".join(out)}"'

    return LINE.sub(changed, text)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tools", type=pathlib.Path, required=True)
    parser.add_argument("--full", action="store_true", help="the whole grid")
    parser.add_argument("--programs", type=int, default=150, help="of a sample")
    options = parser.parse_args()
    descriptions = list(grid.grid(8))
    whole, every = len(descriptions), 4 if options.full else 1
    if not options.full:
        random.Random(3).shuffle(descriptions)
        descriptions = descriptions[: options.programs]

    with tempfile.TemporaryDirectory() as name:

        def one(numbered):
            number, description = numbered
            tools, folder = options.tools, pathlib.Path(name)
            program, again = folder / f"{number}.chimera", folder / f"{number}a.chimera"
            text = ""
            try:
                grid.compile_to(tools, description, program)
                text = written(tools, description, folder / f"{number}.mlir")
                grid.compile_to(tools, text, again)
                if program_of(tools, program) != program_of(tools, again):
                    raise RuntimeError("the program of the text differs")
                if number % every == 0:
                    text = mixed(text, random.Random(number))
                    grid.compile_to(tools, text, again)
                    digests = {
                        DIGEST.search(
                            grid.run(tools / "hostile-run", each, "--threads", "--seeds", 1)
                        )[1]
                        for each in (program, again)
                    }
                    if len(digests) != 1:
                        raise RuntimeError(f"the mixed plan differs: {digests}")
            except RuntimeError as error:
                raise RuntimeError(f"{description}{text}{error}") from None
            program.unlink()
            again.unlink()
            if number % every:
                return None
            return len(set(re.findall(r"[BI]", "".join(LINE.findall(text)[0])))) == 2

        mixes = list(grid.in_parallel(one, enumerate(descriptions)))
    changed = [mix for mix in mixes if mix is not None]
    print(
        f"{len(mixes)} of {whole} programs are read as they are written; {len(changed)} "
        f"changed to split and whole backwards, {sum(changed)} of them mixed on their "
        "first worker, each equals one device"
    )


if __name__ == "__main__":
    sys.exit(main())
