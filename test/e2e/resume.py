#!/usr/bin/env python3
# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Interrupts training and resumes it from checkpoints. The final weights must be those
of a run that was not interrupted: equal bit by bit with the same program, and within
1e-10 in float64 with another schedule, number of workers, transport or device.

usage: resume.py --tools BIN [--mpirun MPIRUN] [--gpus]
"""

import json
import math
import os
import re
import resource
import shutil
import struct
import subprocess
import time
import unittest

from job import PATIENCE, Job, tcp_environments
from trainings import OPTIONS, PROGRAMS, STEPS, Trainings, parse, weights_of


class Resume(Trainings):
    def test_the_same_program_over_every_transport(self):
        expected = self.uninterrupted("chimera").read_bytes()
        log = self.folder / "log"
        for over in self.overs():
            with self.subTest(over):
                shutil.rmtree(self.kept, ignore_errors=True)
                log.unlink(missing_ok=True)
                arguments = ["--checkpoint", self.kept, "--resume", self.kept,
                             "--checkpoint-every", 3, "--log", log]
                said = self.train("chimera", "--steps", 7, *arguments, over=over)
                self.assertIn(f"no checkpoint in {self.kept} yet", said)
                self.assertEqual(sorted(os.listdir(self.kept)),
                                 [".lock", "step-00000006", "step-00000007"])
                saved = self.folder / over
                said = self.train("chimera", "--steps", STEPS, *arguments, "--save",
                                  saved, over=over)
                self.assertIn(f"resumes from {self.kept}/step-00000007, after 7 steps",
                              said)
                self.assertEqual(saved.read_bytes(), expected)
                self.assertRegex(said, rf"after {STEPS} steps, the last {STEPS - 7} of "
                                       r"them in [\d.]+ s\n")
                lines = list(map(json.loads, log.read_text().splitlines()))
                self.assertEqual([line["step"] for line in lines if "loss" in line],
                                 list(range(1, STEPS + 1)))
                self.assertEqual([line["step"] for line in lines
                                  if "checkpoint" in line], [3, 6, 7, 9, 12])
                self.assertEqual(sum("summary" in line for line in lines), 1)

    def test_another_schedule_or_device(self):
        expected = self.uninterrupted("chimera")
        overs = {"interleaved": self.overs()[-1], "zb-v": "tcp"}
        for before, after, over in (
                ("chimera", "interleaved", overs["interleaved"]),
                ("interleaved", "zb-v", overs["zb-v"]),
                ("zb-v", "chimera", "threads"), ("chimera", "zb-v", "simulated"),
                ("chimera", "chimera", "sequential")):
            with self.subTest(f"{before} to {after} over {over}"):
                shutil.rmtree(self.kept, ignore_errors=True)
                self.train(before, "--steps", 5, "--checkpoint", self.kept)
                saved = self.folder / "saved"
                self.train(after, "--steps", STEPS, "--resume", self.kept, "--save",
                           saved, over=over)
                self.assert_close(saved, expected)
        # From one device to a pipeline.
        shutil.rmtree(self.kept)
        self.train("chimera", "--steps", 5, "--checkpoint", self.kept,
                   over="sequential")
        self.assertEqual(
            sorted(os.listdir(self.kept / "step-00000005"))[0],
            "model-00001-of-00001.safetensors")
        self.train("interleaved", "--steps", STEPS, "--resume", self.kept, "--save",
                   saved)
        self.assert_close(saved, expected)

    def test_gpus(self):
        if not OPTIONS.gpus:
            self.skipTest("no --gpus")
        expected = self.uninterrupted("chimera")
        saved = self.folder / "saved"
        for before, after in (("threads", "gpus"), ("gpus", "threads"), ("gpus", "gpus")):
            with self.subTest(f"{before} to {after}"):
                shutil.rmtree(self.kept, ignore_errors=True)
                self.train("chimera", "--steps", 5, "--checkpoint", self.kept, over=before)
                self.train("chimera", "--steps", STEPS, "--resume", self.kept, "--save",
                           saved, over=after)
                self.assert_close(saved, expected)

    def test_schedules_without_a_flush(self):
        """They drain for a checkpoint, so a run with checkpoints differs from one
        without. It equals one that is interrupted there."""
        for program in ("pipedream-2bw", "pipedream"):
            with self.subTest(program):
                every = ["--checkpoint-every", 4]
                shutil.rmtree(self.kept, ignore_errors=True)
                whole, saved = self.folder / "whole", self.folder / "saved"
                self.train(program, "--steps", STEPS, *every, "--checkpoint",
                           self.folder / "other", "--save", whole)
                shutil.rmtree(self.folder / "other")
                self.train(program, "--steps", 8, *every, "--checkpoint", self.kept)
                self.train(program, "--steps", STEPS, *every, "--checkpoint", self.kept,
                           "--resume", self.kept, "--save", saved)
                self.assertEqual(saved.read_bytes(), whole.read_bytes())
                self.train(program, "--steps", STEPS, *every, "--checkpoint",
                           self.folder / "other", "--save", saved, over="sequential")
                self.assert_close(saved, whole)
                self.assertNotEqual(whole.read_bytes(),
                                    self.uninterrupted(program).read_bytes())
                shutil.rmtree(self.folder / "other")

    def test_another_number_of_updates_in_a_step(self):
        """AdamW divides by numbers that depend on the number of updates. PipeDream has
        an update for each micro-batch. So a checkpoint has the number of updates, and
        not only of steps."""
        def updates_of(folder, step):
            text = (folder / f"step-{step:08}" / "training.json").read_text()
            return json.loads(text)["updates"]

        saved = self.folder / "saved"
        for before, after in (("pipedream-flush", "pipedream"),
                              ("pipedream", "pipedream-flush")):
            with self.subTest(f"{before} to {after}"):
                shutil.rmtree(self.kept, ignore_errors=True)
                again = self.folder / "again"
                shutil.rmtree(again, ignore_errors=True)
                self.train(before, "--steps", 5, "--checkpoint", self.kept)
                updates = 5 * (8 if before == "pipedream" else 1)
                self.assertEqual(updates_of(self.kept, 5), updates)
                # fmt: off
                arguments = ["--resume", self.kept, "--learning-rate", 1e-3,
                             "--lr-schedule", "constant", "--warmup", 0]
                # fmt: on
                self.train(after, "--steps", 6, *arguments, "--save", saved,
                           "--checkpoint", again)
                updates += 8 if after == "pipedream" else 1
                self.assertEqual(updates_of(again, 6), updates)
                # One device computes without a pipeline.
                whole = self.folder / "whole"
                self.train(after, "--steps", 6, *arguments, "--save", whole,
                           over="sequential")
                self.assert_close(saved, whole)
        self.check_one_update(self.kept / "step-00000005", again / "step-00000006", updates)

    def check_one_update(self, before, after, updates):
        """Checks the update between two checkpoints, which is number `updates` from 1:
        AdamW of the parameters without weight decay."""
        training = json.loads((after / "training.json").read_text())
        numbers = training["numbers"]
        names = [name for name in training["checksums"] if name.startswith("model-")]
        old, new, state = {}, {}, {}
        for name in names:
            old |= weights_of(before / name)
            new |= weights_of(after / name)
            state |= weights_of(after / name.replace("model-", "optimizer-"))
        betas = numbers["beta1"], numbers["beta2"]
        first, second = (1 - beta**updates for beta in betas)
        checked = 0
        for name in filter(lambda name: name.endswith("bias"), old):
            for p, q, m, v in zip(old[name], new[name], state[f"{name}.exp_avg"],
                                  state[f"{name}.exp_avg_sq"], strict=True):
                root = math.sqrt(v / second) + numbers["epsilon"]
                expected = p - numbers["learning_rate"] * (m / first) / root
                self.assertAlmostEqual(q, expected, delta=1e-12)
                checked += 1
        self.assertGreater(checked, 100)

    def test_keep(self):
        for keep, expected in ((0, 4), (1, 1), (3, 3)):
            shutil.rmtree(self.kept, ignore_errors=True)
            self.train("chimera", "--steps", 4, "--checkpoint", self.kept,
                       "--checkpoint-every", 1, "--keep", keep)
            names = sorted(os.listdir(self.kept))[1:]
            self.assertEqual(names, [f"step-0000000{step}"
                                     for step in range(5 - expected, 5)])
        self.assertIn("model.safetensors.index.json",
                      os.listdir(self.kept / names[0]))
        # An earlier one can be resumed by its name, and when it was renamed.
        (self.kept / names[0]).rename(self.folder / "renamed")
        said = self.train("chimera", "--steps", STEPS, "--resume",
                          self.folder / "renamed", "--save", self.folder / "saved")
        self.assertIn("renamed, after 2 steps", said)
        self.assertEqual((self.folder / "saved").read_bytes(),
                         self.uninterrupted("chimera").read_bytes())

    def test_no_steps(self):
        """They write the state with which the training begins."""
        expected = self.uninterrupted("chimera")
        for over in ("threads", "sequential"):
            shutil.rmtree(self.kept, ignore_errors=True)
            arguments = ["--checkpoint", self.kept, "--resume", self.kept]
            for _ in range(2):  # the second time there is nothing to do
                self.train("chimera", "--steps", 0, *arguments, over=over)
                self.assertEqual(sorted(os.listdir(self.kept)),
                                 [".lock", "step-00000000"])
            said = self.train("chimera", "--steps", STEPS, *arguments, "--save",
                              self.folder / "saved", over=over)
            self.assertIn("after 0 steps", said)
            self.assert_close(self.folder / "saved", expected)

    def test_an_edited_description(self):
        self.train("chimera", "--steps", 3, "--checkpoint", self.kept)
        file = self.kept / "step-00000003" / "training.json"
        good = file.read_text()
        for old, new in (('"step": 3', '"step": 4'), ('"seed": ', '"seed": 1'),
                         ('"weight_decay":', '"weight_decay": ')):
            self.assertIn(old, good)
            file.write_text(good.replace(old, new, 1))
            self.expect_error("training.json: expected a file with the checksum",
                              "chimera", "--steps", 5, "--resume", self.kept)

    def test_what_cannot_be_resumed(self):
        self.train("chimera", "--steps", 3, "--checkpoint", self.kept)
        saved = self.kept / "step-00000003"
        resume = ["--resume", self.kept]
        self.expect_error("is after 3 steps, and the training has only 2", "chimera",
                          "--steps", 2, *resume)
        self.expect_error("has a checkpoint after 3 steps, and this run begins at the "
                          "first step: give --resume", "chimera", "--steps", 4,
                          "--checkpoint", self.kept)
        self.expect_error("expected a folder of checkpoints, got the file", "chimera",
                          "--resume", self.text)
        self.compile("half", PROGRAMS["chimera"].replace("micro_batches(8)",
                                                         "micro_batches(4)"))
        self.expect_error("expected 8 samples per step, as in the program, got 16",
                          "half", *resume)
        self.compile("float32", PROGRAMS["chimera"], type="f32")
        self.expect_error("expected weights of type float32, got float64", "float32",
                          *resume)
        description = (self.shared / "chimera.mlir").read_text()
        (self.shared / "sgd.mlir").write_text(
            description.replace("@training learning", "@training optimizer(sgd) learning"))
        self.compile_file("sgd")
        self.expect_error("expected a checkpoint of the optimizer sgd, got one of "
                          "adamw", "sgd", *resume)
        (self.shared / "wide.mlir").write_text(
            description.replace("width(32)", "width(48)"))
        self.compile_file("wide")
        errors = self.expect_error("the checkpoint is of another model: ", "wide",
                                   *resume)[1]
        self.assertRegex(errors, r"expected \d+ parameters in layer 0 \('.*'\), got \d+")
        # Checkpoints of another run in the folder.
        self.train("chimera", "--steps", 2, "--checkpoint", self.folder / "mine")
        self.expect_error("has a checkpoint after 3 steps, and this run begins after "
                          "the 2 steps of", "chimera", "--checkpoint", self.kept,
                          "--resume", self.folder / "mine")
        self.expect_error("expected different files, got", "chimera", "--checkpoint",
                          self.folder / "new", "--log", self.folder / "new")
        self.expect_error("cannot create the folder of checkpoints", "chimera",
                          "--checkpoint", self.text / "new")
        output = self.train("chimera", "--steps", 4, *resume, "--learning-rate", 0.1)
        self.assertIn("learning_rate was 0.01 and is 0.1: results will differ", output)
        output = self.train("chimera", "--steps", 4, *resume, "--lr-steps", 20)
        self.assertIn("lr_steps was 12 and is 20 (--lr-steps 12 keeps it): ", output)
        # Other graphs, other data or another seed are told, and are no error.
        (self.shared / "heads.mlir").write_text(
            description.replace("heads(2)", "heads(4)"))
        self.compile_file("heads")
        self.assertIn("layer 1 and 5 others compute with other operators or numbers",
                      self.train("heads", "--steps", 4, *resume))
        other = self.folder / "other"
        other.write_text(self.text.read_text()[::-1])
        self.trained = other
        output = self.train("chimera", "--steps", 4, *resume)
        self.trained = None
        self.assertIn("the data, their order or the held-out part (--hold-out, "
                      "--validation) are other ones", output)
        self.damage(saved, resume)

    def damage(self, saved, resume):
        """Damages every file of a checkpoint in turn."""
        for file in sorted(saved.iterdir()):
            good = file.read_bytes()
            middle = len(good) // 2
            if file.suffix == ".safetensors":
                middle = 8 + struct.unpack_from("<Q", good)[0] + 4
            flipped = good[:middle] + bytes([good[middle] ^ 1]) + good[middle + 1:]
            for bad in (flipped, good[:-1], b"", None):
                if bad is None:
                    file.unlink()
                else:
                    file.write_bytes(bad)
                if bad is None and file.name == "training.json":
                    self.expect_error("is not complete: it has no training.json",
                                      "chimera", "--steps", 4, *resume)
                elif bad == good[:-1] and file.name.endswith("index.json"):
                    self.train("chimera", "--steps", 4, *resume)  # the line break
                else:
                    status, output, errors = self.run_it("chimera", "--steps", 4,
                                                         *resume)
                    self.assertEqual(status, 1, (file.name, output))
                    self.assertIn(f"cannot resume from '{saved}': ", errors)
                    self.assertIn(". Resume from another checkpoint: give its folder to "
                                  "--resume, and move this one away\n", errors)
                    self.assertNotIn("the ranks at that moment", errors)
                file.write_bytes(good)
        self.train("chimera", "--steps", 4, *resume)

    def test_two_runs_in_one_folder(self):
        with Job(OPTIONS.tools / "chimera-run", self.shared / "chimera", 0,
                 *self.command("chimera", "--steps", 10**8, "--checkpoint",
                               self.kept)[2:]) as job:
            job.wait_for_steps()
            self.expect_error("another run writes its checkpoints to", "chimera",
                              "--checkpoint", self.kept)

    def test_a_restart_before_the_end_of_the_run(self):
        """It waits, and continues from the checkpoint with which the run ended."""
        arguments = self.command("chimera", "--steps", 10**8, "--checkpoint", self.kept,
                                 "--resume", self.kept)
        of = (OPTIONS.tools / "chimera-run", self.shared / "chimera", 0, *arguments[2:])
        for _ in range(2):  # the second time there is an older checkpoint
            with Job(*of) as first:
                first.wait_for_steps()
                with Job(*of) as second:
                    second.wait_for_line("waits for another run that writes to "
                                         f"{self.kept}")
                    first.process.terminate()
                    stopped = re.search(r"^stopped by SIGTERM after step (\d+) of",
                                        first.end()[0], re.MULTILINE)
                    line = f"resumes from {self.kept}/step-{int(stopped[1]):08}, after"
                    second.wait_for_line(line)
                    second.wait_for_steps()
                    second.process.terminate()
                    second.end()

    def test_ranks_with_different_folders(self):
        """A relative path leads two ranks to two folders."""
        ranks = []
        for rank, environment in enumerate(tcp_environments(2)):
            folder = self.folder / str(rank)
            folder.mkdir()
            ranks.append(subprocess.Popen(
                self.command("zb-v", "--checkpoint", "kept"), cwd=folder, text=True,
                env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT))
        output = "".join(rank.communicate(timeout=PATIENCE)[0] for rank in ranks)
        self.assertEqual([rank.returncode for rank in ranks], [1, 1], output)
        self.assertRegex(output, r"rank \d has another folder 'kept' than rank \d")

    def test_a_full_disk(self):
        """A limit on the size of files stands in for it. Training goes on, the status
        is 1, and the last good checkpoint stays."""
        self.train("chimera", "--steps", 3, "--checkpoint", self.kept)
        good = {file.name: file.read_bytes()
                for file in (self.kept / "step-00000003").iterdir()}
        status, output, errors = self.run_it(
            "chimera", "--steps", 6, "--checkpoint", self.kept, "--checkpoint-every",
            1, "--resume", self.kept,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE,
                                                  (40_000, 40_000)))
        self.assertEqual(status, 1, output + errors)
        for step in (4, 5, 6):
            self.assertRegex(
                errors, rf"checkpoint after step {step} is not written: .*cannot write: "
                rf"File too large; the last one is {self.kept}/step-00000003\n")
        self.assertIn("step 6/6", output)
        self.assertEqual(sorted(os.listdir(self.kept)), [".lock", "step-00000003"])
        for name, bytes_ in good.items():
            self.assertEqual((self.kept / "step-00000003" / name).read_bytes(), bytes_)

    def test_a_slow_disk(self):
        """A rank that writes its part, and a root that completes a checkpoint, may take
        longer than --timeout, between steps and at the end. On a busy machine a run may
        need a longer timeout, to start."""
        for over in ("sequential", "threads", "tcp"):
            for slow in ("model-00001", "training.json"):
                with self.subTest(over=over, slow=slow):
                    for timeout in (3, 12, 48, 192):
                        shutil.rmtree(self.kept, ignore_errors=True)
                        self.variables = {
                            "LD_PRELOAD": str(OPTIONS.tools / "kill-at-call.so"),
                            "KILL_IN_FOLDER": str(self.kept), "SLOW_FILE": slow,
                            "SLOW_SECONDS": str(timeout + timeout // 3)}
                        begin = time.monotonic()
                        status, *said = self.run_it(
                            "chimera", "--steps", 4, "--checkpoint", self.kept,
                            "--checkpoint-every", 2, "--timeout", timeout, over=over)
                        if status == 0:
                            break
                    self.assertEqual(status, 0, said)
                    self.assertGreater(time.monotonic() - begin, 2 * timeout)
                    self.assertEqual(sorted(os.listdir(self.kept)),
                                     [".lock", "step-00000002", "step-00000004"])


if __name__ == "__main__":
    unittest.main(argv=parse())
