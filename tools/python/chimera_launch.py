# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Starts the programs of the wheel, which are in the folder bin of the package chimera.

This module imports neither chimera nor torch, so that a command starts in a moment."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import pathlib
import sys


class Mismatch(RuntimeError):
    """The installed torch is another version than the programs were built with."""


def _folder_of(package: str) -> pathlib.Path | None:
    spec = importlib.util.find_spec(package)
    places = spec.submodule_search_locations if spec else None
    return pathlib.Path(places[0]) if places else None


def environment(program: str | os.PathLike) -> dict[str, str]:
    """The environment for a program of the wheel: this process's own, with the folder of
    torch's libraries if the program could not find them. Raises Mismatch if torch is
    another version than the one the program was built with. For programs from elsewhere
    the environment is this process's own."""
    own = dict(os.environ)
    program = pathlib.Path(program)
    built = program.parent / "torch-version"
    torch = _folder_of("torch")
    if program.name != "chimera-run" or not built.exists() or torch is None:
        return own
    wanted, found = built.read_text().strip(), importlib.metadata.version("torch")
    if found.split("+")[0].split(".")[:2] != wanted.split(".")[:2]:
        raise Mismatch(
            f"expected torch {wanted}, with which this chimera was built, got {found}: "
            f"pip install 'torch=={wanted}.*'"
        )
    # The programs look for torch beside the package chimera.
    beside = program.parent.parent.parent / "torch/lib"
    if beside.resolve() != (torch / "lib").resolve():
        folders = [torch / "lib", *sorted(torch.parent.glob("nvidia/*/lib"))]
        paths = [*map(str, folders), *filter(None, [own.get("LD_LIBRARY_PATH")])]
        own["LD_LIBRARY_PATH"] = ":".join(paths)
    return own


def main(name: str) -> None:
    """Replaces this process by the program `name` of the wheel, with its arguments."""
    program = _folder_of("chimera") / "bin" / name
    try:
        around = environment(program)
    except Mismatch as error:
        sys.exit(f"{name}: {error}")
    arguments = [name, *sys.argv[1:]]
    if program.with_suffix(".py").exists():
        program, arguments = sys.executable, [
            sys.executable, str(program.with_suffix(".py")), *sys.argv[1:],
        ]  # fmt: skip
    os.execve(program, arguments, around)
