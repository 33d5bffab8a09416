# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions that the scripts that export models share."""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

from forks import restart_with, run_script
from grid import in_parallel

ROOT = pathlib.Path(__file__).resolve().parents[2]
PYTHON = ROOT / "build/venv/bin/python"
EXPORT = ROOT / "tools/export/chimera-export"


def has(python, *modules):
    """Whether a Python has the modules. If not, prints what is missing."""
    found = subprocess.run(
        [str(python), "-c", f"import {', '.join(modules)}"], capture_output=True
    )
    if found.returncode:
        print(f"skipped: no Python with {', '.join(modules)}")
    return found.returncode == 0


def run_inside(description, modules, inside, exports=True):
    """Calls the function `inside` under a Python that has the modules: that of build/venv,
    or the one of the option --python. If it lacks some, prints which. Forks have the
    modules in memory and, if `exports`, what an export needs."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--python", default=PYTHON)
    if restart_with(parser.parse_args().python, *modules, exports=exports):
        inside()


def of_type(name):
    """Options to export a model with parameters of a type, for runs in this type alone.
    Traces for other types would take time."""
    return ["--type", name, "--compute", name]


def count_of_parameters(output):
    """The number of parameters that chimera-export prints."""
    return int(re.search(r"([\d,]+) parameters", output)[1].replace(",", ""))


def export(package, model, arguments, *options):
    """Exports a model of examples/models to the folder `package`. Returns the number of
    the model's parameters."""
    output = run_script(
        EXPORT, ROOT / f"examples/models/{model}.py", *arguments.split(), *options,
        "-o", package,
    )  # fmt: skip
    return count_of_parameters(output)


def check_each(check, cases, at_end=lambda: ([], 0)):
    """Calls `check(folder, case)` for each case, two at a time, and then `at_end()`.
    Each call returns lines to print and the number of failures. Prints the lines. Ends
    the script with an error if there was a failure."""
    failed = 0
    with tempfile.TemporaryDirectory() as name:

        def one(numbered):
            number, case = numbered
            folder = pathlib.Path(name) / str(number)
            folder.mkdir()
            return check(folder, case)

        for lines, count in in_parallel(one, list(enumerate(cases))):
            print("\n".join(lines), flush=True)
            failed += count
    lines, count = at_end()
    print("\n".join(lines))
    failed += count
    sys.exit(f"{failed} comparisons failed" if failed else 0)
