#!/usr/bin/env python3
# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs the scripts of examples/ as a user does, with few steps. Trains the user's own
module and a BERT. Fine-tunes a GPT-2 of Hugging Face's transformers, which this script
makes with random weights and a tokenizer. Transformers must be able to read the
fine-tuned model, and must continue a text as chimera did. Exits non-zero if one fails.
Needs a Python with torch, transformers and tokenizers: that of build/venv, unless
another Python runs this script."""

import argparse
import array
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from exporting import PYTHON, ROOT
from forks import restart_with, run_script

EXAMPLES = ROOT / "examples"
PROMPT = [5, 6, 7]
CONTEXT = 32


def make(folder, text):
    """Makes a model in the form of save_pretrained, with a tokenizer for the text."""
    import tokenizers
    import transformers

    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=400, show_progress=False)
    tokenizer.train([text], trainer)
    config = transformers.GPT2Config(
        vocab_size=tokenizer.get_vocab_size(), n_layer=3, n_head=2, n_embd=32
    )
    transformers.AutoModelForCausalLM.from_config(config).save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))


def read_back(before, after):
    import torch
    import transformers

    models = [
        transformers.AutoModelForCausalLM.from_pretrained(f) for f in (before, after)
    ]
    changes = [
        (a - b).abs().max().item()
        for a, b in zip(*(m.parameters() for m in models), strict=True)
    ]
    assert all(0 < change < 0.1 for change in changes), changes
    # The saved model must predict the text that the run generated: each token is the
    # most likely one after the last CONTEXT tokens, except for ties within rounding.
    numbers = [int(line) for line in (pathlib.Path(after) / "ids").read_text().split()]
    text = list(PROMPT)
    for number in numbers:
        with torch.no_grad():
            logits = models[1](torch.tensor([text[-CONTEXT:]])).logits[0, -1]
        behind = (logits.max() - logits[number]).item()
        assert behind < 1e-4, (text, number, behind)
        text.append(number)


def run(environment, *command, given=None):
    done = subprocess.run(
        [str(c) for c in command], capture_output=True, text=True, input=given,
        env=os.environ | environment,
    )  # fmt: skip
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tools", type=pathlib.Path)
    parser.add_argument("--python", default=PYTHON)
    parser.add_argument("--make", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--read-back", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.make:
        return make(pathlib.Path(options.make[0]), options.make[1])
    if options.read_back:
        return read_back(*options.read_back)
    if not restart_with(options.python, "torch", "transformers", "tokenizers"):
        return None
    text = ROOT / "LICENSE"
    here = {"CHIMERA_BIN": str(options.tools.resolve())}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        output = run(here | {"STEPS": "30"}, EXAMPLES / "own-module.sh", text)
        # Layers of the same kind are exported once.
        assert "9 layers of 4 kinds" in output, output
        assert "gradients are autograd's" in output, output
        losses = re.findall(r"step \d+/30 +loss ([\d.]+)", output)
        assert float(losses[-1]) < float(losses[0]) - 1, output
        print("own-module.sh:", output.splitlines()[-1])

        run_script(__file__, "--make", folder, text)
        output = run(
            here | {"STEPS": "5", "CONTEXT": str(CONTEXT)}, EXAMPLES / "fine-tune.sh",
            folder, text, folder / "tuned",
        )  # fmt: skip
        tuned = folder / "tuned"
        (tuned / "prompt.bin").write_bytes(array.array("H", PROMPT).tobytes())
        numbers = run(
            {}, options.tools / "chimera-run", tuned / "train.chimera", "--load",
            tuned / "model.safetensors", "--prompt", tuned / "prompt.bin", "--tokens",
            "uint16", "--generate", 40, "--temperature", 0,
        )  # fmt: skip
        (tuned / "ids").write_text(numbers)
        decode = [ROOT / "tools/export/chimera-tokens", "--decode", "--tokenizer"]
        text_of = run({}, *decode, folder / "tokenizer.json", given=numbers)
        assert len(text_of) > 40, text_of
        assert run({}, *decode, folder / "tokenizer.json", tuned / "ids") == text_of
        run_script(__file__, "--read-back", folder, folder / "tuned")
        print("fine-tune.sh:", output.splitlines()[-1])

        output = run(here | {"STEPS": "60"}, EXAMPLES / "bert.sh", text)
        heldout = re.findall(r"held-out loss ([\d.]+)", output)
        assert len(heldout) == 2 and 3 < float(heldout[1]) < 4.5, output
        print("bert.sh:", output.splitlines()[-1])
    return None


if __name__ == "__main__":
    main()
