#!/usr/bin/env python3
# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs a notebook, and checks that its cells show what its text promises.

usage: notebook.py NOTEBOOK
"""

import pathlib
import sys
import unittest

import nbclient
import nbformat

NOTEBOOK = pathlib.Path(sys.argv[1])
PATIENCE = 600  # seconds for a cell, also on a busy machine


class Notebook(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.stored = nbformat.read(NOTEBOOK, as_version=4)
        # The kernel fails, and so does the test, if a cell raises an exception.
        cls.cells = [
            cell
            for cell in nbclient.NotebookClient(
                nbformat.read(NOTEBOOK, as_version=4), timeout=PATIENCE, kernel_name="python3"
            ).execute().cells
            if cell.cell_type == "code"
        ]  # fmt: skip

    def output_of(self, word, kind):
        """The outputs of one kind of the only cell with `word`."""
        (cell,) = [cell for cell in self.cells if word in cell.source]
        if kind == "text":
            return "".join(output.text for output in cell.outputs if "text" in output)
        return "".join(
            output.data[kind] for output in cell.outputs if kind in output.get("data", {})
        )

    def test_is_stored_without_outputs(self):
        for cell in self.stored.cells:
            self.assertEqual(cell.get("outputs", []), [])
            self.assertIsNone(cell.get("execution_count"))

    def test_shows_pages(self):
        for word, titles in (("import chimera", ["1f1b"]), ("chimera.compare", ["gpipe", "zb-v"])):
            page = self.output_of(word, "text/html")
            self.assertIn("<iframe srcdoc=", page)
            for title in titles:
                self.assertIn(f"&quot;title&quot;:&quot;{title}, ", page)

    def test_plots(self):
        self.assertGreater(len(self.output_of("matplotlib", "image/png")), 10000)

    def test_prints(self):
        for word, text in (
            ("step takes", "one step takes 33.0\nthe workers are idle for 27.3% of it\n"),
            ("unit=\"ms\"", " GiB on a worker\nno schedule is faster than "),
            ("wrong.verify", "deadlock"),
            ("right.verify", "[]\n"),
            ("to_torch_csv", "0F0,0F1,0B0,0B1"),
            ("to_torch_csv", "chimera.pipeline"),
        ):
            self.assertIn(text, self.output_of(word, "text"))


unittest.main(argv=sys.argv[:1], verbosity=2)
