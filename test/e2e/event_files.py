#!/usr/bin/env python3
# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests that TensorBoard shows the curves of a run as the log has them: of a whole run,
of one that is killed and resumed, and of one whose disk is full. Needs the Python of
build/venv with tensorboard (tools/setup.sh --full).

usage: event_files.py CHIMERA_RUN WRITE_SAMPLE [MPIRUN]
"""

import json
import os
import pathlib
import re
import signal
import struct
import subprocess
import sys
import time
import unittest

from exporting import PYTHON, has
from job import ENVIRONMENT, PATIENCE
from runs import CHIMERA_RUN, MPIRUN, Runs

# The curve of each field of the log.
TAGS = {
    "loss": "train/loss",
    "learning_rate": "train/lr",
    "tokens_per_s": "train/tokens_per_second",
    "resident_bytes": "train/memory",
    "waiting": "train/waiting",
    "held_out_loss": "validation/loss",
    "held_out_accuracy": "validation/accuracy",
}
BY_ALL = {"loss", "learning_rate", "tokens_per_s", "resident_bytes"}


def as_float(value):
    """The value that a float has. TensorBoard's points are floats."""
    return struct.unpack("f", struct.pack("f", value))[0]


class Test(Runs):
    def setUp(self):
        super().setUp()
        self.log, self.events = self.path("log.jsonl"), self.path("events")
        self.kept = self.path("kept")

    def command(self, *more):
        text = self.path("text")
        pathlib.Path(text).write_text("What is trained on. " * 40)
        return [self.sample("--model"), "--data", text, "--threads", "1", "--log",
                self.log, "--tensorboard", self.events, "--evaluate-every", "4", *more]

    def train(self, *more, ranks=0):
        result = self.run_it(*self.command(*more), ranks=ranks)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def curves(self):
        """The curves that TensorBoard shows, after a check that both of its readers show
        the same."""
        result = subprocess.run(
            [PYTHON, pathlib.Path(__file__).with_name("event_curves.py"), self.events],
            capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(result.returncode, 0, result.stderr)
        curves = json.loads(result.stdout)
        if curves["server"] is not None:
            self.assertEqual(curves["server"], curves["python"])
        return curves["python"]

    def logged(self):
        """The curves that the log has."""
        curves = {}
        for line in pathlib.Path(self.log).read_text().splitlines():
            entry = json.loads(line)
            for name, tag in TAGS.items():
                if name in entry:
                    curves.setdefault(tag, []).append(
                        [entry["step"], as_float(entry[name])])
        return curves

    def check_curves(self, steps, without=()):
        logged = self.logged()
        self.assertEqual(set(logged), {TAGS[name] for name in TAGS if name not in without})
        for name in BY_ALL:
            self.assertEqual([step for step, _ in logged[TAGS[name]]],
                             list(range(1, steps + 1)))
        self.assertEqual([step for step, _ in logged["validation/loss"]],
                         [*range(4, steps, 4), steps])
        self.assertEqual(self.curves(), logged)

    def test_a_whole_run(self):
        for ranks in (0, 4) if MPIRUN else (0,):
            self.train("--steps", "10", ranks=ranks)
            self.check_curves(10)

    def test_without_a_pipeline(self):
        self.train("--steps", "5", "--sequential")
        self.check_curves(5, without={"waiting"})

    def last_logged(self):
        """The last step in the log of a run that may be writing it."""
        try:
            text = pathlib.Path(self.log + ".part").read_text()
        except FileNotFoundError:
            return 0
        steps = re.findall(r'^\{"step":(\d+),"loss".*\}$', text, re.MULTILINE)
        return int(steps[-1]) if steps else 0

    def kept_steps(self):
        if not os.path.exists(self.kept):
            return []
        return [int(name[len("step-"):]) for name in os.listdir(self.kept)
                if re.fullmatch(r"step-\d+", name)]

    def killed(self, *more):
        """Kills a run after at least 30 more steps and one checkpoint. Returns the last
        step that it logged, and the last one that it kept."""
        arguments = self.command("--steps", str(10**9), "--checkpoint", self.kept,
                                 "--checkpoint-every", "25", "--resume", self.kept, *more)
        begin = self.last_logged()
        with subprocess.Popen([CHIMERA_RUN, *arguments], env=ENVIRONMENT,
                              stdout=subprocess.DEVNULL) as process:
            end = time.monotonic() + PATIENCE
            while self.last_logged() < begin + 30 or not self.kept_steps():
                self.assertLess(time.monotonic(), end)
                time.sleep(0.02)
            process.send_signal(signal.SIGKILL)
        return self.last_logged(), max(self.kept_steps())

    def test_a_run_that_is_killed_and_resumed(self):
        lost = 0
        for _ in range(3):
            last, kept = self.killed()
            lost += last - kept
        self.assertGreater(lost, 0, "expected steps after the last checkpoints")
        # These steps are in the old files, and TensorBoard drops them for the new ones.
        self.train("--steps", str(last + 3), "--resume", self.kept)
        self.assertEqual(len(os.listdir(self.events)), 4)
        self.check_curves(last + 3)
        # A new training in the same folder.
        self.train("--steps", "6")
        self.check_curves(6)

    def test_a_full_disk(self):
        """A limit on the size of files stands in for it. Training goes on."""
        arguments = self.command("--steps", "50")
        arguments[arguments.index("--log") + 1] = "/dev/null"
        result = self.shell('ulimit -f 2; "$0" "$@"', *arguments)
        self.assertEqual(result.returncode, 1)
        [name] = os.listdir(self.events)
        self.assertEqual(result.stderr, f"chimera-run: cannot write {self.events}/{name}: "
                         "File too large\n")
        self.assertIn("digest of the weights ", result.stdout)
        # The last record is incomplete. A run that follows is not disturbed.
        steps = [step for step, _ in self.curves()["train/loss"]]
        self.assertEqual(steps, list(range(1, len(steps) + 1)))
        self.assertGreater(len(steps), 2)
        self.assertLess(len(steps), 50)
        self.train("--steps", "4")
        self.check_curves(4)

    def test_folders_that_are_refused(self):
        file = self.path("file")
        pathlib.Path(file).touch()
        for folder, error in (
                (file, f"--tensorboard: expected a folder, got the file '{file}'"),
                (self.path("file/below"),
                 f"cannot create the folder {file}/below: Not a directory"),
                ("/proc/none",
                 "cannot create the folder /proc/none: No such file or directory"),
                (self.log, "expected different files, got ")):
            arguments = self.command("--steps", "2")
            arguments[arguments.index("--tensorboard") + 1] = folder
            self.expect_error(error, *arguments)
        os.mkdir(self.kept)
        self.expect_error(
            f"expected different folders, got '{self.kept}' for --checkpoint and "
            f"'{self.kept}/../kept' for --tensorboard", self.sample(), "--tensorboard",
            self.kept + "/../kept", "--checkpoint", self.kept)

    def test_two_runs_in_one_folder(self):
        with subprocess.Popen([CHIMERA_RUN, *self.command("--steps", str(10**9))],
                              env=ENVIRONMENT, stdout=subprocess.DEVNULL) as process:
            while self.last_logged() == 0 and process.poll() is None:
                time.sleep(0.02)
            other = self.command("--steps", "2")
            other[other.index("--log") + 1] = self.path("other.jsonl")
            self.expect_error(f"cannot write to the folder {self.events}: another run "
                              "is writing to it", *other)
            process.send_signal(signal.SIGKILL)


if not has(PYTHON, "tensorboard"):
    sys.exit(0)
unittest.main(argv=sys.argv[:1], verbosity=2)
