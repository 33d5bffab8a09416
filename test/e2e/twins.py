#!/usr/bin/env python3
# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trains the runtime's own GPT-2 and an exported one (examples/models/gpt2.py) from the
same weights, with and without dropout, in float32 and float64, also with so many classes
that the head and the loss are one call. Losses, weights and gradients must be equal bit
by bit, and the memory plans of the two must be equal. With
--gpus, the runs are also compared on software GPUs. Needs a Python with torch: that of
build/venv, unless another Python runs this script."""

import argparse
import json
import pathlib
import re
import struct

from exporting import EXPORT, PYTHON, ROOT, check_each, of_type
from forks import restart_with, run_script
from grid import run
from numerics import losses

LAYERS = 4
SIZES = {"layers": LAYERS, "heads": 2, "width": 32, "context": 16}
PIPELINE = """
chimera.pipeline @p of @m stages(2) micro_batches(4) schedule("chimera")
    micro_batch_size(2) weight_type({type}) {options}
"""


def exported_name(name):
    """The name that a parameter of the runtime's own model has in the exported
    model."""
    layer, rest = re.fullmatch(r"layers\.(\d+)\.(.*)", name).groups()
    if int(layer) == 0:
        return f"{rest}.weight"
    return rest if int(layer) == LAYERS + 1 else f"blocks.{int(layer) - 1}.{rest}"


def renamed(source, target):
    """Copies a safetensors file. The tensors get the names of the exported model."""
    data = source.read_bytes()
    (length,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8 : 8 + length])
    header.pop("__metadata__", None)
    text = json.dumps({exported_name(n): e for n, e in header.items()}).encode()
    text += b" " * (-len(text) % 8)
    target.write_bytes(struct.pack("<Q", len(text)) + text + data[8 + length :])


def tensors(path):
    """The bytes of each tensor, by name."""
    data = path.read_bytes()
    (length,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8 : 8 + length])
    return {
        name: data[8 + length + entry["data_offsets"][0] :][
            : entry["data_offsets"][1] - entry["data_offsets"][0]
        ]
        for name, entry in header.items()
        if name != "__metadata__"
    }


def check(options, folder, kind, dropout, more, gpus, vocabulary=256):
    python_type = {"f32": "float32", "f64": "float64"}[kind]
    case = f"{python_type}, dropout {dropout}, {more or 'whole backwards'}, {vocabulary} classes"
    case += ", software GPUs" if gpus else ""
    launcher = ["env", f"CHIMERA_STAND_IN_GPUS={gpus}"] if gpus else []
    tools = options.tools / ("software-gpu" if gpus else "")
    sizes = [f"{name}={value}" for name, value in SIZES.items()]
    run_script(
        EXPORT,
        ROOT / "examples/models/gpt2.py", *sizes, f"dropout={dropout}", "samples=2",
        f"vocabulary={vocabulary}",
        *of_type(python_type), "--no-values", "-o", folder / "package",
    )  # fmt: skip
    clauses = " ".join(f"{name}({value})" for name, value in SIZES.items())
    models = {
        "own": f"gpt2 {clauses} vocabulary({vocabulary}) dropout({dropout})",
        "exported": 'exported("package")',
    }
    common = ("--data", ROOT / "LICENSE", "--tokens", "bytes", "--quiet",
              "--evaluate-samples", 16)  # fmt: skip
    plans, outcome = {}, {}
    for name, model in models.items():
        source, program = folder / f"{name}.mlir", folder / f"{name}.chimera"
        source.write_text(
            f"chimera.model @m {model}" + PIPELINE.format(type=kind, options=more)
        )
        run(options.tools / "chimera-compile", source, "-o", program,
            *(["--messages", "stream-per-device"] if gpus else []))  # fmt: skip
        dump = json.loads(
            run(options.tools / "chimera-translate", "--program-to-json", program)
        )
        plans[name] = [
            (w["arena_bytes"], w["peak_bytes"], w["buffers"]) for w in dump["workers"]
        ]
        if name == "own":
            run(
                options.tools / "chimera-run", program, *common, "--sequential",
                "--steps", 0, "--save", folder / "start",
            )  # fmt: skip
            renamed(folder / "start", folder / "start.exported")
        start = folder / ("start" if name == "own" else "start.exported")
        files = [folder / f"{name}.{what}" for what in ("weights", "gradients", "log")]
        run(
            *launcher, tools / "chimera-run", program, *common, "--steps", 3,
            "--threads", 1, "--load", start, "--save", files[0],
            "--save-gradients", files[1], "--log", files[2],
            *(["--device", "cuda"] if gpus else []),
        )  # fmt: skip
        outcome[name] = files
    lines, failed = [], 0

    def say(good, line):
        nonlocal failed
        failed += not good
        lines.append(f"{'ok  ' if good else 'FAIL'} {case}: {line}")

    # The exporter also counts the operations of elementwise operators. Here the partition
    # still cuts both models in the same way.
    say(plans["own"] == plans["exported"], "plans are the same")
    same = losses(outcome["own"][2]) == losses(outcome["exported"][2])
    say(same, "losses, to the last bit")
    accuracies = [losses(files[2], "held_out_accuracy") for files in outcome.values()]
    say(len(accuracies[0]) == 1 and accuracies[0] == accuracies[1],
        f"accuracy {accuracies[0]}")
    for what, own, theirs in zip(
        ("weights", "gradients"), outcome["own"], outcome["exported"]
    ):
        renamed(own, folder / "renamed")
        say(tensors(folder / "renamed") == tensors(theirs), f"{what}, to the last bit")
    return lines, failed


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tools", type=pathlib.Path, required=True)
    parser.add_argument("--python", default=PYTHON)
    parser.add_argument("--gpus", action="store_true", help="also on software GPUs")
    options = parser.parse_args()
    if not restart_with(options.python, "torch", "safetensors"):
        return
    cases = [
        (kind, dropout, more, 0)
        for kind in ("f32", "f64")
        for dropout in (0.0, 0.1)
        for more in ("", "recompute(all)")
    ]
    # The smallest number of classes for which the two are one call.
    cases += [("f32", 0.0, "", 0, classes) for classes in (4095, 4096)]
    if options.gpus:
        cases += [(kind, 0.1, "", 2) for kind in ("f32", "f64")]
    check_each(lambda folder, case: check(options, folder, *case), cases)


if __name__ == "__main__":
    main()
