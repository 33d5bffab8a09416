# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small programs of one model under several schedules, and runs of them, for resume.py,
resume_signals.py, resume_kills.py, resumed_files.py and jobs.py. The arguments of the test
are in OPTIONS."""

import argparse
import array
import json
import pathlib
import random
import struct
import subprocess
import sys
import tempfile
import unittest

from job import ENVIRONMENT, PATIENCE, tcp_environments

STEPS = 12
MODEL = """
chimera.model @small gpt2 layers(6) heads(2) width(32) context(16) vocabulary(256)
    {tied} dropout(0.1)
chimera.training @training learning_rate(1.0e-2) lr_schedule(cosine) warmup(2)
    min_lr(1.0e-3) lr_steps(12) {clip}
chimera.pipeline @{name} of @small with @training {clauses} weight_type({type}) {orders}
"""
# Each has 16 samples in a step.
PROGRAMS = {
    "chimera": 'stages(4) micro_batches(8) schedule("chimera") micro_batch_size(2)',
    "interleaved": 'stages(4) micro_batches(4) schedule("interleaved-1f1b") '
                   'workers(2) micro_batch_size(2) data_parallel(2)',
    "zb-v": 'stages(4) micro_batches(16) schedule("zb-v") workers(2) '
            'micro_batch_size(1)',
    "pipedream-2bw": 'stages(2) micro_batches(8) schedule("pipedream-2bw") '
                     'micro_batch_size(2)',
    "pipedream": 'stages(2) micro_batches(8) schedule("pipedream") '
                 'micro_batch_size(2)',
    # The same model as for schedules without a flush.
    "pipedream-flush": 'stages(2) micro_batches(8) schedule("1f1b") micro_batch_size(2)',
    # Worker 0 has no stage.
    "idle": '''stages(2) micro_batches(2) workers(2) micro_batch_size(8) {
                 chimera.direction 0 down on [1, 1] micro_batches [0, 1]
                 chimera.order 0 ""
                 chimera.order 1 "0F0 1F0 1B0 0B0 0F1 1F1 1B1 0B1"
               }''',
}
OPTIONS = argparse.Namespace()
RANKS = {"chimera": 4, "interleaved": 4, "zb-v": 2, "pipedream-2bw": 2, "pipedream": 2,
         "pipedream-flush": 2, "idle": 2}


def weights_of(path):
    """The tensors of a safetensors file of float64, by name."""
    data = pathlib.Path(path).read_bytes()
    (length,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8:8 + length])
    header.pop("__metadata__")
    values = {}
    for name, entry in header.items():
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        assert entry["dtype"] == "F64", (name, entry)
        values[name] = array.array("d", data[begin:end])
    return values


def parse():
    """Reads OPTIONS. Returns the arguments of unittest."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--tools", type=pathlib.Path, required=True)
    parser.add_argument("--mpirun")
    parser.add_argument("--torchrun")
    parser.add_argument("--gpus", action="store_true", help="try software GPUs too")
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--every-call", type=int, default=80)
    others = parser.parse_known_args(namespace=OPTIONS)[1]
    OPTIONS.tools = OPTIONS.tools.resolve()  # ranks have folders of their own
    return [sys.argv[0], *others]


class Trainings(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.shared = pathlib.Path(folder.name)
        cls.text = cls.shared / "text"
        cls.text.write_text("".join(map(chr, random.Random(1).choices(
            range(32, 127), k=20000))))
        for name, clauses in PROGRAMS.items():
            cls.compile(name, clauses)
        cls.expected = {}

    @classmethod
    def compile(cls, name, clauses, type="f64"):
        description = cls.shared / f"{name}.mlir"
        clauses, brace, orders = clauses.partition("{")
        description.write_text(
            MODEL.format(name=name.replace("-", "_"), clauses=clauses, type=type,
                         orders=brace + orders,
                         tied="" if "pipedream" in name else "tied",
                         clip="" if "pipedream" in name else "clip_norm(0.75)"))
        cls.compile_file(name)

    @classmethod
    def compile_file(cls, name):
        result = subprocess.run(
            [OPTIONS.tools / "chimera-compile", cls.shared / f"{name}.mlir", "-o",
             cls.shared / name], capture_output=True, text=True)
        if result.returncode != 0:
            sys.exit(result.stderr)

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.kept = self.folder / "checkpoints"
        self.trained = None  # another text than self.text
        self.variables = {}  # further environment variables of runs

    def command(self, program, *arguments):
        evaluation = () if "--evaluate-samples" in arguments else ("--evaluate-samples", 0)
        return [str(word) for word in (
            OPTIONS.tools / "chimera-run", self.shared / program, "--data",
            self.trained or self.text, "--threads", 1, *evaluation, *arguments)]

    def run_it(self, program, *arguments, over="threads", **how):
        """Returns the status, the output and the errors of a run."""
        environment = ENVIRONMENT | self.variables
        command = self.command(program, *arguments)
        if over == "gpus":
            command = self.on_gpus(program, *arguments)
            environment = environment | {"CHIMERA_STAND_IN_GPUS": str(RANKS[program])}
        if over == "mpi":
            command = [OPTIONS.mpirun, "-n", str(RANKS[program]), "--oversubscribe",
                       *command]
        if over == "sequential":
            command.append("--sequential")
        if over == "simulated":
            command += ["--device", "simulated"]
        if over == "tcp":
            ranks = [subprocess.Popen(command, env=of_rank | self.variables, text=True,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                     for of_rank in tcp_environments(RANKS[program])]
            ended = [rank.communicate(timeout=PATIENCE) for rank in ranks]
            return (max(rank.returncode for rank in ranks),
                    "".join(output for output, _ in ended),
                    "".join(errors for _, errors in ended))
        result = subprocess.run(command, capture_output=True, text=True,
                                timeout=PATIENCE, env=environment, **how)
        return result.returncode, result.stdout, result.stderr

    def on_gpus(self, program, *arguments):
        """The command of a run on software GPUs."""
        compiled = self.shared / f"{program}-gpus"
        if not compiled.exists():
            subprocess.run(
                [OPTIONS.tools / "chimera-compile", self.shared / f"{program}.mlir",
                 "--messages", "stream-per-device", "-o", compiled], check=True)
        _, *rest = self.command(compiled.name, *arguments)
        return [str(OPTIONS.tools / "software-gpu/chimera-run"), *rest, "--device", "cuda"]

    def train(self, program, *arguments, over="threads"):
        status, output, errors = self.run_it(program, *arguments, over=over)
        self.assertEqual(status, 0, output + errors)
        return output

    def uninterrupted(self, program, *arguments, steps=STEPS):
        """The file of weights after a run without interruption."""
        key = (program, arguments, steps)
        if key not in self.expected:
            path = self.shared / f"expected-{len(self.expected)}"
            self.train(program, "--steps", steps, "--save", path, *arguments)
            self.expected[key] = path
        return self.expected[key]

    def assert_close(self, got, expected):
        got, expected = weights_of(got), weights_of(expected)
        self.assertEqual(got.keys(), expected.keys())
        for name in got:
            worst = max(abs(a - b) for a, b in zip(got[name], expected[name],
                                                   strict=True))
            self.assertLessEqual(worst, 1e-10, name)

    def overs(self):
        return ["threads", "tcp"] + ["mpi"] * (OPTIONS.mpirun is not None)

    def expect_error(self, text, program, *arguments, status=1):
        got, output, errors = self.run_it(program, *arguments)
        self.assertEqual(got, status, output + errors)
        self.assertIn(text, errors)
        # A wrong argument is no failure of a rank.
        self.assertNotIn("the ranks at that moment", errors)
        return output, errors
