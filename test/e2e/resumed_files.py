#!/usr/bin/env python3
# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The trace, the profile and the log of a run that resumes must continue those of the
runs before it, whatever their schedule. Entries of an earlier run about steps after the
checkpoint are dropped. A run that is refused changes no file.

usage: resumed_files.py --tools BIN
"""

import json
import os
import re
import shutil
import signal
import subprocess
import time
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

    def lines(self, name="log"):
        """The lines of a log. A last line without an end may still be being written."""
        *lines, _ = (self.folder / name).read_text().split("\n")
        return [json.loads(line) for line in lines]

    def steps_of(self, lines, field):
        return [line["step"] for line in lines if field in line]

    def test_logs(self):
        log = self.folder / "log"
        common = ["--keep", 0, "--checkpoint", self.kept, "--checkpoint-every", 2, "--log", log]
        resumes = [*common, "--resume", self.kept]
        # Without --evaluate-samples 0, there is an evaluation after the last step.
        self.train("chimera", "--steps", 6, *common, "--evaluate-samples", 2)
        whole = log.read_bytes()
        # A run that has nothing to do changes nothing.
        output = self.train("zb-v", "--steps", 6, *resumes, "--evaluate-samples", 2)
        self.assertIn("no step is left: the checkpoint is after step 6", output)
        self.assertEqual(log.read_bytes(), whole)
        # Nor does a run that is refused after it has opened its log.
        self.expect_error("this run begins after the 2 steps of", "chimera", "--steps", 9,
                          *common, "--resume", self.kept / "step-00000002")
        bad = self.folder / "bad"
        bad.write_text("{}")
        self.expect_error("--trace: cannot continue", "chimera", "--steps", 9, *resumes,
                          "--trace", bad)
        self.assertEqual(log.read_bytes(), whole)
        # The line of a checkpoint comes after those of later steps.
        log.unlink()
        part = self.folder / "log.part"
        kept = [{"step": 6, "loss": 1.5, "seconds": 1},
                {"step": 6, "checkpoint": "kept/step-00000006", "seconds": 0.5}]
        lines = [kept[0], {"step": 7, "loss": 1.25, "seconds": 2}, kept[1],
                 {"step": 8, "loss": 1.0, "seconds": 3}]
        part.write_text("".join(f"{json.dumps(line)}\n" for line in lines) + '{"step": 9')
        self.train("chimera", "--steps", 8, *resumes)
        lines = self.lines()
        self.assertEqual(lines[:2], kept)
        self.assertEqual(self.steps_of(lines, "loss"), [6, 7, 8])
        # A file of something else is refused, and stays.
        log.write_text("# Notes\n")
        self.expect_error(f"--log: cannot continue '{log}', which is no log of a run",
                          "chimera", "--steps", 10, *resumes)
        self.assertEqual(log.read_text(), "# Notes\n")

    def test_the_last_evaluation(self):
        """An evaluation between steps is not that of the final weights."""
        log = self.folder / "log"
        with Job(OPTIONS.tools / "chimera-run", self.shared / "chimera", 0,
                 *self.command("chimera", "--steps", 10**8, "--checkpoint", self.kept,
                               "--evaluate-every", 100, "--evaluate-samples", 1, "--log",
                               log)[2:]) as job:
            job.wait_for_line("held-out loss")
            while self.steps_of(self.lines("log.part"), "loss")[-1] == 100:
                time.sleep(0.01)  # a later step makes the evaluation an old one
            job.process.terminate()
            job.end()
        lines = self.lines()
        last = lines[-1]["summary"]
        evaluated = self.steps_of(lines, "held_out_loss")[-1]
        self.assertEqual("held_out_loss" in last, evaluated == last["steps"])

    def test_an_evaluation_after_a_signal(self):
        """A run without checkpoints makes the last evaluation, and prints it once."""
        with Job(OPTIONS.tools / "chimera-run", self.shared / "chimera", 0,
                 *self.command("chimera", "--steps", 10**8, "--evaluate-samples",
                               1)[2:]) as job:
            job.wait_for_steps()
            os.kill(job.process.pid, signal.SIGUSR1)
            output, *_ = job.end()
        self.assertEqual(output.count("held-out loss"), 1, output)

    def test_a_missing_evaluation(self):
        """A run that was stopped where an evaluation was due did not make it. The next run
        makes it, and has the results of a run that was not stopped."""
        log = self.folder / "log"
        evaluates = ["--evaluate-every", 2, "--evaluate-samples", 1, "--log", log]
        # A rank of "idle" has no instructions.
        for program, over in (("chimera", "threads"), ("chimera", "sequential"),
                              ("chimera", "simulated"), ("idle", "simulated")):
            self.train("chimera", "--steps", 6, "--keep", 0, "--checkpoint", self.kept,
                       "--checkpoint-every", 2, *evaluates)
            whole = [line for line in self.lines() if "held_out_loss" in line]
            self.assertEqual(self.steps_of(whole, "held_out_loss"), [2, 4, 6])
            checkpoint = self.kept / "step-00000004"
            for missing in (4, -1):
                log.write_text("".join(
                    f"{json.dumps(line)}\n" for line in self.lines()
                    if line.get("step") != missing or "held_out_loss" not in line))
                self.train(program, "--steps", 6, *evaluates, "--resume", checkpoint,
                           over=over)
                now = [line for line in self.lines() if "held_out_loss" in line]
                self.assertEqual(self.steps_of(now, "held_out_loss"), [2, 4, 6])
                for line, wanted in zip(now, whole):
                    self.assertAlmostEqual(line["held_out_loss"], wanted["held_out_loss"], 9)
            shutil.rmtree(self.kept)
            log.unlink()

    def test_a_checkpoint_under_a_wrong_name(self):
        self.train("chimera", "--steps", 2, "--checkpoint", self.kept)
        right, wrong = (self.kept / f"step-{step:08}" for step in (2, 9))
        right.rename(wrong)
        self.expect_error("expected a checkpoint after 9 steps, as its name says, got one "
                          "after 2: rename it to step-00000002", "chimera", "--steps", 4,
                          "--resume", self.kept)
        (wrong / "training.json").unlink()
        self.expect_error(f"'{wrong}' is not a complete checkpoint: it has no training.json",
                          "chimera", "--steps", 4, "--resume", wrong)

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
