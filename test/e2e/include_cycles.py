#!/usr/bin/env python3
# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests that no modules of a folder include each other in a cycle. A module is a header
and the source of the same name. Prints the number of folders and modules."""

import collections
import graphlib
import pathlib
import re
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def modules_of(folder, root):
    """The modules of a folder. For each one, the modules of this folder that it
    includes."""
    modules = collections.defaultdict(set)
    for file in folder.iterdir():
        if file.suffix in (".h", ".cpp", ".cu"):
            included = modules[file.stem]
            for name in re.findall(r'^#include "([^"]+)"', file.read_text(), re.M):
                path = root / name
                if path.parent == folder and path.stem != file.stem:
                    included.add(path.stem)
    return modules


def cycle_of(modules):
    """The names of a cycle, or an empty string."""
    try:
        graphlib.TopologicalSorter(modules).prepare()
    except graphlib.CycleError as error:
        return " includes ".join(reversed(error.args[1]))
    return ""


class Test(unittest.TestCase):
    def test_no_modules_include_each_other(self):
        folders = count = 0
        for top in ("compiler", "dialect", "passes", "runtime", "tools"):
            for folder in [ROOT / top, *filter(pathlib.Path.is_dir, (ROOT / top).rglob("*"))]:
                modules = modules_of(folder, ROOT)
                folders += bool(modules)
                count += len(modules)
                with self.subTest(str(folder.relative_to(ROOT))):
                    self.assertEqual(cycle_of(modules), "")
        print(f"{folders} folders, {count} modules")
        self.assertGreater(count, 300)

    def test_a_cycle_is_found(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "A.h").write_text('#include "B.h"\n')
            (folder / "B.h").write_text("")
            (folder / "A.cpp").write_text('#include "A.h"\n')
            self.assertEqual(cycle_of(modules_of(folder, folder)), "")
            (folder / "B.cpp").write_text('#include "A.h"\n#include <C.h>\n')
            self.assertIn(cycle_of(modules_of(folder, folder)),
                          ("A includes B includes A", "B includes A includes B"))


unittest.main(verbosity=2)
