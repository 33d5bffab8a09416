# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The command-line tools, which compile, plan and train."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess

import chimera_launch


class Error(RuntimeError):
    """A tool has failed. The text is what the tool says."""


def find(name: str) -> str:
    """The path of a tool: in the folder of the environment variable CHIMERA_TOOLS, in this
    package, or on PATH. Raises FileNotFoundError if there is none."""
    given = os.environ.get("CHIMERA_TOOLS")
    if given:
        found = shutil.which(name, path=given)
    else:
        found = shutil.which(name, path=pathlib.Path(__file__).parent / "bin")
        found = found or shutil.which(name)
    if not found:
        raise FileNotFoundError(
            f"expected {name} "
            + (f"in {given} (CHIMERA_TOOLS)" if given else "on PATH")
            + ": install a wheel with the tools, or build the project and set CHIMERA_TOOLS "
            "to its build/release/bin"
        )
    return found


def quoted(path: os.PathLike) -> str:
    """The path as the content of a string of a description."""
    return "".join(
        chr(byte) if 32 <= byte < 127 and chr(byte) not in '"\\' else f"\\{byte:02x}"
        for byte in os.fsencode(path)
    )


def options(given: dict[str, object]) -> list[str]:
    """The command line with these options: `learning_rate=0.1` becomes --learning-rate
    0.1, True an option without a value, a list one option for each of its elements. None
    and False are left out."""
    words = []
    for name, value in given.items():
        option = "--" + name.replace("_", "-")
        for each in value if isinstance(value, (list, tuple)) else [value]:
            if each is True:
                words.append(option)
            elif each is not None and each is not False:
                words += [option, os.fspath(each) if isinstance(each, os.PathLike) else str(each)]
    return words


def run(name: str, *arguments: object, text: str | None = None) -> str:
    """Runs a tool and returns its output. `text` is its standard input. Raises Error if it
    fails."""
    command = [find(name), *map(str, arguments)]
    result = subprocess.run(
        command, input=text, capture_output=True, text=True,
        env=chimera_launch.environment(command[0]),
    )  # fmt: skip
    if result.returncode != 0:
        raise Error(result.stderr.strip() or f"{name} ended with {result.returncode}")
    return result.stdout
