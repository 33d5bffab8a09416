#!/usr/bin/env python3
# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Converts checkpoints to PyTorch's distributed checkpoints (DCP) and back with
chimera-checkpoint.

An exported module trains in chimera, then in a plain PyTorch loop that continues from
the DCP, and then in chimera again. Its weights must be those of one run of chimera
within 1e-9 in float64, with each optimizer. A checkpoint that is only converted must
come back bit by bit. Wrong checkpoints, DCPs and arguments must be refused.

Needs a Python with torch: that of build/venv."""

import argparse
import json
import pathlib
import shutil
import sys
import tempfile
import types
import unittest

from exporting import PYTHON, ROOT, export, of_type
from forks import call, call_script, restart_with
from grid import compile_to, run
from job import Job
from numerics import read_tensors, worst_difference

HERE = pathlib.Path(__file__).resolve().parent
COMMAND = ROOT / "tools/export/chimera-checkpoint"
NAMES = ROOT / "examples/weights/gpt2-huggingface.json"
SAMPLES, CONTEXT, BATCHES, SEED, RATE, DECAY, MOMENTUM = 2, 16, 2, 7, 0.01, 0.1, 0.9
SIZES = f"layers=2 heads=2 width=16 context={CONTEXT} samples={SAMPLES}"
BEFORE, IN_TORCH, AFTER = 3, 2, 2  # steps
OPTIMIZERS = {
    "adamw": "",
    "sgd": "optimizer(sgd)",
    "sgd-momentum": f"optimizer(sgd) momentum({MOMENTUM})",
    "muon": f"optimizer(muon) momentum({MOMENTUM}) nesterov",
}
OF_MODULE = """
chimera.model @m exported("{package}")
chimera.training @t {optimizer} seed({seed}) learning_rate({rate}) weight_decay({decay})
chimera.pipeline @p of @m with @t stages(2) micro_batches({batches}) schedule("1f1b")
    micro_batch_size({samples}) weight_type(f64)
"""
OF_GPT2 = """
chimera.model @m gpt2 layers(2) heads(2) width(16) context(16) vocabulary(256) tied
chimera.training @t {optimizer} learning_rate(0.01)
chimera.pipeline @p of @m with @t stages(2) micro_batches(2) schedule("chimera")
    micro_batch_size(2) weight_type({type})
"""
OPTIONS = None


def plain_loop(source, target, optimizer, tied, text):
    """Continues from the DCP `source` in plain PyTorch and writes the DCP `target`, as
    users of torch.distributed.checkpoint do."""
    sys.path[:0] = [str(ROOT / "tools/export"), str(HERE)]
    import torch
    import torch.distributed.checkpoint as dcp
    from chimera_export import command
    from chimera_export.arguments import parse_values
    from reference import windows
    from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
    from torch_optimizers import muon_in, optimizers_of

    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    make = command.load_function(str(ROOT / "examples/models/gpt2.py"))
    # Another seed: the weights must come from the DCP.
    model = make(**parse_values(SIZES.split()), tied=tied, seed=99)
    module = model.module.to(torch.float64)
    parameters = dict(module.named_parameters())
    hidden = [n for n, p in parameters.items() if n.startswith("blocks.") and p.dim() == 2]
    own = optimizers_of(
        optimizer, parameters, hidden, rate=RATE, decay=DECAY,
        momentum=0.0 if optimizer == "sgd" else MOMENTUM, nesterov=optimizer == "muon",
    )  # fmt: skip
    weights, state = get_state_dict(module, own)
    if tied:  # get_state_dict has the matrix under both names
        saved = {"model": dict(module.named_parameters())}
    else:
        saved = {"model": weights}
    saved |= {"optim": {"state": state["state"]}, "step": 0}
    dcp.load(saved, checkpoint_id=source, no_dist=True)
    set_state_dict(module, own, model_state_dict=weights, optim_state_dict=state)
    assert saved["step"] == BEFORE, saved["step"]

    run_of = types.SimpleNamespace(
        hold_out=0.1, context=CONTEXT, micro_batch_size=SAMPLES, seed=SEED,
        micro_batches=BATCHES, data_parallel=1,
    )  # fmt: skip
    for step in range(BEFORE, BEFORE + IN_TORCH):
        module.zero_grad()
        for micro_batch in range(BATCHES):
            tokens, labels = windows(text, run_of, step, micro_batch)
            (model.loss(module(tokens), labels) / BATCHES).backward()
        with muon_in(torch.float64):
            for each in own:
                each.step()
    weights, state = get_state_dict(module, own)
    saved = {"model": weights, "optim": state, "step": step + 1}
    dcp.save(saved, checkpoint_id=target, no_dist=True)


def change(source, target, changes):
    """Copies the DCP `source` to `target`. `changes` has functions of the old values by
    key. A value None is left out."""
    import torch
    import torch.distributed.checkpoint as dcp

    reader = dcp.FileSystemReader(source)
    values = {
        key: torch.empty(entry.size, dtype=entry.properties.dtype)
        if hasattr(entry, "size")
        else None
        for key, entry in reader.read_metadata().state_dict_metadata.items()
    }
    dcp.load(values, storage_reader=reader, no_dist=True)
    for key, change_of in changes.items():
        values[key] = change_of(values.get(key))
    values = {key: value for key, value in values.items() if value is not None}
    dcp.save(values, checkpoint_id=target, no_dist=True)


class Dcp(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def train(self, program, *arguments):
        run(
            OPTIONS.tools / "chimera-run", self.folder / program, "--data", OPTIONS.data,
            "--tokens", "bytes", "--threads", 1, "--quiet", "--evaluate-samples", 0,
            *arguments,
        )  # fmt: skip

    def convert(self, *arguments):
        """Returns the output of chimera-checkpoint."""
        status, output, errors = call_script(COMMAND, *arguments)
        self.assertEqual((status, errors), (0, ""))
        return output

    def refuse(self, text, *arguments, status=1):
        """Checks that chimera-checkpoint refuses its arguments."""
        got, output, errors = call_script(COMMAND, *arguments)
        self.assertEqual(got, status, output + errors)
        self.assertIn(text, errors)
        self.assertNotIn("Traceback", errors)
        self.assertEqual(list(self.folder.rglob("*.partial")), [])

    def of_gpt2(self, optimizer, type, *arguments):
        """Makes a checkpoint of the runtime's own GPT-2 in the folder "kept"."""
        compile_to(
            OPTIONS.tools,
            OF_GPT2.format(optimizer=OPTIMIZERS[optimizer], type=type),
            self.folder / "p",
        )
        self.train(
            "p", "--steps", BEFORE, "--checkpoint", self.folder / "kept", *arguments
        )

    def test_train_here_and_in_torch(self):
        for optimizer, tied in (
            ("adamw", False), ("adamw", True), ("sgd", False), ("sgd-momentum", True),
            ("muon", False), ("muon", True),
        ):  # fmt: skip
            with self.subTest(optimizer, tied=tied):
                self.setUp()
                self.back_and_forth(optimizer, tied)

    def back_and_forth(self, optimizer, tied):
        package, whole, got, kept, kept2, dcp, dcp2 = (
            self.folder / name
            for name in ("package", "whole", "got", "kept", "kept2", "dcp", "dcp2")
        )
        export(package, "gpt2", f"{SIZES} tied={tied}", *of_type("float64"))
        compile_to(
            OPTIONS.tools,
            OF_MODULE.format(
                package=package, optimizer=OPTIMIZERS[optimizer], seed=SEED, rate=RATE,
                decay=DECAY, batches=BATCHES, samples=SAMPLES,
            ),
            self.folder / "p",
        )  # fmt: skip
        load = ["--load", package / "values.safetensors"]
        steps = BEFORE + IN_TORCH + AFTER
        self.train("p", "--steps", steps, "--save", whole, *load)
        self.train("p", "--steps", BEFORE, "--checkpoint", kept, *load)
        self.convert(kept, "--to-dcp", dcp)
        status, _, errors = call(
            plain_loop, dcp, dcp2, optimizer, tied, OPTIONS.data.read_bytes()
        )
        self.assertEqual(status, 0, errors)
        said = self.convert(kept2, "--from-dcp", dcp2, "--like", kept)
        self.assertIn(f"a checkpoint after {BEFORE + IN_TORCH} steps", said)
        self.assertEqual("head.weight" in said, tied, said)
        self.train("p", "--steps", steps, "--resume", kept2, "--save", got)
        ours, expected, start = map(read_tensors, (got, whole, load[1]))
        self.assertLessEqual(worst_difference(ours, expected), 1e-9)
        self.assertGreater(worst_difference(ours, start), 1e-3)

    def test_the_same_bits_come_back(self):
        """Also from float32 and bfloat16, and with a file of names that transposes
        matrices."""
        for optimizer, type, names in (
            ("adamw", "f32", True), ("sgd", "f32", True), ("sgd-momentum", "f64", False),
            ("muon", "f32", True), ("adamw", "bf16", True),
        ):  # fmt: skip
            with self.subTest(optimizer, type=type, names=names):
                self.setUp()
                more = ["--names", NAMES] if names else []
                self.of_gpt2(optimizer, type, *more)
                kept, kept2, dcp = (self.folder / n for n in ("kept", "kept2", "dcp"))
                self.convert(kept, "--to-dcp", dcp, *more)
                self.convert(
                    kept2, "--from-dcp", dcp, "--like", kept / "step-00000003", *more
                )
                self.assertEqual(
                    sorted(path.name for path in kept2.iterdir()),
                    [".lock", "step-00000003"],
                )
                ours, others = (
                    {path.name: path for path in (each / "step-00000003").iterdir()}
                    for each in (kept, kept2)
                )
                self.assertEqual(ours.keys(), others.keys())
                for name, path in ours.items():
                    if name == "training.json":
                        sums, expected = (
                            json.loads(each.read_text())["checksums"]
                            for each in (others[name], path)
                        )
                        self.assertEqual(sums, expected)
                    elif name.endswith(".json"):
                        self.assertEqual(others[name].read_text(), path.read_text())
                    else:
                        self.assertEqual(read_tensors(others[name]), read_tensors(path))
                    self.assertEqual(others[name].stat().st_mode, path.stat().st_mode)
                for each in (kept, kept2):
                    self.train(
                        "p", "--steps", BEFORE + 1, "--resume", each, "--save",
                        self.folder / f"of-{each.name}", *more,
                    )  # fmt: skip
                self.assertEqual(
                    (self.folder / "of-kept").read_bytes(),
                    (self.folder / "of-kept2").read_bytes(),
                )

    def test_wrong_arguments(self):
        kept, dcp = self.folder / "kept", self.folder / "dcp"
        self.refuse("one of the arguments --to-dcp --from-dcp is required", kept, status=2)
        self.refuse("--from-dcp needs --like", kept, "--from-dcp", dcp, status=2)
        self.refuse(
            "--like is only for --from-dcp", kept, "--to-dcp", dcp, "--like", kept, status=2
        )
        self.refuse("folder of checkpoints, got nothing", kept, "--to-dcp", dcp)
        kept.mkdir()
        self.refuse("or a folder of checkpoints, found none", kept, "--to-dcp", dcp)

    def test_wrong_checkpoints(self):
        self.of_gpt2("adamw", "f32", "--names", NAMES)
        kept, dcp = self.folder / "kept", self.folder / "dcp"
        self.refuse("if the run had --names, give it", kept, "--to-dcp", dcp)
        wrong = self.folder / "names.json"
        wrong.write_text("[")
        self.refuse(
            "expected a JSON object of names", kept, "--to-dcp", dcp, "--names", wrong
        )
        shutil.rmtree(kept)
        self.of_gpt2("adamw", "f32")
        saved = kept / "step-00000003"
        (self.folder / "full").mkdir()
        (self.folder / "full/file").write_text("")
        self.refuse(
            "expected a new or empty folder", kept, "--to-dcp", self.folder / "full"
        )
        training = (saved / "training.json").read_text()
        for old, new, text in (
            ("chimera checkpoint 1", "chimera checkpoint 2", "expected the format"),
            ('"step": 3', '"step": -3', 'expected "step" with a whole number, got -3'),
            ('"adamw"', '"adam"', "expected \"optimizer\" with one of sgd, "),
            ('"float32"', '"float64"', "expected a file with the checksum"),
            ("model-00001", "../model-00001", 'expected "checksums"'),
            ("{", "", "expected JSON"),
        ):
            (saved / "training.json").write_text(training.replace(old, new, 1))
            self.refuse(text, kept, "--to-dcp", dcp)
        (saved / "training.json").write_text(training)
        for prefix in ("model", "optimizer"):
            file = saved / f"{prefix}-00001-of-00002.safetensors"
            good = file.read_bytes()
            file.write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
            self.refuse("expected the checksum", kept, "--to-dcp", dcp)
            file.write_bytes(good[:-1])
            self.refuse("the checkpoint is damaged", kept, "--to-dcp", dcp)
            file.unlink()
            self.refuse(file.name, kept, "--to-dcp", dcp)
            file.write_bytes(good)
        self.convert(kept, "--to-dcp", dcp)

    def test_wrong_dcps(self):
        import torch
        import torch.distributed.checkpoint

        self.of_gpt2("adamw", "f32")
        kept, dcp, to = (self.folder / name for name in ("kept", "dcp", "kept2"))
        self.convert(kept, "--to-dcp", dcp, "--model-key", "app.model")
        from_dcp = [to, "--from-dcp", dcp, "--like", kept]
        self.refuse("position_embedding: missing; --model-key may be app.model", *from_dcp)
        from_dcp += ["--model-key", "app.model"]
        self.refuse("exp_avg: missing; --optimizer-key may be optim",
                    *from_dcp, "--optimizer-key", "optimizer")  # fmt: skip
        self.refuse(f"{dcp} is after 3 steps: leave out --step", *from_dcp, "--step", 4)
        name = "layers.0.token_embedding"
        of_name = f"optim.state.{name}"
        cases = (
            ({f"app.model.{name}": lambda old: old.t()},
             "expected float32 [256, 16], got float32 [16, 256]"),
            ({f"{of_name}.exp_avg": lambda old: old.double()},
             "expected float32 [256, 16], got float64 [256, 16]"),
            ({f"{of_name}.exp_avg": lambda old: None}, f"{of_name}.exp_avg: missing"),
            ({f"{of_name}.max_exp_avg_sq": lambda old: torch.zeros(1)},
             "max_exp_avg_sq: not in"),
            ({f"{of_name}.step": lambda old: None},
             f"expected the number of steps {of_name}.step"),
            ({f"{of_name}.step": lambda old: old + 1},
             "the same number of steps of all parameters"),
            ({f"{of_name}.step": lambda old: old + 0.5}, "expected a number of steps, got"),
        )  # fmt: skip
        changed = self.folder / "changed"
        from_changed = [to, "--from-dcp", changed, *from_dcp[3:]]
        for changes, text in cases:
            change(dcp, changed, changes)
            self.refuse(text, *from_changed)
            shutil.rmtree(changed)
        # Only some of many differences are shown.
        every = torch.distributed.checkpoint.FileSystemReader(dcp).read_metadata()
        keys = [key for key in every.state_dict_metadata if key.endswith(".exp_avg")]
        change(dcp, changed, dict.fromkeys(keys, lambda old: old.double()))
        self.refuse(", got float64 [256, 16]\n", *from_changed)
        self.refuse(f"\n  … and {len(keys) - 5} more\n", *from_changed)
        shutil.rmtree(changed)
        changed.mkdir()
        self.refuse("expected a DCP, which is a folder with", *from_changed)
        (changed / ".metadata").write_bytes(b"no pickle")
        self.refuse("cannot read .metadata", *from_changed)
        shutil.rmtree(changed)
        shutil.copytree(dcp, changed)
        (changed / "__0_0.distcp").unlink()
        self.refuse("__0_0.distcp", *from_changed)
        self.assertFalse(to.exists())
        # The folder to write to.
        self.refuse("expected checkpoints of earlier steps than 3 or none, got "
                    "step-00000003: give another folder", kept, *from_dcp[1:])  # fmt: skip
        self.refuse("expected a folder of checkpoints or a new one, got a checkpoint",
                    kept / "step-00000003", *from_dcp[1:])  # fmt: skip
        with Job(
            OPTIONS.tools / "chimera-run", self.folder / "p", 0, "--data",
            str(OPTIONS.data), "--tokens", "bytes", "--steps", str(10**8),
            "--checkpoint", str(to),
        ) as job:  # fmt: skip
            job.wait_for_steps()
            self.refuse("another process writes its checkpoints there", *from_dcp)

    def test_a_dcp_without_steps(self):
        """Plain SGD has no step in its state."""
        self.of_gpt2("sgd", "f32")
        kept, dcp, changed, to = (
            self.folder / name for name in ("kept", "dcp", "changed", "kept2")
        )
        self.convert(kept, "--to-dcp", dcp, "--model-key", "")
        change(dcp, changed, {"step": lambda old: None})
        from_dcp = [to, "--from-dcp", changed, "--like", kept]
        self.refuse("--model-key may be ''", *from_dcp)
        from_dcp += ["--model-key", ""]
        self.refuse("under the key step, got none: give --step N", *from_dcp)
        self.convert(*from_dcp, "--step", 5)
        self.assertTrue((to / "step-00000005/training.json").exists())
        # A run says how many steps it continues after, and has other data.
        self.train("p", "--steps", 6, "--resume", to)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--tools", type=pathlib.Path)
    parser.add_argument("--data", type=pathlib.Path, default=ROOT / "LICENSE")
    parser.add_argument("--python", default=PYTHON)
    OPTIONS, rest = parser.parse_known_args()
    if restart_with(OPTIONS.python, "torch", "safetensors", "xxhash"):
        unittest.main(argv=[sys.argv[0], *rest])
