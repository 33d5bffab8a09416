#!/usr/bin/env python3
"""The profiles of runs: their times and fields. The errors of --profile and --trace.

usage: profiles.py CHIMERA_RUN WRITE_SAMPLE [MPIRUN]
"""
import json
import os
import sys
import unittest

from runs import MPIRUN, Runs


class Test(Runs):
    def test_times_of_synthetic_stages(self):
        program, file = self.sample("--bidirectional"), self.path("profile")
        for ranks in (0, 4) if MPIRUN else (0,):
            self.log_of(program, "--stages", "synthetic", "--unit-ns", "1e6",
                        "--steps", "3", "--profile", file, ranks=ranks)
            with open(file) as text:
                profile = json.load(text)
            self.assertEqual([s["stage"] for s in profile["stages"]],
                             list(range(4)))
            for stage in profile["stages"]:
                # The profile leaves out the first step.
                self.assertEqual(stage["forward"]["count"], 16)
                self.assertGreaterEqual(stage["forward"]["min"], 1_000_000)
                self.assertGreaterEqual(stage["backward"]["min"], 2_000_000)
            for rank, entry in enumerate(profile["ranks"]):
                self.assertEqual(entry["rank"], rank)
                self.assertGreater(
                    entry["waits"]["receive_activation"]["median"], 0)
            self.assertEqual(profile["steps"]["later"]["count"], 2)
            self.assertEqual(profile["computed_by"], "synthetic")
            # Ranks that sleep need no core.
            self.assertNotIn("cores_per_rank", profile)
            self.assertNotIn("model", profile)
            os.remove(file)

    def test_describes_its_run(self):
        file = self.path("profile")
        result = self.run_it(*self.training("--profile", file))
        self.assertEqual(result.returncode, 0, result.stderr)
        with open(file) as text:
            profile = json.load(text)
        self.assertEqual(profile["computed_by"], "model")
        self.assertEqual(profile["threads"], 1)
        ranks = profile["workers"] * profile["copies"]
        # A CPU quota may allow fewer cores than the machine has.
        self.assertIn(profile["cores_per_rank"] * ranks,
                      range(1, len(os.sched_getaffinity(0)) + 1))
        layers = [stage["layers"] for stage in profile["stages"]]
        # The stages have consecutive ranges of layers, including embedding and head.
        self.assertEqual(layers[0][0], 0)
        self.assertEqual([last for _, last in layers],
                         [first for first, _ in layers[1:]]
                         + [profile["model"]["layers"]])
        self.assertEqual(len(profile["model"]["parameters"]),
                         profile["model"]["layers"])
        self.assertTrue(profile["model"]["sample_bytes"])
        self.assertIn("learning_rate", profile["optimizer"])

    def test_errors(self):
        program = self.sample()
        file = self.path("profile")
        for option in ("--profile", "--trace"):
            self.expect_error(f"{option} is for pipelines", program, option,
                              file, "--sequential")
            self.expect_error(f"{option} needs at least one step", program,
                              option, file, "--steps", "0")
        self.expect_error("--trace-steps is for --trace: give that too",
                          program, "--trace-steps", "2")
        self.expect_error("--trace-steps: expected ", program, "--trace", file,
                          "--trace-steps", "0")
        self.expect_error("trace: cannot write", program, "--trace",
                          "/nowhere/trace")
        self.expect_error("profile: cannot write", program, "--profile",
                          "/nowhere/profile")


unittest.main(argv=sys.argv[:1], verbosity=2)
