# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which Python runs the commands of this folder."""

import importlib.util
import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]


def run_with(*modules):
    """Goes on where the modules are there; else starts the command again by the
    Python that tools/setup.sh installs, and ends it where that has none either."""
    if all(importlib.util.find_spec(module) for module in modules):
        return
    python = ROOT / "build/venv/bin/python"
    if python.exists() and pathlib.Path(sys.prefix).resolve() != (ROOT / "build/venv").resolve():
        os.execv(python, [str(python), *sys.argv])
    sys.exit(
        f"{pathlib.Path(sys.argv[0]).name}: expected Python's {', '.join(modules)}, "
        f"found none: run tools/setup.sh --export"
    )
