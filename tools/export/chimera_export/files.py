# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The files of a package."""

import json
import os
import pathlib

import safetensors.torch

from .arguments import MODEL_FILE, VALUES_FILE
from .package import names_of


_SUFFIX = f".{os.getpid()}.part"  # of temporary files


def write(packages, model, folder, with_values, archives):
    """Writes all files or none. `packages` are the packages of one model. If a file is a
    symbolic link, writes the link's target. `archives` has the archives of native code by
    digest."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    was_package, targets = (folder / MODEL_FILE).exists(), {}

    def save(name, to):
        target = pathlib.Path(os.path.realpath(folder / name))
        temporary = target.with_name(f"{target.name}{_SUFFIX}")
        targets[temporary] = target
        to(temporary)

    try:
        if archives:
            (folder / "native").mkdir(exist_ok=True)
        for digest, content in archives.items():
            save(f"native/{digest}.pt2", lambda path: path.write_bytes(content))
        if with_values:
            used = names_of(packages[0])
            values = {
                name: p.detach().contiguous()
                for name, p in model.named_parameters()
                if name in used
            }
            save(VALUES_FILE, lambda path: _save(values, path))
        text = json.dumps({"packages": packages}, separators=(",", ":"))
        save(MODEL_FILE, lambda path: path.write_text(text))
        for temporary, target in targets.items():
            temporary.replace(target)
    finally:
        for temporary in targets:
            temporary.unlink(missing_ok=True)
    if was_package:  # otherwise these files do not belong to a package
        for old in folder.glob("native/*.pt2"):
            if old.stem not in archives:
                old.unlink()
        if not with_values:
            (folder / VALUES_FILE).unlink(missing_ok=True)


def _save(values, path):
    path.touch()
    mode = path.stat().st_mode
    try:
        safetensors.torch.save_file(values, path)
        path.chmod(mode)  # the library makes files that only their owner can read
    except safetensors.SafetensorError as error:
        raise OSError(f"{str(path).removesuffix(_SUFFIX)}: {error}") from error
