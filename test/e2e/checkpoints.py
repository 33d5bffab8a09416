#!/usr/bin/env python3
# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loads checkpoints that other software wrote: folders of Hugging Face's transformers
(in bfloat16, in float16, in shards, and with a tied matrix under both of its names),
and the consolidated file of torch's Hugging Face writer. A run of no steps saves the
weights. They must equal, bit by bit, the weights that transformers reads in float32.
examples/fine-tune.sh must train from shards in bfloat16, and transformers must read the
weights that it saves.

Exits non-zero if one differs. Needs a Python with torch, transformers and tokenizers:
that of build/venv, unless another Python runs this script."""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from exporting import EXPORT, PYTHON, ROOT
from forks import restart_with, run_script
from grid import compile_to, run

KINDS = {
    "float32": "llama", "bfloat16": "llama", "float16": "llama", "shards": "llama",
    "index": "llama", "consolidated": "llama", "tied": "qwen2", "both names": "qwen2",
    "both names, unequal": "qwen2",
}  # fmt: skip
TYPES = {"bfloat16": "BF16", "float16": "F16", "shards": "BF16", "index": "BF16"}
DESCRIPTION = """
chimera.model @m exported("{package}")
chimera.pipeline @p of @m stages(2) micro_batches(2) schedule("1f1b") micro_batch_size(2)
"""


def model_of(kind):
    import torch
    import transformers

    torch.manual_seed(0)
    sizes = dict(
        vocab_size=400, hidden_size=32, intermediate_size=64, num_hidden_layers=3,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=128,
    )  # fmt: skip
    if KINDS[kind] == "llama":
        config = transformers.LlamaConfig(**sizes, tie_word_embeddings=False)
        return transformers.LlamaForCausalLM(config)
    config = transformers.Qwen2Config(**sizes, tie_word_embeddings=True)
    return transformers.Qwen2ForCausalLM(config)


def make(kind, folder, text):
    """Writes a checkpoint to a new folder."""
    import tokenizers
    import torch
    from safetensors.torch import load_file, save_file

    model = model_of(kind)
    if kind in TYPES:
        model = model.to(torch.float16 if kind == "float16" else torch.bfloat16)
    model.save_pretrained(folder, max_shard_size="20KB" if kind in ("shards", "index") else "1GB")
    file = folder / "model.safetensors"
    if kind.startswith("both names"):
        tensors = load_file(file)
        again = tensors["model.embed_tokens.weight"].clone()
        if kind.endswith("unequal"):
            again[-1, -1] += 1
        save_file(tensors | {"lm_head.weight": again}, file)
    if kind == "consolidated":
        consolidate(load_file(file), folder)
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=400, show_progress=False)
    tokenizer.train([text], trainer)
    tokenizer.save(str(folder / "tokenizer.json"))


def consolidate(tensors, folder):
    """Writes the tensors with torch's Hugging Face writer, whose file has no
    metadata."""
    import torch.distributed.checkpoint as dcp

    to = folder / "written"
    writer = dcp.HuggingFaceStorageWriter(
        path=str(to), fqn_to_index_mapping={name: 1 for name in tensors},
        save_distributed=True, enable_consolidation=True,
    )  # fmt: skip
    dcp.save(tensors, storage_writer=writer)
    (file,) = to.glob("*.safetensors")
    header = file.read_bytes()
    assert b"__metadata__" not in header[:20000]
    file.rename(folder / "model.safetensors")


def compare(folder):
    """Checks that the saved weights equal the weights that transformers reads."""
    import torch
    import transformers
    from safetensors.torch import load_file

    read = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    theirs, ours = dict(read.named_parameters()), load_file(folder / "saved")
    assert theirs.keys() == ours.keys(), theirs.keys() ^ ours.keys()
    for name, parameter in theirs.items():
        assert torch.equal(parameter, ours[name]), name


def check_fine_tune(before, after):
    import torch
    import transformers

    models = [
        transformers.AutoModelForCausalLM.from_pretrained(f) for f in (before, after)
    ]
    assert models[1].dtype == torch.float32, models[1].dtype
    for a, b in zip(*(m.parameters() for m in models), strict=True):
        assert 0 < (a - b).abs().max().item() < 0.1


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tools", type=pathlib.Path)
    parser.add_argument("--python", default=PYTHON)
    parser.add_argument("--make", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--compare", nargs="+", help=argparse.SUPPRESS)
    parser.add_argument("--check-fine-tune", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.make:
        top, text = options.make
        for kind in KINDS:
            make(kind, pathlib.Path(top) / kind, text)
        return None
    if options.compare:
        for folder in options.compare:
            compare(pathlib.Path(folder))
        return None
    if options.check_fine_tune:
        return check_fine_tune(*options.check_fine_tune)
    if not restart_with(options.python, "torch", "transformers", "tokenizers"):
        return None
    text = ROOT / "LICENSE"
    with tempfile.TemporaryDirectory() as name:
        top = pathlib.Path(name)
        programs = {}
        run_script(__file__, "--make", top, text)
        loaded = []
        for kind, family in KINDS.items():
            folder = top / kind
            if family not in programs:
                package = top / f"{family}-package"
                run_script(
                    EXPORT,
                    ROOT / "examples/models/huggingface.py", f"source={folder}",
                    "context=32", "samples=2", "--no-values", "-o", package,
                )  # fmt: skip
                programs[family] = top / f"{family}.chimera"
                compile_to(
                    options.tools, DESCRIPTION.format(package=package), programs[family]
                )
            load = folder
            if kind == "index":
                load = folder / "model.safetensors.index.json"
            command = [
                options.tools / "chimera-run", programs[family], "--data", text,
                "--tokens", "bytes", "--load", load, "--steps", 0, "--save", folder / "saved",
                "--threads", 1,
            ]  # fmt: skip
            if kind.endswith("unequal"):
                refused = subprocess.run([str(c) for c in command], capture_output=True, text=True)
                assert refused.returncode == 1, refused
                assert (
                    "lm_head.weight: expected the same values as in "
                    "model.embed_tokens.weight, because the program's model ties the two"
                    in refused.stderr
                ), refused.stderr  # fmt: skip
                print(f"{kind}: refused by both names")
                continue
            output = run(*command)
            told = f"tensors of {TYPES[kind]}, converted to F32 exactly" if kind in TYPES else ""
            assert output.count("converted") == (1 if told else 0) and told in output, output
            loaded.append(folder)
        run_script(__file__, "--compare", *loaded)
        print(f"as transformers reads them: {', '.join(f.name for f in loaded)}")
        environment = os.environ | {
            "CHIMERA_BIN": str(options.tools.resolve()), "STEPS": "2", "CONTEXT": "32",
            "RANKS": "2",
        }  # fmt: skip
        tuned = top / "tuned"
        done = subprocess.run(
            [str(ROOT / "examples/fine-tune.sh"), str(top / "shards"), str(text), str(tuned)],
            env=environment, capture_output=True, text=True,
        )  # fmt: skip
        if done.returncode:
            sys.exit(done.stdout + done.stderr)
        assert json.loads((tuned / "config.json").read_text())["dtype"] == "float32"
        run_script(__file__, "--check-fine-tune", top / "shards", tuned)
        print("fine-tune.sh: from shards in bfloat16, and back")
    return None


if __name__ == "__main__":
    main()
