#!/usr/bin/env python3
# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests the Python package chimera: its numbers must be those of chimera-show.

usage: schedules.py CHIMERA_SHOW TORCH_CSV_FOLDER
"""

import decimal
import doctest
import fractions
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
import warnings

import chimera

CHIMERA_SHOW, PEERS = sys.argv[1:]


def shown(*arguments):
    """The reports of chimera-show."""
    output = subprocess.run(
        [CHIMERA_SHOW, *arguments, "--json", "-"], capture_output=True, text=True,
        check=True,
    ).stdout  # fmt: skip
    return json.loads(output)


class Agreement(unittest.TestCase):
    """Python and the command line give equal results."""

    maxDiff = None

    def expect_equal(self, pipeline, *arguments):
        (expected,) = shown(*arguments)
        got = pipeline.report()
        # Only the command line names the pipeline and its sizes.
        for report in (expected, got):
            for name in ("pipeline", "name", "title", "receive_window"):
                report.pop(name, None)
        self.assertEqual(got, expected)

    def test_every_schedule_of_many_sizes(self):
        checked = 0
        for kind in chimera.schedules():
            for workers in (1, 2, 3, 4, 8):
                for micro_batches in (1, 4, 8, 12):
                    words = f"workers={workers} micro_batches={micro_batches}"
                    try:
                        pipeline = chimera.Pipeline(
                            workers=workers, micro_batches=micro_batches,
                            schedule=kind.name,
                        )  # fmt: skip
                    except ValueError:
                        refused = subprocess.run(
                            [CHIMERA_SHOW, "-e", f"{words} schedule={kind.name}"],
                            capture_output=True,
                        )
                        self.assertEqual(refused.returncode, 1, words)
                        continue
                    self.expect_equal(pipeline, "-e", f"{words} schedule={kind.name}")
                    checked += 1
        self.assertGreater(checked, 80)

    def test_costs_links_and_clauses(self):
        self.expect_equal(
            chimera.Pipeline(
                workers=4, micro_batches=8, schedule="zb-v",
                costs=chimera.Costs(forward=1.5, backward=3.2, weight_gradient=1.1),
                link=chimera.Link(latency=0.25, send=0.1, receive=0.05), unit="ms",
            ),
            "-e", "workers=4 micro_batches=8 schedule=zb-v", "--forward", "1.5",
            "--backward", "3.2", "--weight-gradient", "1.1", "--unit", "ms", "--p2p",
            "0.25", "--send", "0.1", "--receive", "0.05",
        )  # fmt: skip
        self.expect_equal(
            chimera.Pipeline(4, 4, 16, "1f1b", recompute=True, split_backward=True),
            "-e", "stages=4 micro_batches=16 schedule=1f1b recompute=all split_backward",
        )  # fmt: skip
        self.expect_equal(
            chimera.Pipeline(
                8, 8, 16, "chimera",
                options={"pipelines": 4, "concatenation": "doubling"},
            ),
            "-e",
            "stages=8 micro_batches=16 schedule=chimera{pipelines=4,concatenation=doubling}",
        )  # fmt: skip

    def test_orders(self):
        orders = ["0F0 0F1 0B0 0B1", "1F0 1B0 1F1 1B1"]
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            file.write("\n".join(orders) + "\n")
            file.flush()
            self.expect_equal(chimera.Schedule.from_orders(orders), file.name)

    def test_files_of_torch(self):
        checked = 0
        for path in sorted(pathlib.Path(PEERS).rglob("*.csv")):
            text = path.read_bytes().decode()
            if "SEND_F" in text:
                with self.assertRaisesRegex(ValueError, "a lowered program"):
                    chimera.Schedule.from_torch_csv(path)
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                schedule = chimera.Schedule.from_torch_csv(path)
            self.expect_equal(schedule, str(path))
            self.assertEqual(schedule.to_torch_csv(), text, path)
            checked += 1
        self.assertGreaterEqual(checked, 4)

    def test_grid_is_that_of_the_command_line(self):
        pipeline = chimera.Pipeline(workers=4, micro_batches=4, schedule="chimera")
        words = "workers=4 micro_batches=4 schedule=chimera"
        output = subprocess.run(
            [CHIMERA_SHOW, "-e", words], capture_output=True, text=True, check=True
        ).stdout
        self.assertEqual(pipeline.grid(), output)


class Numbers(unittest.TestCase):
    def test_known_times(self):
        """1F1B: (N + D - 1) (forward + backward), here (8 + 3) · 3."""
        step = chimera.Pipeline(stages=4, micro_batches=8).simulate()
        self.assertEqual(step.makespan, 33)
        self.assertEqual(step.step_time, 33)
        self.assertEqual(step.peak_activations, [4, 3, 2, 1])
        self.assertAlmostEqual(step.bubbles["ratio"], 3 / 11)
        self.assertEqual(step.starts[0][0], 0)
        self.assertEqual(max(max(row) for row in step.ends), step.makespan)
        self.assertEqual(step.gap, 0)

    def test_exact_times_of_every_kind(self):
        for forward in (0.1, "0.1", fractions.Fraction(1, 10), decimal.Decimal("0.1")):
            if isinstance(forward, str):
                with self.assertRaises(TypeError):
                    chimera.Costs(forward=forward)
                continue
            costs = chimera.Costs(forward=forward, per="stage")
            step = chimera.Pipeline(stages=4, micro_batches=8, costs=costs).simulate()
            self.assertEqual(step.makespan, 3.3)
        # Floats with 16 digits are rounded to 13.
        measured = chimera.Costs(forward=1 / 3, backward=7.123456789012345, per="stage")
        step = chimera.Pipeline(stages=4, micro_batches=8, costs=measured).simulate()
        self.assertAlmostEqual(step.makespan, 11 * (1 / 3 + 7.123456789012345), places=10)
        thirds = chimera.Costs(forward=fractions.Fraction(1, 3), backward=1)
        step = chimera.Pipeline(stages=2, micro_batches=2, costs=thirds).simulate()
        self.assertEqual(step.makespan, 4)

    def test_costs_of_each_stage(self):
        alike = [chimera.StageCosts(forward=0.5, backward=1.25)] * 4
        own = chimera.Pipeline(stages=4, micro_batches=8, costs=alike).simulate()
        uniform = chimera.Costs(forward=0.5, backward=1.25, per="stage")
        same = chimera.Pipeline(stages=4, micro_batches=8, costs=uniform).simulate()
        self.assertEqual((own.starts, own.ends), (same.starts, same.ends))
        slow = [*alike[:3], chimera.StageCosts(forward=2, backward=4)]
        step = chimera.Pipeline(stages=4, micro_batches=8, costs=slow).simulate()
        self.assertGreater(step.makespan, 8 * 6)

    def test_messages_and_sizes(self):
        sizes = chimera.Sizes(weights=100, stash=10, boundary=1 << 20)
        link = chimera.Link(latency_per_mib=0.5)
        free = chimera.Pipeline(stages=2, micro_batches=2).simulate()
        step = chimera.Pipeline(stages=2, micro_batches=2, sizes=sizes, link=link).simulate()
        self.assertEqual(step.makespan, free.makespan + 1)
        self.assertGreater(step.peak_bytes[0], 2 * 100 + 2 * 10)

    def test_pairs_and_joint_weight_gradients(self):
        costs = [chimera.StageCosts(4, 8, paired_forward=1)] * 2
        rows = ["F0 F1+B0 B1", "F0 B0 F1 B1"]
        step = chimera.Schedule.from_orders(rows, costs=costs).simulate()
        alone = chimera.Schedule.from_orders(
            ["F0 F1 B0 B1", "F0 B0 F1 B1"], costs=costs
        ).simulate()
        self.assertEqual(sum(step.busy), sum(alone.busy) - 3)


class Errors(unittest.TestCase):
    def test_say_what_was_expected(self):
        for error, text, call in (
            (TypeError, "expected micro_batches=NUMBER", lambda: chimera.Pipeline(4)),
            (TypeError, "neither", lambda: chimera.Pipeline(micro_batches=4)),
            (ValueError, "schedule to be one of .*got 'dualpipe'",
             lambda: chimera.Pipeline(4, 4, 4, "dualpipe")),
            (ValueError, "micro_batches from 1 to 65535, got 0",
             lambda: chimera.Pipeline(4, 4, 0)),
            (ValueError, "at most 4194304 actions",
             lambda: chimera.Pipeline(65535, 65535, 65535)),
            (TypeError, "whole number for stages, got 4.0", lambda: chimera.Pipeline(4.0, 4, 4)),
            (ValueError, "zb-v: ", lambda: chimera.Pipeline(4, 4, 4, "zb-v")),
            (ValueError, "chimera: .*pipeline",
             lambda: chimera.Pipeline(4, 4, 4, "chimera", options={"pipeline": 2})),
            (ValueError, "costs of 4 stages, got 1",
             lambda: chimera.Pipeline(4, 4, 4, costs=[chimera.StageCosts()])),
            (ValueError, "unit to be one of",
             lambda: chimera.Pipeline(4, 4, 4, unit="parsec")),
            (ValueError, "all_reduce to be",
             lambda: chimera.Pipeline(4, 4, 4, all_reduce="never")),
            (ValueError, "finite", lambda: chimera.Costs(forward=float("nan"))),
            (ValueError, "at least 1e-13, since the longest is 1e-300, got 1e-300",
             lambda: chimera.Pipeline(4, 4, 4, costs=chimera.Costs(forward=1e-300))),
            (ValueError, "orders:1:4: error: expected a word such as",
             lambda: chimera.Schedule.from_orders(["F0 X0"])),
            (ValueError, "to recompute from 0 to 3, got 4",
             lambda: chimera.Pipeline(4, 4, 4, recompute=[4])),
        ):  # fmt: skip
            with self.subTest(text=text), self.assertRaisesRegex(error, text):
                call()

    def test_a_deadlock_is_a_violation(self):
        schedule = chimera.Schedule.from_orders(["F0 B0 F1 B1", "F1 F0 B0 B1"])
        violation = schedule.verify()[0]
        self.assertEqual(violation.constraint, "deadlock")
        self.assertEqual((violation.worker, violation.position), (0, 1))
        self.assertIn("deadlock", str(violation))
        for call in (schedule.simulate, schedule.report, schedule.svg, schedule.grid):
            with self.assertRaisesRegex(ValueError, "expected a valid schedule: P0"):
                call()

    def test_what_torch_cannot_hold(self):
        pipeline = chimera.Pipeline(4, 4, 4, "chimera")
        with self.assertRaisesRegex(ValueError, "stage"):
            pipeline.to_torch_csv()

    def test_num_microbatches(self):
        with self.assertWarnsRegex(UserWarning, "called micro_batches here"):
            pipeline = chimera.Pipeline(4, num_microbatches=8)
        self.assertEqual(pipeline.micro_batches, 8)


class Documents(unittest.TestCase):
    def test_examples_in_docstrings(self):
        self.assertEqual(doctest.testmod(chimera), (0, 4))

    def test_module_compiles(self):
        for pipeline in (
            chimera.Pipeline(8, 4, 8, "zb-v"),
            chimera.Pipeline(4, 4, 8, "chimera", options={"concatenation": "doubling"}),
            chimera.Pipeline(4, 4, 8, split_backward=True, recompute=[1], all_reduce="eager"),
            chimera.Schedule.from_orders(["0F0 0F1 0B0 0B1", "1F0 1B0 1F1 1B1"]),
        ):
            with tempfile.NamedTemporaryFile("w", suffix=".mlir") as file:
                file.write(pipeline.to_mlir())
                file.flush()
                (report,) = shown(file.name)
            self.assertEqual(report["makespan"], pipeline.simulate().makespan)

    def test_orders_are_read_again(self):
        pipeline = chimera.Pipeline(4, 4, 8, "chimera")
        again = chimera.Schedule.from_orders(pipeline.order)
        self.assertEqual(again.simulate().ends, pipeline.simulate().ends)

    def test_pictures(self):
        pipeline = chimera.Pipeline(4, 4, 8)
        frame = pipeline._repr_html_()
        self.assertTrue(frame.startswith('<iframe srcdoc="&lt;!doctype html'))
        self.assertEqual(frame.count('"'), 4)  # the page ends neither of the attributes
        compared = chimera.compare([pipeline, chimera.Pipeline(4, 4, 8, "gpipe")])
        self.assertIn("<iframe", compared._repr_html_())
        self.assertIn("<svg", pipeline.svg(cell_width=9, title=False))
        self.assertIn("traceEvents", json.loads(pipeline.trace()))
        self.assertIsNone(chimera.Pipeline(64, 64, 2048)._repr_html_())

    def test_page(self):
        schedules = [chimera.Pipeline(4, 4, 8, name) for name in ("1f1b", "gpipe")]
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "page.html"
            text = chimera.page(schedules, path)
            self.assertEqual(path.read_text(encoding="utf-8"), text)
        for schedule in schedules:
            self.assertIn(f'"title":"{schedule._timed.title}"', text)
        with self.assertRaises(TypeError):
            chimera.page(["F0 B0"])

    def test_comparison(self):
        compared = chimera.compare(
            chimera.Pipeline(workers=4, micro_batches=8, schedule=name)
            for name in ("1f1b", "zb-v", "chimera")
        )
        times = [row["step"] for row in compared.rows]
        self.assertEqual(times, sorted(times))
        rows = str(compared).splitlines()[1:4]
        self.assertEqual([row.split()[0] for row in rows], ["zb-v", "chimera", "1f1b"])
        with self.assertRaisesRegex(ValueError, "got none"):
            chimera.compare([])


unittest.main(argv=sys.argv[:1], verbosity=2)
