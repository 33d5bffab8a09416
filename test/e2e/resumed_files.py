#!/usr/bin/env python3
# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The trace and the profile of a run that resumes must continue those of the runs before
it, whatever their schedule. A run that was killed in between adds nothing, and what an
earlier run wrote about steps after the checkpoint is dropped.

usage: resumed_files.py --tools BIN
"""

import json
import os
import re
import shutil
import signal
import subprocess
import unittest

from job import ENVIRONMENT, PATIENCE, Job
from trainings import OPTIONS, Trainings, parse


class ResumedFiles(Trainings):
    def setUp(self):
        super().setUp()
        self.trace, self.profile = self.folder / "trace", self.folder / "profile"
        self.arguments = ["--keep", 0, "--checkpoint", self.kept, "--resume", self.kept,
                          "--trace", self.trace, "--profile", self.profile]

    def read(self):
        return json.loads(self.trace.read_text()), json.loads(self.profile.read_text())

    def check(self, firsts, steps, processes):
        """Checks the first and the last step of each run, and the first process of each
        in the trace."""
        trace, profile = self.read()
        other = trace["otherData"]
        runs = other.get("earlier", []) + [other]
        self.assertEqual([run["first_step"] + run["steps"] - 1 for run in runs], steps)
        self.assertEqual([run.get("first_process", 0) for run in runs], processes)
        profiles = profile.get("earlier_runs", []) + [profile]
        self.assertEqual([run["last_step"] for run in profiles], steps)
        self.assertEqual([run["first_step"] for run in profiles], firsts)
        # The runs follow each other in time, and each has arrows of its own.
        end, ids = 0, set()
        of_runs = [[event for event in trace["traceEvents"]
                    if first <= event["pid"] < end]
                   for first, end in zip(processes, [*processes[1:], 10**9])]
        self.assertEqual(sum(map(len, of_runs)), len(trace["traceEvents"]))
        for step, events in zip(steps, of_runs):
            titles = [event["args"]["name"] for event in events
                      if event["name"] == "process_name"]
            self.assertTrue(titles)
            for title in titles:
                self.assertRegex(title, rf"step (\d+ to )?{step}$")
            times = [event["ts"] for event in events if "ts" in event]
            self.assertGreaterEqual(min(times), end)
            end = max(event["ts"] + event["dur"] for event in events if "dur" in event)
            starts = {event["id"] for event in events if event["ph"] == "s"}
            self.assertTrue(starts)
            self.assertFalse(starts & ids)
            ids |= starts

    def killed(self, program, *arguments):
        with Job(OPTIONS.tools / "chimera-run", self.shared / program, 0,
                 *self.command(program, "--steps", 10**8, *self.arguments,
                               *arguments)[2:]) as job:
            job.wait_for_line("checkpoint ")
            os.kill(job.process.pid, signal.SIGKILL)
            job.end()

    def test_runs_continue_each_other(self):
        self.train("chimera", "--steps", 4, *self.arguments)
        self.check([1], [4], [0])
        good = self.trace.read_bytes(), self.profile.read_bytes()
        self.killed("chimera", "--checkpoint-every", 1)
        self.assertEqual((self.trace.read_bytes(), self.profile.read_bytes()), good)
        # Two copies of another schedule, with processes 1 and 2.
        last = max(int(name[5:]) for name in os.listdir(self.kept)
                   if re.fullmatch(r"step-\d+", name))
        self.train("interleaved", "--steps", last + 3, *self.arguments, "--trace-steps", 2)
        self.check([1, last + 1], [4, last + 3], [0, 1])
        # A run that has nothing to do changes nothing.
        good = self.trace.read_bytes(), self.profile.read_bytes()
        self.train("interleaved", "--steps", last + 3, *self.arguments)
        self.assertEqual((self.trace.read_bytes(), self.profile.read_bytes()), good)
        self.train("zb-v", "--steps", last + 4, *self.arguments)
        self.check([1, last + 1, last + 4], [4, last + 3, last + 4], [0, 1, 3])
        # Back to the checkpoint of step 4. The later runs are dropped.
        self.assertIn("step-00000004", os.listdir(self.kept))
        self.train("chimera", "--steps", 6, *self.arguments[6:], "--resume",
                   self.kept / "step-00000004")
        self.check([1, 5], [4, 6], [0, 1])
        self.measured("chimera", 6)
        # Another training begins anew.
        shutil.rmtree(self.kept)
        self.train("chimera", "--steps", 2, *self.arguments)
        self.check([1], [2], [0])

    def test_a_schedule_without_a_flush(self):
        """Its pipeline drains for each checkpoint, also within the traced steps."""
        arguments = [*self.arguments, "--checkpoint-every", 2]
        self.train("pipedream", "--steps", 4, *arguments)
        self.train("pipedream", "--steps", 9, *arguments)
        self.check([1, 5], [4, 9], [0, 1])
        trace, _ = self.read()
        self.assertEqual(trace["otherData"]["first_step"], 8)
        actions = sorted(
            (event["cat"], event["args"]["stage"], event["args"]["micro_batch"] - 8)
            for event in trace["traceEvents"]
            if event["pid"] == 1 and event.get("args", {}).get("step") == 1)
        self.assertEqual(actions, [(kind, stage, m) for kind in ("backward", "forward")
                                   for stage in range(2) for m in range(8)])

    def measured(self, program, step):
        """chimera-show compares the newest run, and reads its costs."""
        source = self.folder / "on_a_machine.mlir"
        source.write_text(
            'chimera.machine @here devices(4) memory(1 GiB) speed("1 GFLOP/s")\n'
            + (self.shared / f"{program}.mlir").read_text().replace(
                "with @training", "with @training on @here"))
        result = subprocess.run(
            [OPTIONS.tools / "chimera-show", source, "--costs-from", self.profile,
             "--measured", self.trace],
            capture_output=True, text=True, timeout=PATIENCE, env=ENVIRONMENT)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn(f"measured: step {step}\n", result.stdout)

    def test_files_of_something_else(self):
        """They are refused before the first step, and stay."""
        self.train("chimera", "--steps", 2, "--checkpoint", self.kept)
        for option, file, kind in (("--trace", self.trace, "trace"),
                                   ("--profile", self.profile, "profile")):
            file.write_text('{"mine": 1}\n')
            self.expect_error(
                f"{option}: cannot continue '{file}' of the earlier runs: expected a "
                f"{kind} that chimera-run wrote: ", "chimera", "--steps", 4,
                "--resume", self.kept, option, file)
            self.assertEqual(file.read_text(), '{"mine": 1}\n')
            # An empty file, as of mktemp, and a run that begins anew.
            file.write_text("")
            self.train("chimera", "--steps", 4, "--resume", self.kept, option, file)
            file.write_text('{"mine": 1}\n')
            self.train("chimera", "--steps", 1, option, file)
            json.loads(file.read_text())


if __name__ == "__main__":
    unittest.main(argv=parse())
