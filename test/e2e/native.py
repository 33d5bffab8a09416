#!/usr/bin/env python3
# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exports models with native code (`chimera-export --native`). Trains them with the
native code (`chimera-run --allow-native-code`) and without: on one device, under
schedules with whole and split backwards, recomputation and parts of micro-batches, with
ranks as threads and, with --mpirun, as processes. Losses and last-step gradients must
agree within 1e-10 in float64 and 1e-4 in float32, relative to the loss and to the
largest gradient. Native code must have run, and no file may be left behind. Compiling a
graph takes seconds, so without --full there is only one model of two layers.

Then changes a byte of the native code, and later removes it. A run must refuse both.

--measure only times the steps of a GPT-2 with 8 layers of width 256 on one thread, with
and without native code.

Prints a line for each comparison and exits non-zero if one fails. Needs g++ and a
Python with torch: that of build/venv, unless another Python runs this script."""

import argparse
import itertools
import json
import math
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

from exporting import PYTHON, ROOT, check_each, has, of_type
from grid import compile_to, run
from numerics import Checks, losses, read_tensors

STEPS, SAMPLES, BATCHES = 2, 4, 4
TOLERANCE = {"float64": 1e-10, "float32": 1e-4}
WHOLE = ('"gpipe"', "")
SPLIT = ('"1f1b"', "split_backward recompute(all)")
HALVES = ('"chimera", {concatenation = "halving"}', "split_backward")
FUSED = ('"chimera", {concatenation = "halving"}', "recompute(all fused)")
DROPPED = ('"1f1b"', "recompute(all)")
# Native code runs only for the number of samples with which it was exported. HALVES and
# FUSED divide a micro-batch of 4 into halves, so they need code for 2.
HALF = "samples=2"
# For each case: the source and its arguments, the type, and the schedules.
SHORT = [("gpt", "", "float64", [WHOLE, SPLIT])]
MORE = [
    ("convolution", "", "float32", [WHOLE, SPLIT]),
    ("gpt", HALF, "float64", [HALVES, FUSED]),
    ("convolution", "", "float64", [WHOLE, SPLIT]),
    ("convolution", HALF, "float64", [HALVES]),
    ("gpt2", "layers=2 heads=2 width=16 context=8 samples=4", "float32", [WHOLE]),
    ("llama", "layers=2 heads=2 groups=1 width=16 context=8 samples=4", "float64",
     [SPLIT]),
    # Dropout is interpreted, and everything else is native code.
    ("gpt2", "layers=2 heads=2 width=16 context=8 samples=4 dropout=0.1", "float64",
     [SPLIT, DROPPED]),
    # The only dropout is in an attention.
    ("drops", "", "float64", [SPLIT]),
]  # fmt: skip
# Two layers: an embedding, and a block with a head.
SOURCE = """
import torch
from torch import nn
from torch.nn import functional as F
from chimera_export import Model

C, T, B = 8, 8, 4

class Attention(nn.Module):
    def __init__(self, dropped=0.0):
        super().__init__()
        self.dropped = dropped
        self.norm = nn.LayerNorm(C)
        self.parts, self.out = nn.Linear(C, 3 * C), nn.Linear(C, C)
        self.wide, self.narrow = nn.Linear(C, 4 * C), nn.Linear(4 * C, C)
    def forward(self, x):
        q, k, v = self.parts(self.norm(x)).view(x.shape[0], T, 3, 2, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=self.dropped, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(x.shape))
        return x + self.narrow(F.gelu(self.wide(x)))

class Convolution(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.GroupNorm(2, C)
        self.line = nn.Conv1d(C, C, 3, padding=1)
    def forward(self, x):
        return x + torch.tanh(self.line(self.norm(x.transpose(1, 2)))).transpose(1, 2)

def make(block, samples):
    torch.manual_seed(0)
    tokens = torch.randint(0, 256, (samples, T))
    layers = nn.Sequential()
    layers.layers = nn.Sequential(
        nn.Embedding(256, C),
        nn.Sequential(block(), nn.Linear(C, 256)),
    )
    def loss(logits, labels):
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten())
    return Model(layers, (tokens,), (tokens.clone(),), loss, split_at="layers")

def gpt(samples=B): return make(Attention, samples)
def drops(samples=B): return make(lambda: Attention(0.1), samples)
def convolution(samples=B): return make(Convolution, samples)
"""
DESCRIPTION = """
chimera.model @m exported("{package}")
chimera.training @training seed(7) learning_rate(1.0e-2)
chimera.pipeline @p of @m with @training stages(2) micro_batches({batches}) schedule({schedule})
    micro_batch_size({samples}) weight_type({type}) {options}
"""


def export(options, folder, source, arguments, *more):
    """Exports and returns the output. PyTorch's cache is in options.cache."""
    environment = os.environ | {
        "TORCHINDUCTOR_CACHE_DIR": str(options.cache),
        "AOT_INDUCTOR_COMPILE_WRAPPER_OPT_LEVEL": "O1" if options.full else "O0",
        "TMPDIR": str(options.temporary),
    }
    command = [
        options.python, ROOT / "tools/export/chimera-export", source,
        *arguments.split(), *more, "-o", folder / "package",
    ]  # fmt: skip
    done = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, env=environment
    )
    if done.returncode:
        raise RuntimeError(done.stdout + done.stderr)
    return done.stdout


class Training:
    def __init__(self, options, folder, program, *more, launcher=()):
        log = folder / "log"
        run(
            *launcher, options.tools / "chimera-run", program, "--data", options.data,
            "--tokens", "bytes", "--steps", STEPS, "--threads", 1, "--evaluate-samples", 1, "--timeout", 300,
            "--load", folder / "package/values.safetensors", "--log", log,
            "--save-gradients", folder / "gradients", *more,
        )  # fmt: skip
        self.losses = losses(log) + losses(log, "held_out_loss")
        summary = json.loads(log.read_text().splitlines()[-1])["summary"]
        self.calls = summary.get("native_calls", 0)
        self.stashes = [rank["stash_bytes"] for rank in summary.get("ranks", [])]
        self.gradients = read_tensors(folder / "gradients")

    def difference(self, other):
        """The largest difference of two runs. Differences of gradients are relative to
        the largest gradient, and differences of losses are relative to the loss."""
        assert self.gradients.keys() == other.gradients.keys()
        largest = max(max(map(abs, t)) for t in other.gradients.values())
        pairs = [
            (a, b, largest)
            for name, tensor in self.gradients.items()
            for a, b in zip(tensor, other.gradients[name], strict=True)
        ]
        pairs += [(a, b, b) for a, b in zip(self.losses, other.losses, strict=True)]
        return max(abs(a - b) / scale for a, b, scale in pairs)


def check(options, folder, case):
    name, arguments, type_, schedules = case
    checks = Checks()
    case = f"{name} {arguments} {type_}"
    source = ROOT / f"examples/models/{name}.py"
    if arguments in ("", HALF):
        (folder / "source.py").write_text(SOURCE)
        source = f"{folder / 'source.py'}:{name}"
    output = export(
        options, folder, source, arguments, *of_type(type_), "--native",
    )  # fmt: skip
    compiled = int(re.search(r"native: (\d+) graphs", output)[1])
    drops = "dropout" in arguments or name == "drops"
    checks.check(
        compiled > 0 and ("not compiled" in output) == drops,
        f"{case}: {compiled} graphs compiled",
    )
    # Libraries must not be in PyTorch's cache: two simultaneous exports could write the
    # same file there.
    shared = list(options.cache.glob("*/*.wrapper.so"))
    checks.check(not shared, f"{case}: no library in the cache, got {shared}")
    native = ("--allow-native-code", folder / "package/native")
    # A library that unpacks code before it loads the code would do so in this folder.
    (folder / "temporary").mkdir()
    launcher = ("env", f"TMPDIR={folder / 'temporary'}")
    for schedule, more in schedules:
        program = folder / "program"
        description = DESCRIPTION.format(
            package=folder / "package", samples=SAMPLES,
            batches=BATCHES, schedule=schedule,
            type={"float64": "f64", "float32": "f32"}[type_], options=more,
        )  # fmt: skip
        compile_to(options.tools, description, program)
        what = f"{case}, {schedule} {more}"

        def compare(*where, launcher=launcher):
            plain = Training(options, folder, program, *where, launcher=launcher)
            ours = Training(
                options, folder, program, *where, *native, launcher=launcher
            )
            worst = ours.difference(plain)
            checks.check(
                worst <= TOLERANCE[type_] and plain.calls == 0 and ours.calls > 0
                and ours.stashes == plain.stashes,
                f"{what} {' '.join(where)}: {ours.calls} calls of native code, "
                f"which differs by {worst:.1e}, stashes {plain.stashes} {ours.stashes}",
            )  # fmt: skip
            return ours.calls

        calls = compare()
        if (schedule, more) == WHOLE and not arguments:
            # All graphs are native: each of two layers has a forward and a backward per
            # micro-batch.
            wanted = 2 * BATCHES * 2 * STEPS
            checks.check(calls == wanted, f"{what}: no graph is interpreted")
        if (schedule, more) == schedules[0]:
            compare("--sequential")
            if options.mpirun:
                compare(launcher=(options.mpirun, "--oversubscribe", "-n", 2))
    left = [path.name for path in (folder / "temporary").iterdir()]
    checks.check(not left, f"{case}: leaves no files, got {left}")
    check_refused(options, folder, checks, native)
    return checks.lines, checks.failed


def check_refused(options, folder, checks, native):
    def refuses(reason, *more):
        command = [options.tools / "chimera-run", folder / "program", *more]
        done = subprocess.run(
            [str(word) for word in command], capture_output=True, text=True
        )
        good = done.returncode == 1 and reason in done.stderr
        checks.check(good, f"refused: {reason}" if good else done.stderr)

    file = next(native[1].glob("*.pt2"))
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    given = ("--data", options.data, "--tokens", "bytes", *native)
    refuses("expected the file that the program names by its SHA-256", *given)
    shutil.rmtree(native[1])
    refuses("cannot open the native code of the program's model", *given)
    refuses("is for model stages", "--stages", "exact", *native)


def check_compiler(options, folder):
    """Without a compiler, the export fails and writes nothing."""
    (folder / "source.py").write_text(SOURCE)
    command = [
        options.python, ROOT / "tools/export/chimera-export",
        f"{folder / 'source.py'}:gpt", "--native", "-o", folder / "package",
    ]  # fmt: skip
    done = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True,
        env=os.environ | {"CXX": "no-such-compiler"},
    )  # fmt: skip
    good = "found no no-such-compiler" in done.stderr and done.returncode == 1
    good &= not (folder / "package").exists()
    return [f"{'ok  ' if good else 'FAIL'} no compiler, no package"], int(not good)


def measure(options, folder):
    """Prints the time of a step with and without native code: the minimum of several
    runs that take turns."""
    sizes = "layers=8 heads=4 width=256 context=128 samples=4"
    for type_ in ("float32", "float64"):
        export(
            options, folder, ROOT / "examples/models/gpt2.py", sizes, *of_type(type_),
            "--native",
        )  # fmt: skip
        program = folder / "program"
        description = DESCRIPTION.format(
            package=folder / "package", samples=4,
            batches=BATCHES, schedule='"gpipe"',
            type={"float64": "f64", "float32": "f32"}[type_], options="",
        )  # fmt: skip
        compile_to(options.tools, description, program)
        least = {}
        for _ in range(5):
            for way in ((), ("--allow-native-code", folder / "package/native")):
                run(
                    options.tools / "chimera-run", program, "--data", options.data,
                    "--steps", 6, "--threads", 1, "--evaluate-samples", 0, "--log",
                    folder / "log", "--sequential", *way,
                )  # fmt: skip
                rows = map(json.loads, (folder / "log").read_text().splitlines())
                ends = [row["seconds"] for row in rows if "step" in row]
                each = [b - a for a, b in itertools.pairwise(ends)]
                least[way] = min(least.get(way, math.inf), *each)
        plain, ours = least.values()
        print(
            f"{type_}: {plain:.3f} s a step, {ours:.3f} s in native code: "
            f"ratio {ours / plain:.3f}",
            flush=True,
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tools", type=pathlib.Path)
    parser.add_argument("--data", type=pathlib.Path, default=ROOT / "LICENSE")
    parser.add_argument("--python", default=PYTHON)
    parser.add_argument("--mpirun", help="also run over MPI")
    parser.add_argument("--full", action="store_true", help="more models and parts")
    parser.add_argument("--measure", action="store_true", help="time steps instead")
    options = parser.parse_args()
    if not has(options.python, "torch", "safetensors"):
        return
    if shutil.which(os.environ.get("CXX", "g++")) is None:
        print("skipped: no g++")
        return
    with tempfile.TemporaryDirectory() as name:
        options.cache = pathlib.Path(name) / "cache"
        options.temporary = pathlib.Path(name) / "temporary"
        options.cache.mkdir()
        options.temporary.mkdir()
        if options.measure:
            measure(options, pathlib.Path(name))
            return

        def one(folder, case):
            if case is None:
                return check_compiler(options, folder)
            return check(options, folder, case)

        check_each(one, [None, *SHORT, *(MORE if options.full else [])])


if __name__ == "__main__":
    os.environ.setdefault("OMPI_ALLOW_RUN_AS_ROOT", "1")
    os.environ.setdefault("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
    main()
