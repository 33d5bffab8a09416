#!/usr/bin/env python3
# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Looks at pages of chimera-show --html in Chromium, without a window.

    build/venv/bin/python test/tools/html.py [--tools DIR] [--screenshots DIR]

tools/setup.sh --browser installs what it needs.
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile
import unittest

from playwright.sync_api import sync_playwright

ROOT = pathlib.Path(__file__).resolve().parents[2]
DRAWN = "performance.getEntriesByName('drawn').length > 0"
# Collects the time from each frame to the next, in ms.
COUNT_FRAMES = """() => {
  window.frames_ = [];
  let last = performance.now();
  const next = (now) => { frames_.push(now - last); last = now; requestAnimationFrame(next); };
  requestAnimationFrame(next);
}"""
LONGEST_OPEN = 3.0  # seconds, for 98,304 actions
LONGEST_FRAME = 100  # ms

parser = argparse.ArgumentParser(
    description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
)
parser.add_argument("--tools", type=pathlib.Path, default=ROOT / "build/release/bin")
parser.add_argument("--screenshots", type=pathlib.Path, help="a folder to keep them")
ARGS, REST = parser.parse_known_args()


class Pages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.playwright = sync_playwright().start()
        # Chromium's own sandbox refuses to run as root.
        cls.browser = cls.playwright.chromium.launch(
            executable_path="/usr/bin/chromium", args=["--no-sandbox"]
        )

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.playwright.stop()
        cls.folder.cleanup()

    def write(self, *arguments):
        """Writes the page of a schedule, and returns its path."""
        path = pathlib.Path(self.folder.name) / f"{self.id().rpartition('.')[2]}.html"
        subprocess.run(
            [ARGS.tools / "chimera-show", *arguments, "--html", path],
            check=True, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        return path

    def open(self, path, scheme="light"):
        page = self.browser.new_page(
            viewport={"width": 1200, "height": 700}, color_scheme=scheme
        )
        self.addCleanup(page.close)
        self.faults = []
        page.on("pageerror", lambda error: self.faults.append(str(error)))
        page.on("console", lambda message: self.faults.append(message.text))
        page.goto(path.as_uri())
        page.wait_for_function(DRAWN, timeout=20000)
        return page

    def end(self, page, name):
        if ARGS.screenshots:
            ARGS.screenshots.mkdir(parents=True, exist_ok=True)
            page.screenshot(path=ARGS.screenshots / f"{name}.png")
        self.assertEqual(self.faults, [])

    def range(self, page):
        return page.evaluate("[view.from, view.to]")

    def test_two_schedules_in_light_and_dark(self):
        path = self.write(
            "-e", "workers=4 micro_batches=8 schedule=chimera,zb-v link=<latency=0.1,send=0.05>"
        )
        papers = []
        for scheme in ("light", "dark"):
            page = self.open(path, scheme)
            papers.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
            # The pointer is on the first action of worker 0.
            x, y = page.evaluate(
                "(() => { const box = place.getBoundingClientRect();"
                " return [box.left + xOf(0.5), box.top + rows[0].top + 5]; })()"
            )
            page.mouse.move(x, y)
            tip = page.locator("#tip").inner_text()
            self.assertRegex(tip, r"^forward 0 of stage 0, down on P0\n0 to 1: 1\n")
            self.assertIn("is needed by", tip)
            self.end(page, f"two-{scheme}")
        self.assertNotEqual(*papers)

    def test_all_reduces_have_rows(self):
        page = self.open(
            self.write("-e", "workers=4 micro_batches=4 schedule=chimera link=<latency=1>")
        )
        self.assertEqual(page.evaluate("rows.length"), 4 + 2)
        x, y = page.evaluate(
            "(() => { const box = place.getBoundingClientRect(), row = rows[4],"
            " span = row.spans[0]; return [box.left + xOf((span.begin + span.end) / 2),"
            " box.top + row.top + 10]; })()"
        )
        page.mouse.move(x, y)
        tip = page.locator("#tip").inner_text()
        self.assertRegex(tip, r"^all-reduce of stage \d on P\d, P\d\n\d+ to \d+: \d+$")
        self.end(page, "all-reduces")

    def test_moving_and_zooming(self):
        page = self.open(self.write("-e", "workers=32 micro_batches=64 schedule=1f1b"))
        whole = self.range(page)
        page.mouse.move(600, 300)
        page.keyboard.down("Control")
        for _ in range(2):
            page.mouse.wheel(0, -200)
        page.keyboard.up("Control")
        page.wait_for_timeout(100)
        near = self.range(page)
        self.assertLess(near[1] - near[0], (whole[1] - whole[0]) / 2)
        page.mouse.down()
        page.mouse.move(400, 200, steps=5)
        page.mouse.up()
        moved = self.range(page)
        self.assertGreater(moved[0], near[0])
        self.assertAlmostEqual(moved[1] - moved[0], near[1] - near[0])
        self.assertAlmostEqual(page.evaluate("view.top"), 100, delta=5)
        page.mouse.wheel(0, 200)
        page.wait_for_timeout(100)
        self.assertGreater(page.evaluate("view.top"), 250)
        self.end(page, "moved")
        page.locator("#rows").focus()
        page.keyboard.press("0")
        self.assertEqual(self.range(page), whole)
        for key in ("+", "ArrowRight", "-", "ArrowLeft", "ArrowDown", "ArrowUp", "Escape"):
            page.keyboard.press(key)
        for value in ("+", "-", "0"):
            page.click(f"button[value='{value}']")
        self.assertEqual(self.range(page), whole)
        self.end(page, "all")

    def test_98304_actions(self):
        page = self.open(self.write("-e", "workers=64 micro_batches=768 schedule=1f1b"))
        opened = page.evaluate("performance.getEntriesByName('drawn')[0].startTime") / 1000
        page.evaluate(COUNT_FRAMES)
        page.mouse.move(500, 190)
        page.keyboard.down("Control")
        for _ in range(40):
            page.mouse.wheel(0, -60)
            page.wait_for_timeout(10)
        page.keyboard.up("Control")
        frames = page.evaluate("frames_.slice(1)")
        print(f"98,304 actions: drawn after {opened:.2f} s; longest of {len(frames)} frames "
              f"{max(frames):.0f} ms")  # fmt: skip
        self.assertLess(opened, LONGEST_OPEN)
        self.assertLess(max(frames), LONGEST_FRAME)
        self.end(page, "many")


unittest.main(argv=[sys.argv[0], *REST], verbosity=2)
