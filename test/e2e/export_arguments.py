#!/usr/bin/env python3
# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks that chimera-export refuses wrong arguments before it imports PyTorch, because
the import takes seconds. The error must suggest the name that was probably meant.
chimera-export must also refuse an output that would overwrite an input, or files that
are not a package. Here PyTorch is a module that raises an error when it is imported, so
every import is noticed. Exits non-zero if one fails."""

import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCE = """
import torch

def make(layers=4, *, width): pass

def bert(source, **more): pass
"""
# Folders for --output, each with its files and their contents.
FOLDERS = {
    "foreign": {"model.json": '{"layers": 3}'},
    "empty": {"model.json": ""},
    "strange": {"model.json": "[" * 100_000},
    "weights": {"values.safetensors": "mine"},
    "old": {"model.json": '{"packages": []}', "values.safetensors": ""},
    "other": {"config.json": "{}", "model.safetensors": ""},
    "folders": {},
    "to-source": {},
}
IMPORTED = "PyTorch was imported"
# The arguments after the file, and a part of the expected output.
CASES = [
    ("width=1 --check --no-values", "--check needs the parameters' values"),
    ("width=1 --type bfloat16", "expected float32 or float64, the types of parameters, got bf"),
    ("width=1 --type float16", "expected float32 or float64, the types of parameters, got fl"),
    ("width=1 --compute half", "--compute: expected some of float32, bfloat16, float64, got 'half'"),
    ("width=1 --type int8", "argument --type: invalid choice: 'int8'"),
    ("width=1 --no-vlues", "unrecognized arguments: --no-vlues; did you mean --no-values?"),
    ("width=1 --layers=4", "an argument of the function is given as layers=4"),
    ("width=1 layers", "expected NAME=VALUE, got 'layers'"),
    ("width=1 layers=false", "layers=false: expected layers=False, as in Python"),
    ("width=1 width=2", "expected 'width' once, got it twice"),
    ("width=1 layer=2", "unexpected keyword argument 'layer'; did you mean layers?"),
    ("width=1 q=2", "unexpected keyword argument 'q'; it takes layers, width"),
    ("layers=2", "missing a required argument: 'width'; it takes layers, width"),
    (":mak width=1", "source.py: expected a function 'mak', found none; did you mean make?"),
    (":other", "expected a function 'other', found none; it has make, bert"),
    (":bert", "missing a required argument: 'source'"),
    ("width=1 -o {folder}/source.py", "source.py is a file"),
    ("width=1 -o {folder}/source.py/deeper", "source.py is a file"),
    ("width=1 -o {folder}/foreign", "expected a package or no model.json, got one of someth"),
    ("width=1 -o {folder}/empty", "expected a package or no model.json, got one of something"),
    ("width=1 -o {folder}/strange", "expected a package or no model.json, got one of someth"),
    ("width=1 -o {folder}/weights", "expected a package or no values.safetensors, got one wit"),
    ("width=1 -o {folder}/folders", "folders: expected a file model.json, or none"),
    ("width=1 -o {folder}/to-source", "source.py' for FILE and '"),
    (":bert source={folder}/weights -o {folder}/weights", "weights' for source and '"),
    (":bert source=1 q={folder}/old/values.safetensors -o {folder}/old", "' for q and '"),
    ("width=1 -o {folder}/old", IMPORTED),
    ("width=1 -o {folder}/to-old", IMPORTED),
    ("width=1 -o {folder}/other", IMPORTED),
    # Only running the file can show these faults.
    (":torch", IMPORTED),
    (":bert source=1 more=2", IMPORTED),
    ("width=1", IMPORTED),
]
FILES = [
    ("{folder}/sourc.py", "sourc.py: no such file; did you mean source.py?"),
    ("{folder}/nothing/source.py", "source.py: no such file"),
    ("{folder}", "expected a Python file, got a folder"),
    ("{folder}/source.txt", "expected a Python file, whose name ends in .py"),
    ("{folder}/wrong.py", "wrong.py:2: "),
    ("{folder}/star.py:anything", IMPORTED),
    ("{folder}/dynamic.py:anything", IMPORTED),
]


def main():
    failed = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "stand-in").mkdir()
        for module in ("torch", "safetensors", "sympy"):
            (folder / f"stand-in/{module}.py").write_text(f"raise SystemExit('{IMPORTED}')")
        (folder / "source.py").write_text(SOURCE)
        (folder / "source.txt").write_text(SOURCE)
        for name, files in FOLDERS.items():
            (folder / name).mkdir()
            for file, content in files.items():
                (folder / name / file).write_text(content)
        (folder / "folders/model.json").mkdir()
        (folder / "to-source/model.json").symlink_to("../source.py")
        (folder / "to-old").symlink_to("old")
        (folder / "wrong.py").write_text("import torch\ndef make(:\n")
        (folder / "star.py").write_text("from torch import *\n")
        (folder / "dynamic.py").write_text("globals()['anything'] = print\n")
        cases = [
            *[(f"{{folder}}/source.py{' ' * (text[0] != ':')}{text}", answer)
              for text, answer in CASES],
            *FILES,
        ]  # fmt: skip
        for text, answer in cases:
            arguments = text.format(folder=folder).split()
            if "-o" not in arguments:
                arguments += ["-o", folder / "package"]
            done = subprocess.run(
                [sys.executable, ROOT / "tools/export/chimera-export", *arguments],
                capture_output=True, text=True,
                env={**os.environ, "PYTHONPATH": str(folder / "stand-in"), "COLUMNS": "200"},
            )  # fmt: skip
            output = done.stdout + done.stderr
            good = done.returncode and answer in output and "Traceback" not in output
            print(f"ok   {text}" if good else f"FAIL {text}\n{output}")
            failed += not good
    sys.exit(f"{failed} answers are wrong" if failed else 0)


if __name__ == "__main__":
    main()
