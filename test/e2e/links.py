#!/usr/bin/env python3
# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks the Markdown files of this repository: each relative link must lead to a file
or folder, and each `#heading` to a heading of that file. README.md must have at most
150 lines. Links to the web are not checked. Exits non-zero with a line for each
fault."""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
MOST_LINES = 150  # of README.md
LINK = re.compile(r"\[[^\]]*\]\(([^()\s]+)\)")


def text_of(path):
    """The text of a file, without fenced blocks and code. Brackets in code are no
    links."""
    text = re.sub(r"^\s*```.*?^\s*```", "", path.read_text(), flags=re.M | re.S)
    return re.sub(r"`[^`\n]*`", "", text)


def anchors_of(path):
    """The anchors of a file's headings, as GitHub makes them."""
    return {
        re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")
        for heading in re.findall(r"^#+ +(.*)$", path.read_text(), re.M)
    }


def faults_of(path):
    for target in LINK.findall(text_of(path)):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        file = (path.parent / name).resolve() if name else path
        if not file.exists():
            yield f"expected a file or folder {target}"
        elif anchor and file.suffix == ".md" and anchor not in anchors_of(file):
            yield f"expected a heading #{anchor} in {name or path.name}"


listed = subprocess.run(
    ["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True
)
# An unpacked archive is no git repository, so search for the files.
files = (
    [ROOT / name for name in listed.stdout.split()]
    if listed.returncode == 0
    else [f for f in ROOT.rglob("*.md") if "build" not in f.relative_to(ROOT).parts]
)
faults = [
    f"{path.relative_to(ROOT)}: {fault}" for path in files for fault in faults_of(path)
]
lines = len((ROOT / "README.md").read_text().splitlines())
if lines > MOST_LINES:
    faults.append(f"README.md: expected at most {MOST_LINES} lines, got {lines}")
print("\n".join(faults) or f"{len(files)} files, no dead link")
sys.exit(bool(faults))
