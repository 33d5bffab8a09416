#!/usr/bin/env python3
# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs every command of a document (README.md or a guide), and compares the output.

A document is Markdown. Its fenced blocks are read as follows:

    ```sh                 commands; all of a document run in one bash, in order, in a
                          fresh folder, and each must succeed. `! COMMAND` must fail.
    ```sh gpus=N          commands that run on N software GPUs here. They are left out if
                          those have not been built.
    ```sh needs=REASON    commands that cannot run here: not run. REASON is one of NEEDS.
    ```LANGUAGE file=F    the block is written to the file F.
    ```text               lines of the output of the commands before it, in this order.
                          `…` stands for any text within a line.

README.md runs in a folder that looks like the root of the repository. A guide runs in
an empty folder, and the variable CHIMERA is the root. Exits non-zero if a command fails
or a line of output is missing, and prints the line number of the block."""

import argparse
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

from exporting import PYTHON, ROOT, has

FENCE = re.compile(r"^(\s*)```(.*)$")
MARK = "@@chimera-block"
# The reasons why a command cannot run in this test.
NEEDS = {"gpu", "hosts", "slurm", "network", "install"}
PATIENCE = 3000  # seconds for one document, also on a busy machine


class Block:
    def __init__(self, line, info, text):
        self.line, self.text = line, text
        self.language, *fields = info.split() or [""]
        self.fields = dict(field.split("=", 1) for field in fields)


def blocks_of(path):
    """The fenced blocks of a document."""
    blocks, opened = [], None
    for number, line in enumerate(path.read_text().splitlines(), start=1):
        fence = FENCE.match(line)
        if fence and opened is None:
            opened, info, indent, text = number, fence[2], len(fence[1]), []
        elif fence:
            blocks.append(Block(opened, info, "\n".join(text)))
            opened = None
        elif opened is not None:
            text.append(line[indent:])
    if opened is not None:
        sys.exit(f"{path}:{opened}: expected the end of this block")
    return blocks


def failing(text):
    """Changes each command `! COMMAND` of `text`, so that the shell ends if COMMAND
    succeeds. Bash itself would continue."""
    return re.sub(
        r"^! ((?:.*\\\n)*.*)$",
        lambda m: f"if {m[1]}\nthen echo 'expected this to fail'; exit 1; fi",
        text,
        flags=re.MULTILINE,
    )


def on_gpus(text, count, tools):
    """Commands that run the commands `text` on `count` software GPUs."""
    return (
        f"(PATH={tools / 'software-gpu'}:$PATH\nexport CHIMERA_STAND_IN_GPUS={count}\n"
        f"{text}\n)"
    )


def is_skipped(block, tools):
    """Whether the commands of a block cannot run here."""
    has_gpus = (tools / "software-gpu/chimera-run").exists()
    return "needs" in block.fields or ("gpus" in block.fields and not has_gpus)


def script_of(path, blocks, tools):
    """A bash script that runs the document and marks where each block begins."""
    lines = ["exec 2>&1", "set -eo pipefail"]
    for index, block in enumerate(blocks):
        lines.append(f"echo; echo '{MARK} {index}'")
        needs = block.fields.get("needs")
        if needs and needs not in NEEDS:
            sys.exit(f"{path}:{block.line}: expected needs= one of {sorted(NEEDS)}")
        if "file" in block.fields:
            lines += [f"cat >{block.fields['file']} <<'{MARK}'", block.text, MARK]
        elif block.language == "sh" and not is_skipped(block, tools):
            text = failing(block.text)
            gpus = block.fields.get("gpus")
            lines.append(on_gpus(text, int(gpus), tools) if gpus else text)
    return "\n".join(lines) + "\n"


def missing_line(expected, output):
    """The first line of `expected` that `output` lacks, or None."""
    rest = iter(output.splitlines())
    for line in expected.splitlines():
        if line.strip() in ("", "…"):
            continue
        pattern = ".*".join(re.escape(part) for part in line.strip().split("…"))
        if not any(re.fullmatch(pattern, got.strip()) for got in rest):
            return line
    return None


def clone_like(folder):
    """Makes `folder` look like the root of the repository."""
    for entry in ROOT.iterdir():
        if entry.name not in ("build", ".git"):
            (folder / entry.name).symlink_to(entry)
    (folder / "build").mkdir()


def shell(script, folder, environment):
    """Runs a bash script. Returns its status and output. If the script has not ended
    after PATIENCE seconds, kills its whole process group and returns the status
    None."""
    with subprocess.Popen(
        ["bash", "-c", script],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as process:
        try:
            output, _ = process.communicate(timeout=PATIENCE)
            return process.returncode, output
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return None, process.communicate()[0]


def newest_texts(folder):
    """For an error: the last characters of the text files that a document wrote
    last."""
    files = sorted(folder.glob("*.txt"), key=lambda file: file.stat().st_mtime)
    return "".join(
        f"\n--- the end of {file.name}:\n{file.read_text(errors='replace')[-1000:]}"
        for file in files[-4:]
    )


def run(path, tools):
    blocks = blocks_of(path)
    commands = "\n".join(block.text for block in blocks if block.language == "sh")
    if "mpirun" in commands and not shutil.which("mpirun"):
        return print("skipped: no mpirun")
    if "chimera-export" in commands and not has(PYTHON, "torch", "transformers"):
        return
    with tempfile.TemporaryDirectory() as folder:
        if path == ROOT / "README.md":
            clone_like(pathlib.Path(folder))
        environment = dict(
            os.environ,
            CHIMERA=str(ROOT),
            PATH=f"{tools}{os.pathsep}{os.environ['PATH']}",
            OMPI_ALLOW_RUN_AS_ROOT="1",
            OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
            HF_HUB_OFFLINE="1",
            COLUMNS="160",
        )
        status, output = shell(script_of(path, blocks, tools), folder, environment)
        files = newest_texts(pathlib.Path(folder)) if status != 0 else ""
    parts = re.split(rf"\n{MARK} (\d+)\n", "\n" + output)
    outputs = dict(zip(map(int, parts[1::2]), parts[2::2]))
    last = max(outputs, default=0)
    if status != 0:
        block = blocks[last]
        got = f"none in {PATIENCE} s" if status is None else status
        sys.exit(
            f"{path}:{block.line}: expected status 0 of this block, got {got}\n"
            f"{block.text}\n--- its output:\n{outputs.get(last)}{files}"
        )
    ran, compared, skipped, output = 0, 0, 0, None
    for index, block in enumerate(blocks):
        if block.language == "sh" and "file" not in block.fields:
            output = None if is_skipped(block, tools) else outputs[index]
            ran += output is not None
            skipped += output is None
        elif block.language == "text" and "file" not in block.fields:
            if output is None:
                continue
            compared += 1
            if line := missing_line(block.text, output):
                sys.exit(
                    f"{path}:{block.line}: expected this line in the output of the "
                    f"commands before it:\n{line}\n--- the output:\n{output}"
                )
    print(f"{path.name}: {ran} blocks ran, {compared} outputs compared, {skipped} skipped")
    if ran == 0:
        sys.exit(f"{path}: expected commands that run, got none")


parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("document", type=pathlib.Path)
parser.add_argument("--tools", required=True, help="folder of chimera's tools")
arguments = parser.parse_args()
run(arguments.document.resolve(), pathlib.Path(arguments.tools).resolve())
