#!/usr/bin/env python3
# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests that no modules of a folder include each other in a cycle, and no folders do. A
module is a header and the source of the same name. Prints the number of folders and
modules."""

import collections
import graphlib
import pathlib
import re
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOPS = ("compiler", "dialect", "passes", "runtime", "tools")


def includes_in(folder, root):
    """The sources of a folder, each with the project's files that it includes."""
    for file in folder.iterdir():
        if file.suffix in (".h", ".cpp", ".cu", ".def"):
            names = re.findall(r'^#include "([^"]+)"', file.read_text(), re.M)
            yield file, [root / name for name in names if (root / name).exists()]


def modules_of(folder, root):
    """The modules of a folder. For each one, the modules of this folder that it
    includes."""
    modules = collections.defaultdict(set)
    for file, included in includes_in(folder, root):
        modules[file.stem] |= {
            other.stem
            for other in included
            if other.parent == folder and other.stem != file.stem
        }
    return modules


def folders_of(root, tops):
    """The folders below `tops`. For each one, the folders whose files it includes."""
    folders = {}
    for top in tops:
        for folder in [root / top, *filter(pathlib.Path.is_dir, (root / top).rglob("*"))]:
            folders[folder.relative_to(root).as_posix()] = {
                other.parent.relative_to(root).as_posix()
                for _, included in includes_in(folder, root)
                for other in included
                if other.parent != folder
            }
    return folders


def cycle_of(graph):
    """The names of a cycle, or an empty string."""
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return " includes ".join(reversed(error.args[1]))
    return ""


class Test(unittest.TestCase):
    def test_no_modules_or_folders_include_each_other(self):
        folders = folders_of(ROOT, TOPS)
        count = 0
        for folder in folders:
            modules = modules_of(ROOT / folder, ROOT)
            count += len(modules)
            with self.subTest(folder):
                self.assertEqual(cycle_of(modules), "")
        self.assertEqual(cycle_of(folders), "")
        print(f"{len(folders)} folders, {count} modules")
        self.assertGreater(count, 300)

    def test_cycles_are_found(self):
        with tempfile.TemporaryDirectory() as name:
            root = pathlib.Path(name)
            for folder in ("a", "a/b"):
                (root / folder).mkdir()
            (root / "a/A.h").write_text('#include "a/B.h"\n#include "a/b/C.h"\n')
            for file in ("a/A.cpp", "a/B.h", "a/b/C.h"):
                (root / file).write_text('#include "a/A.h"\n' * file.endswith(".cpp"))
            self.assertEqual(cycle_of(modules_of(root / "a", root)), "")
            self.assertEqual(cycle_of(folders_of(root, ["a"])), "")
            (root / "a/B.cpp").write_text('#include "a/A.h"\n#include <C.h>\n')
            self.assertIn(cycle_of(modules_of(root / "a", root)),
                          ("A includes B includes A", "B includes A includes B"))
            (root / "a/b/C.cpp").write_text('#include "a/B.h"\n')
            self.assertIn(cycle_of(folders_of(root, ["a"])),
                          ("a includes a/b includes a", "a/b includes a includes a/b"))


unittest.main(verbosity=2)
