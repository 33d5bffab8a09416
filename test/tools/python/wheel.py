#!/usr/bin/env python3
# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Installs the wheel in a new virtual environment, in which nothing but torch is installed,
and uses it there as a user does: draws a schedule, plans, exports a module and trains it.
Only the environment's own programs are on the path. torch is in another folder.

usage: wheel.py WHEEL_FOLDER
"""

import os
import pathlib
import re
import subprocess
import sys
import sysconfig
import tempfile
import time
import unittest

WHEELS = pathlib.Path(sys.argv[1])
ROOT = pathlib.Path(__file__).resolve().parents[3]
PATIENCE = 600  # seconds, on a busy machine
COMMANDS = {
    "chimera-checkpoint", "chimera-compile", "chimera-export", "chimera-plan", "chimera-run",
    "chimera-samples", "chimera-show", "chimera-tokens", "chimera-translate",
}  # fmt: skip
# What the programs may need: the C and C++ libraries. And, by module, what else.
BASE = {"libc.so.6", "libm.so.6", "libgcc_s.so.1", "libstdc++.so.6", "ld-linux-x86-64.so.2"}
NEEDED = {
    "chimera_torch.so": {"libtorch_cpu.so", "libc10.so", "libgomp.so.1"},
    "chimera_mpi.so": {"libmpi.so.40"},
    "chimera_cuda.so": {
        "libtorch_cpu.so", "libtorch_cuda.so", "libc10.so", "libc10_cuda.so",
        "libnvrtc.so.13", "libcudart.so.13", "libnccl.so.2",
    },
}  # fmt: skip
# A module of thirty lines, with its training.
SCRIPT = """
import chimera, torch
from torch import nn
from torch.nn import functional as F

class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.line = nn.Linear(width, width)
    def forward(self, x):
        return x + torch.tanh(self.line(self.norm(x)))

class Net(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.embedding = nn.Embedding(256, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(4))
        self.head = nn.Linear(width, 256)
    def forward(self, tokens):
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(x)

def loss(logits, labels):
    return F.cross_entropy(logits.flatten(0, 1), labels.flatten())

torch.manual_seed(0)
tokens = torch.randint(0, 256, (2, 8))
package = chimera.export(Net(), tokens, tokens, loss, "package", compute="float32")
pipeline = chimera.Pipeline(workers=2, micro_batches=4, schedule="1f1b")
chimera.compile(pipeline, "own.chimera", model=package, micro_batch_size=2,
                training="seed(1) learning_rate(1.0e-2)")
for step in chimera.train("own.chimera", "text", steps=20, load=package.values, save="w.safetensors"):
    print("loss", step.loss)
"""


class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.venv = cls.folder / "venv"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", cls.venv], check=True)
        (wheel,) = WHEELS.glob("*.whl")
        started = time.monotonic()
        subprocess.run(
            [sys.executable, "-m", "pip", "--python", cls.venv / "bin/python", "install",
             "-q", "--disable-pip-version-check", "--no-index", "--no-deps", wheel],
            check=True, timeout=PATIENCE,
        )  # fmt: skip
        cls.packages = next(cls.venv.glob("lib/python*/site-packages"))
        (cls.folder / "text").write_bytes((ROOT / "LICENSE").read_bytes())
        cls.run_in("chimera-show", "-e", "workers=4 micro_batches=8 schedule=1f1b")
        print(
            f"{wheel.name}: {wheel.stat().st_size / 1e6:.0f} MB, "
            f"{time.monotonic() - started:.1f} s from pip install to the first picture"
        )

    @classmethod
    def run_in(cls, name, *arguments, status=0, torch=None):
        """Runs a command of the environment. `torch` is the folder of torch's package."""
        environment = {
            "PATH": str(cls.venv / "bin"), "HOME": str(cls.folder),
            "PYTHONPATH": torch or "", "OMP_NUM_THREADS": "1",
        }  # fmt: skip
        result = subprocess.run(
            [cls.venv / "bin" / name, *arguments], cwd=cls.folder, env=environment,
            capture_output=True, text=True, timeout=PATIENCE, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert result.returncode == status, (name, result)
        return result.stdout if status == 0 else result.stderr

    def test_all_commands_start(self):
        scripts = {path.name for path in (self.venv / "bin").glob("chimera-*")}
        self.assertEqual(scripts, COMMANDS)
        packages = sysconfig.get_path("purelib")
        for name in COMMANDS:
            self.assertIn("--help", self.run_in(name, "--help", torch=packages), name)

    def test_programs_need_only_the_libraries_of_every_system(self):
        files = [*self.packages.glob("chimera/bin/chimera*"), *self.packages.glob("chimera/*.so")]
        checked = 0
        for path in files:
            if path.read_bytes()[:4] != b"\x7fELF":
                continue
            checked += 1
            text = subprocess.run(
                ["readelf", "-d", path], capture_output=True, text=True, check=True
            ).stdout
            needed = set(re.findall(r"NEEDED.*\[(.*)\]", text))
            self.assertLessEqual(needed, BASE | NEEDED.get(path.name, set()), path.name)
            for paths in re.findall(r"(?:RUNPATH|RPATH).*\[(.*)\]", text):
                for each in paths.split(":"):
                    self.assertTrue(each.startswith("$ORIGIN/../../"), (path.name, paths))
        self.assertGreaterEqual(checked, 7)

    def test_a_schedule_and_a_plan(self):
        grid = self.run_in("chimera-show", "-e", "workers=2 micro_batches=2 schedule=gpipe")
        self.assertIn("P1", grid)
        code = "import chimera; print(chimera.Pipeline(workers=2, micro_batches=2).simulate())"
        self.assertIn("makespan", self.run_in("python", "-c", code))
        plan = ROOT / "examples/plan.mlir"
        self.run_in("chimera-plan", plan, "--batch", "512", "-o", "best.mlir")
        self.run_in("chimera-compile", "best.mlir", "-o", "best.chimera")

    def test_an_exported_module_trains(self):
        (self.folder / "own.py").write_text(SCRIPT)
        output = self.run_in("python", "own.py", torch=sysconfig.get_path("purelib"))
        losses = [float(x) for x in re.findall(r"^loss (.*)$", output, re.MULTILINE)]
        self.assertEqual(len(losses), 20)
        self.assertLess(losses[-1], losses[0])
        self.assertTrue((self.folder / "w.safetensors").exists())
        # The command, too, finds torch in another folder.
        arguments = (
            "own.chimera", "--data", "text", "--steps", "2", "--threads", "1",
            "--load", "package/values.safetensors",
        )  # fmt: skip
        self.run_in("chimera-run", *arguments, torch=sysconfig.get_path("purelib"))
        # Without torch, it says what to install.
        error = self.run_in("chimera-run", *arguments, status=1)
        self.assertIn("libtorch_cpu.so", error)
        self.assertIn("Install torch ", error)

    def test_another_version_of_torch(self):
        other = self.folder / "other"
        (other / "torch").mkdir(parents=True)
        (other / "torch/__init__.py").touch()
        (other / "torch-1.0.dist-info").mkdir()
        metadata = other / "torch-1.0.dist-info/METADATA"
        metadata.write_text("Metadata-Version: 2.1\nName: torch\nVersion: 1.0\n")
        error = self.run_in("chimera-run", "--help", status=1, torch=str(other))
        self.assertRegex(error, r"^chimera-run: expected torch 2\..*, got 1\.0: pip install ")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
