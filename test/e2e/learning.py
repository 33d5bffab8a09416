#!/usr/bin/env python3
# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trains scaled-down models of examples/models on real text: a GPT-2, and a BERT that
predicts masked tokens. GPT-2 trains with four pipelines, with forward doubling and with
recomputation. BERT trains only with forward doubling, with --full like GPT-2. Compares
the held-out loss with the loss of the byte-unigram model, which is the best model that
predicts without context. The held-out loss must start far above the unigram model's
loss and end well below it.

BERT's task leaves a tenth of the masked tokens unchanged, and replaces a tenth by
another token. So a model that only knows frequencies can reach 0.8 H + 0.2 (ln 2 + H /
2), where H is the unigram model's loss. For text this is 0.94 H. The test requires at
most 0.9 H.

The same models must learn nothing from the same text with its bytes shuffled. A low
held-out loss on shuffled text would show that labels leak into the input. Prints a line
for each comparison and exits non-zero if one fails. Needs a Python with torch: that of
build/venv, unless another Python runs this script."""

import argparse
import json
import pathlib
import random

from exported import MASK
from exporting import PYTHON, ROOT, check_each, export
from forks import restart_with
from grid import compile_to, run
from numerics import Checks

SAMPLES = 64  # per step
# For each model: its sizes, the learning rate, the number of steps, the highest final loss on
# the text, and the lowest final loss on the shuffled text. Losses are relative to the unigram
# model's loss.
MODELS = {
    "gpt2": ("heads=4 width=32 context=16", "4.0e-3", 100, 0.85, 0.98),
    "bert": ("heads=4 width=64 context=16 tied=False pairs=False", "2.0e-3", 300, 0.9, 0.93),
}
SCHEDULES = {
    "4 pipelines": ('"chimera", {pipelines = 4}', ""),
    "forward doubling": ('"chimera", {concatenation = "doubling"}', ""),
    "recomputation": ('"chimera"', "recompute(all)"),
}
DESCRIPTION = """
chimera.model @m exported("{package}")
chimera.training @training learning_rate({rate})
chimera.pipeline @p of @m with @training stages({stages}) micro_batches({batches})
    schedule({schedule}) micro_batch_size({samples}) {options}
"""


def check(options, folder, model):
    checks = Checks()
    sizes, rate, steps, most, least = MODELS[model]
    stages = 4
    if options.full:
        stages, steps = 8, 2 * steps
    batches = 2 * stages
    samples = SAMPLES // batches
    package, data, shuffled = (folder / n for n in ("package", "data", "shuffled"))
    sizes = f"layers={stages - 2} {sizes} samples={samples}"
    export(package, model, sizes)
    # With twice the steps, a model that sees too little text learns it by heart.
    files = [ROOT / "LICENSE", *(sorted(ROOT.glob("*/README.md")) if options.full else [])]
    text = bytearray(b"".join(file.read_bytes() for file in files))
    data.write_bytes(text)
    random.Random(0).shuffle(text)
    shuffled.write_bytes(text)

    def train(name, data, steps):
        """Trains. Returns the held-out loss divided by the unigram model's loss."""
        schedule, more = SCHEDULES[name]
        program, log = folder / "program", folder / "log"
        description = DESCRIPTION.format(
            package=package, stages=stages, batches=batches, schedule=schedule,
            samples=samples, rate=rate, options=more,
        )  # fmt: skip
        compile_to(options.tools, description, program)
        run(
            options.tools / "chimera-run", program, "--data", data, "--tokens", "bytes",
            "--steps", steps,
            "--threads", 1, "--quiet", "--evaluate-samples", 128 * samples, "--log", log,
            "--load", package / "values.safetensors",
            *(["--mask", MASK, "--mask-rate", 0.3] if model == "bert" else []),
        )  # fmt: skip
        summary = json.loads(log.read_text().splitlines()[-1])["summary"]
        return summary["held_out_loss"] / summary["unigram_loss"]

    start = train("4 pipelines", data, 0)
    # Without --full one schedule is enough for BERT: other tests check that all
    # schedules train to the same numbers.
    schedules = SCHEDULES if options.full or model == "gpt2" else ["forward doubling"]
    for name in schedules:
        end = train(name, data, steps)
        line = f"{model}, {name}: held-out loss {start:.3f} of the unigram model's at "
        line += f"the start, {end:.3f} after {steps} steps"
        checks.check(start > 1.5 and end < most, line)
    end = train("4 pipelines", shuffled, steps)
    checks.check(end > least, f"{model}, shuffled text: {end:.3f} after {steps} steps")
    return checks.lines, checks.failed


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tools", type=pathlib.Path, required=True)
    parser.add_argument("--python", default=PYTHON)
    parser.add_argument("--full", action="store_true", help="8 stages, twice the steps")
    options = parser.parse_args()
    if restart_with(options.python, "torch", "safetensors"):
        check_each(lambda folder, model: check(options, folder, model), list(MODELS))


if __name__ == "__main__":
    main()
