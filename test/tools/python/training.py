#!/usr/bin/env python3
# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests the parts of the Python package that call tools: plan, compile and train.

usage: training.py TOOLS
"""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import unittest.mock

import chimera

TOOLS = pathlib.Path(sys.argv[1])
ROOT = pathlib.Path(__file__).resolve().parents[3]
MODEL = "gpt2 layers(2) heads(2) width(16) context(16) vocabulary(256)"
TRAINING = "seed(3) learning_rate(1.0e-2)"
DATA = ROOT / "LICENSE"
ENDLESS = 10**8
PATIENCE = 300  # seconds, on a busy machine

os.environ["CHIMERA_TOOLS"] = str(TOOLS)


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def program(self, **more):
        return chimera.compile(
            chimera.Pipeline(workers=2, micro_batches=4, schedule="1f1b"),
            self.folder / "program.chimera",
            **{"model": MODEL, "micro_batch_size": 2, "training": TRAINING, **more},
        )


class Compile(Case):
    def test_a_schedule_and_its_description_give_one_program(self):
        program = self.program(more="weight_type(f64)")
        self.assertIn("program.chimera", repr(program))
        text = (
            f"chimera.model @model {MODEL}\nchimera.training @training {TRAINING}\n"
            'chimera.pipeline @"1f1b" of @model with @training stages(2) micro_batches(4) '
            'schedule("1f1b") micro_batch_size(2) weight_type(f64)\n'
        )
        description = self.folder / "description.mlir"
        description.write_text(text)
        for number, given in enumerate((text, description)):
            other = chimera.compile(given, self.folder / f"{number}.chimera")
            losses = [
                [step.loss for step in chimera.train(each, DATA, steps=2)]
                for each in (program, other)
            ]
            self.assertEqual(*losses)

    def test_every_schedule_compiles(self):
        for kind in chimera.schedules():
            stages = 2 * kind.stages_per_worker
            pipeline = chimera.Pipeline(stages, 2, 4, kind.name)
            model = MODEL.replace("layers(2)", f"layers({stages})")
            with self.subTest(kind.name):
                chimera.compile(
                    pipeline, self.folder / "p.chimera", model=model, micro_batch_size=2
                )

    def test_own_orders_compile(self):
        orders = chimera.Schedule.from_orders(["F0 F1 B0 B1", "F0 B0 F1 B1"])
        chimera.compile(orders, self.folder / "p.chimera", model=MODEL, micro_batch_size=2)

    def test_errors(self):
        with self.assertRaisesRegex(chimera.Error, "layrs"):
            self.program(model=MODEL.replace("layers", "layrs"))
        with self.assertRaisesRegex(TypeError, "expected model= and micro_batch_size="):
            self.program(model=None)
        with self.assertRaisesRegex(TypeError, "only with a schedule"):
            chimera.compile("text", self.folder / "p", micro_batch_size=2)
        with self.assertRaisesRegex(TypeError, "got 3"):
            chimera.compile(3, self.folder / "p")
        with (
            unittest.mock.patch.dict(os.environ, CHIMERA_TOOLS=str(self.folder)),
            self.assertRaisesRegex(FileNotFoundError, "chimera-compile.*CHIMERA_TOOLS"),
        ):
            self.program()


class Export(Case):
    def module(self):
        import torch

        torch.manual_seed(5)
        return torch.nn.Sequential(
            torch.nn.Embedding(256, 16), torch.nn.Linear(16, 16), torch.nn.Linear(16, 256)
        )

    @staticmethod
    def loss(logits, labels):
        import torch

        return torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten())

    def test_an_exported_module_trains(self):
        import torch

        module = self.module()
        before = {name: value.clone() for name, value in module.state_dict().items()}
        tokens = torch.randint(0, 256, (2, 12))
        folder = self.folder / 'a "folder"'
        package = chimera.export(
            module, tokens, tokens, self.loss, folder, compute=["float32"], check=True
        )
        self.assertEqual((package.layers, package.types), (3, ["float32"]))
        self.assertEqual(package.parameters, sum(p.numel() for p in module.parameters()))
        for name, value in module.state_dict().items():
            self.assertTrue(torch.equal(value, before[name]))
        program = chimera.compile(
            chimera.Pipeline(workers=3, micro_batches=2, schedule="gpipe"),
            self.folder / "p.chimera", model=package, micro_batch_size=2,
            training="optimizer(sgd) learning_rate(0.0)",
        )  # fmt: skip
        losses = [s.loss for s in chimera.train(program, DATA, steps=2, load=package.values)]
        self.assertEqual(len(losses), 2)
        # Random weights know nothing: the loss is close to that of a guess.
        self.assertAlmostEqual(losses[0], 5.6, delta=0.5)

    def test_errors(self):
        import torch

        tokens = torch.zeros(2, 12, dtype=torch.int64)
        arguments = (self.module(), tokens, tokens, self.loss, self.folder / "p")
        with self.assertRaisesRegex(ValueError, "got 'float16'"):
            chimera.export(*arguments, compute=["float16"])
        with self.assertRaisesRegex(chimera.Error, "expected a module of the model, got .nothere."):
            chimera.export(*arguments, split_at="nothere")
        with self.assertRaises(TypeError):
            chimera.export(*arguments, wrong=1)
        self.assertFalse((self.folder / "p").exists())


class Train(Case):
    def test_the_steps_are_those_of_the_command(self):
        program, log = self.program(), self.folder / "log"
        subprocess.run(
            [TOOLS / "chimera-run", program, "--data", DATA, "--steps", "6", "--log", log,
             "--evaluate-every", "3", "--transport", "in-process"],
            check=True, capture_output=True,
        )  # fmt: skip
        expected = [json.loads(line) for line in log.read_text().splitlines()]
        run = chimera.train(program, DATA, steps=6, evaluate_every=3)
        steps = list(run)
        self.assertEqual(
            [(step.number, step.loss, step.learning_rate) for step in steps],
            [(line["step"], line["loss"], line["learning_rate"])
             for line in expected if "loss" in line],
        )  # fmt: skip
        self.assertEqual(
            [line["held_out_loss"] for line in run.evaluations],
            [line["held_out_loss"] for line in expected if line.get("held_out_loss")],
        )
        self.assertEqual(run.summary["loss"], expected[-1]["summary"]["loss"])
        self.assertTrue(all(step.tokens_per_second > 0 for step in steps))
        self.assertFalse(run.was_stopped)
        self.assertEqual(list(run), [], "a run ends once")

    def test_a_run_that_resumes_counts_on(self):
        program, kept = self.program(), self.folder / "kept"
        list(chimera.train(program, DATA, steps=2, checkpoint=kept))
        run = chimera.train(program, DATA, steps=5, checkpoint=kept, resume=kept)
        self.assertEqual([step.number for step in run], [3, 4, 5])
        (checkpoint,) = run.checkpoints
        self.assertEqual(checkpoint["step"], 5)
        self.assertTrue(pathlib.Path(checkpoint["checkpoint"]).is_dir())

    def test_stopping_before_the_first_step(self):
        for pause in (0, 0.01, 0.1):
            with chimera.train(self.program(), DATA, steps=ENDLESS) as run:
                time.sleep(pause)
            self.assertTrue(run.was_stopped)

    def test_interrupting_keeps_the_results(self):
        saved = self.folder / "weights.safetensors"
        run = chimera.train(self.program(), DATA, steps=ENDLESS, save=saved)
        seen = 0
        for step in run:
            seen += 1
            self.assertEqual(step.number, seen)
            if step.number == 3:
                # While the loop waits for the next line, as with Ctrl-C.
                threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
        self.assertTrue(run.was_stopped)
        self.assertGreaterEqual(seen, 3)
        self.assertIsNotNone(run.summary)
        self.assertTrue(saved.exists())

    def test_leaving_a_block_stops_the_run(self):
        with chimera.train(self.program(), DATA, steps=ENDLESS) as run:
            next(run)
        self.assertTrue(run.was_stopped)
        self.assertIsNotNone(run.summary)

    def test_a_forgotten_run_ends(self):
        run = chimera.train(self.program(), DATA, steps=ENDLESS)
        process = run._process
        next(run)
        del run
        self.assertEqual(process.wait(timeout=PATIENCE), -signal.SIGKILL)

    def test_a_bar(self):
        errors = self.folder / "errors"
        with open(errors, "w") as file, unittest.mock.patch("sys.stderr", file):
            list(chimera.train(self.program(), DATA, steps=3, progress=True))
        self.assertRegex(errors.read_text(), r"3/3 .*loss=\d")

    def test_errors(self):
        program = self.program()
        with self.assertRaisesRegex(chimera.Error, "nothere"):
            list(chimera.train(program, "nothere"))
        with self.assertRaisesRegex(chimera.Error, "--wrong-option"):
            list(chimera.train(program, DATA, wrong_option=3))
        for name in ("quiet", "log"):
            with self.assertRaisesRegex(TypeError, f"{name}="):
                chimera.train(program, DATA, **{name: "x"})


class Plan(Case):
    MACHINE = (
        'chimera.machine @m devices(2) memory(1 GiB) speed("10 GFLOP/s") '
        'link <latency = 10 us, bandwidth = "1 GB/s">'
    )

    def test_the_best_plan_trains(self):
        plans = chimera.plan(f"chimera.model @g {MODEL}", self.MACHINE, batch=8, top=3)
        self.assertTrue(1 <= len(plans) <= 3)
        self.assertEqual([p.step for p in plans], sorted(p.step for p in plans))
        best = plans[0]
        self.assertEqual(
            best.micro_batches * best.micro_batch_size * best.data_parallel, 8, best
        )
        program = best.compile(self.folder / "best.chimera")
        self.assertEqual(len(list(chimera.train(program, DATA, steps=2))), 2)
        other = plans[-1].description()
        self.assertIn(f"micro_batches({plans[-1].micro_batches})", other)

    def test_packages_of_a_file_are_in_its_folder(self):
        import torch

        tokens = torch.zeros(2, 12, dtype=torch.int64)
        export = Export()
        chimera.export(export.module(), tokens, tokens, Export.loss, self.folder / "package",
                       compute=["float32"])  # fmt: skip
        file = self.folder / "question.mlir"
        file.write_text(f'chimera.model @g exported("package")\n{self.MACHINE}\n')
        best = chimera.plan(file, batch=8)[0]
        self.assertTrue(best.compile(self.folder / "p.chimera").path.exists())

    def test_a_file_and_options(self):
        file = self.folder / "question.mlir"
        file.write_text(f"chimera.model @g {MODEL}\n{self.MACHINE}\n")
        plans = chimera.plan(file, batch=8, schedule="gpipe", workers=2)
        self.assertEqual({p.schedule for p in plans}, {"gpipe"})

    def test_errors(self):
        with self.assertRaisesRegex(chimera.Error, "machine"):
            chimera.plan(f"chimera.model @g {MODEL}", batch=8)
        with self.assertRaisesRegex(TypeError, "path or a text"):
            chimera.plan(7, batch=8)


unittest.main(argv=sys.argv[:1], verbosity=2)
