# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Finds the Python that runs the commands of this folder."""

import importlib.util
import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]


def run_with(*modules):
    """Returns if this Python has the modules. Otherwise restarts the command with the
    Python that tools/setup.sh installs. Exits with an error if that Python is running
    already or does not exist."""
    missing = [module for module in modules if not importlib.util.find_spec(module)]
    if not missing:
        return
    python = ROOT / "build/venv/bin/python"
    if python.exists() and pathlib.Path(sys.prefix).resolve() != (ROOT / "build/venv").resolve():
        os.execv(python, [str(python), *sys.argv])
    is_source = (ROOT / "tools/setup.sh").exists()
    advice = "run tools/setup.sh --export" if is_source else f"pip install {' '.join(missing)}"
    sys.exit(
        f"{pathlib.Path(sys.argv[0]).stem}: expected Python's {', '.join(modules)}, "
        f"missing: {', '.join(missing)}: {advice}"
    )
