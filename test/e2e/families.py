#!/usr/bin/env python3
# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exports tiny models of the families of Hugging Face's transformers, with
examples/models/huggingface.py and --check in float64. Compares the outcome with the
table tools/export/Families.md. The exported families must compute what autograd
computes. The other families must be refused for the reason in the table. Also tries
folders that do not exist, and checkpoints in bfloat16 and in several files.

Tries some families, or all of them with --full. --write writes the table. Exits
non-zero if an outcome differs. Needs a Python with torch and transformers: that of
build/venv, unless another Python runs this script."""

import argparse
import os
import pathlib
import re
import sys
import tempfile

from exporter import export, export_as
from exporting import PYTHON, ROOT, check_each
from forks import restart_with
from modules import READS

HERE = pathlib.Path(__file__).resolve().parent
TABLE = ROOT / "tools/export/Families.md"
SOURCE = ROOT / "examples/models/huggingface.py"
HEAD = """\
# Families of Hugging Face's transformers that can be exported

By [examples/models/huggingface.py](../../examples/models/huggingface.py), in tiny
configurations without dropout, with `--check` in float64. Written by
`test/e2e/families.py --write` with torch {torch} and transformers {transformers};
`test/e2e/families.py --full` holds the table against what it finds.

| family (`model_type`) | predicts | answer |
|---|---|---|
"""
GOOD = "exported, gradients as autograd's"
COMMON = dict(
    vocab_size=96, hidden_size=32, intermediate_size=64, num_hidden_layers=2,
    num_attention_heads=4, num_key_value_heads=2, head_dim=8,
    max_position_embeddings=64, pad_token_id=0, bos_token_id=1, eos_token_id=2,
)  # fmt: skip
EXPERTS = dict(
    num_experts=4, num_local_experts=4, num_experts_per_tok=2, moe_intermediate_size=16
)
DEEPSEEK = dict(
    EXPERTS, n_routed_experts=4, n_shared_experts=1, num_key_value_heads=4, head_dim=4,
    kv_lora_rank=8, q_lora_rank=8, qk_rope_head_dim=4, qk_nope_head_dim=4, v_head_dim=8,
    first_k_dense_replace=1, n_group=1, topk_group=1,
)  # fmt: skip
# Settings of each family's configuration in addition to COMMON. None removes a setting.
CAUSAL = {
    "apertus": {}, "arcee": {}, "biogpt": {}, "bitnet": {}, "bloom": dict(n_head=4),
    "codegen": dict(rotary_dim=4, n_head=4), "cohere": {}, "cohere2": {}, "ctrl": {},
    "deepseek_v2": DEEPSEEK, "deepseek_v3": DEEPSEEK, "ernie4_5": {}, "exaone4": {},
    "falcon": dict(head_dim=None, alibi=False), "gemma": {},
    "gemma2": dict(query_pre_attn_scalar=8), "gemma3_text": dict(query_pre_attn_scalar=8),
    "glm": {}, "glm4": {},
    "glm4_moe": dict(EXPERTS, n_routed_experts=4, n_shared_experts=1,
                     first_k_dense_replace=1),
    "gpt2": {}, "gpt_bigcode": {},
    "gpt_neo": dict(attention_types=[[["global", "local"], 1]], num_layers=2, num_heads=4),
    "gpt_neox": {}, "gpt_oss": EXPERTS, "gptj": dict(rotary_dim=4), "granite": {},
    "granitemoe": EXPERTS, "helium": {}, "hunyuan_v1_dense": {}, "lfm2": {}, "llama": {},
    "mamba": dict(state_size=4), "minimax": dict(EXPERTS, block_size=16), "ministral": {}, "mistral": {},
    "mixtral": EXPERTS, "mpt": dict(d_model=32, n_heads=4, n_layers=2, max_seq_len=64),
    "nemotron": {}, "olmo": {}, "olmo2": {}, "olmo3": {}, "olmoe": EXPERTS,
    "opt": dict(ffn_dim=64, word_embed_proj_dim=32), "persimmon": {}, "phi": {},
    "phi3": {}, "phimoe": EXPERTS, "qwen2": {},
    "qwen2_moe": dict(EXPERTS, shared_expert_intermediate_size=16), "qwen3": {},
    "qwen3_moe": EXPERTS, "seed_oss": {}, "smollm3": {}, "stablelm": {},
    "starcoder2": {},
    "xglm": dict(d_model=32, ffn_dim=64, num_layers=2, attention_heads=4),
}  # fmt: skip
MASKED = {
    "albert": dict(embedding_size=32, num_hidden_groups=1), "bert": {}, "camembert": {},
    "deberta-v2": {}, "distilbert": dict(dim=32, n_layers=2, n_heads=4, hidden_dim=64),
    "electra": dict(embedding_size=32), "modernbert": {}, "mpnet": {}, "roberta": {},
    "roformer": {},
}  # fmt: skip
FAMILIES = [(name, "make") for name in CAUSAL] + [(name, "masked") for name in MASKED]
PREDICTS = {"make": "next tokens", "masked": "masked tokens"}
# The families of the short form: a dense one, two with experts in different forms, one
# with an operator that is replaced, and one that is refused.
SHORT = ("gpt_neo", "bloom", "deepseek_v2", "gpt_oss", "mixtral", "roberta")


HALF = """
import torch
from chimera_export import Model
def make():
    tokens = torch.randint(0, 8, (2, 4))
    layers = [torch.nn.Embedding(8, 4), torch.nn.Linear(4, 8)]
    return Model(torch.nn.Sequential(*layers).bfloat16(), (tokens,), (tokens,),
                 lambda o, l: torch.nn.functional.cross_entropy(o.mT, l))
"""


# The loss of transformers' causal models shifts the labels, unless it gets shifted ones.
OWN_LOSS = """
import torch
from chimera_export import Model
from transformers.loss.loss_utils import ForCausalLMLoss
def make(shifted=False):
    tokens = torch.randint(0, 8, (2, 4))
    layers = [torch.nn.Embedding(8, 4), torch.nn.Linear(4, 8)]
    def loss(logits, labels):
        return ForCausalLMLoss(logits, labels, 8, shift_labels=labels if shifted else None)
    return Model(torch.nn.Sequential(*layers), (tokens,), (tokens,), loss)
"""


def configure(name, folder, **more):
    """Saves a tiny configuration of a family."""
    import transformers

    given = {**COMMON, **CAUSAL.get(name, {}), **MASKED.get(name, {}), **more}
    if name in MASKED:
        given["head_dim"] = None
    given = {k: v for k, v in given.items() if v is not None}
    config = transformers.AutoConfig.for_model(name, **given)
    for key, value in config.to_dict().items():
        if "drop" in key and isinstance(value, float):
            setattr(config, key, 0.0)
    config.save_pretrained(folder)
    return config


def answer_of(status, output):
    """The table's entry for the status and the output of an export."""
    if status == 0 and "are autograd's" in output:
        return GOOD
    refusals = [line for line in output.splitlines() if line.startswith("chimera-export: ")]
    text = refusals[-1] if refusals else "chimera-export: no answer"
    # Of a source line, keep only the name of the file, which is the name of the family.
    text = re.sub(r"(\w+\.py):\d+: .*?(?=: |, an autograd|$)", r"\1", text)
    return "refused: " + text.removeprefix("chimera-export: ").split(": ")[0]


def row(name, function, answer):
    return f"| {name} | {PREDICTS[function]} | {answer} |"


def check(command, folder, family, rows, writes):
    """Exports one family and compares the outcome with the table. If `writes`, does not
    compare."""
    name, function = family
    (folder / "model").mkdir()
    configure(name, folder / "model")
    status, output = export(
        command, folder, "--check", f"source={folder / 'model'}", "context=16", "samples=2",
        source=f"{SOURCE}:{function}",
    )  # fmt: skip
    rows[family] = row(name, function, answer_of(status, output))
    good = writes or rows[family] in TABLE.read_text().splitlines()
    good = good and READS not in output  # all are causal or predict masked tokens
    lines = [f"{'ok  ' if good else 'FAIL'} {rows[family]}"]
    return lines + ([] if good else [output]), int(not good)


def check_folders(command, folder):
    """Checks the messages about folders and their types, without asking any server."""
    import socket

    import torch
    import transformers
    from safetensors.torch import load_file

    lines, failed = [], 0

    def expect(good, what, output):
        nonlocal failed
        lines.append(f"ok   {what}" if good else f"FAIL {what}\n{output}")
        failed += not good

    def refuse(*_, **__):
        print("a server was asked", flush=True)
        raise OSError("no network in this test")

    socket.socket.connect = refuse
    socket.getaddrinfo = refuse
    (folder / "llama").mkdir()
    for source, answer in (
        (folder / "lama", "no such folder; did you mean llama?"),
        ("a/b/c", "source=a/b/c: no such folder"),
        ("nobody/nothing", "nor is a model of that name in the cache"),
        ("nothing", "nor is a model of that name in the cache"),
        (folder / "llama", "expected a folder that save_pretrained wrote"),
    ):
        status, output = export(command, folder, f"source={source}", source=str(SOURCE))
        good = status == 1 and answer in output and "a server was asked" not in output
        expect(good and "Traceback" not in output, f"refused: {source}", output)

    torch.manual_seed(0)
    config = configure("llama", folder / "llama", tie_word_embeddings=False)
    model = transformers.LlamaForCausalLM(config).to(torch.bfloat16)
    model.save_pretrained(folder / "llama", max_shard_size="30KB")
    assert (folder / "llama/model.safetensors.index.json").exists()
    status, output = export(
        command, folder, "--check", f"source={folder / 'llama'}", "weights=True",
        "context=16", "samples=2", source=str(SOURCE),
    )  # fmt: skip
    expect(status == 0 and "is in bfloat16: exported in float64" in output,
           "a checkpoint in bfloat16 says in what it is exported", output)  # fmt: skip
    values = load_file(folder / "package/values.safetensors") if status == 0 else {}
    wanted = dict(model.named_parameters())
    good = values.keys() == wanted.keys() and all(
        torch.equal(values[n], wanted[n].double()) for n in wanted
    )
    expect(good, "its values, of several files, are exported as they are", output)
    half = folder / "half.py"
    half.write_text(HALF)
    for options, answer in (
        ([], "float64, got torch.bfloat16: --type float32 converts them"),
        (["--no-values"], "got torch.bfloat16: make the module in one of these"),
        (["--type", "float32"], ""),
    ):
        given = ["chimera-export", str(half), "-o", str(folder / "half"), *options]
        status, output = export_as(command, folder, given)
        good = answer in output and (status == 0) == (answer == "")
        expect(good and "Traceback" not in output, f"bfloat16 parameters {options}", output)
    own = folder / "own.py"
    own.write_text(OWN_LOSS)
    for options, answer in (([], "it shifts 'labels' by 1"), (["shifted=True"], "")):
        given = ["chimera-export", str(own), "-o", str(folder / "own"), *options]
        status, output = export_as(command, folder, given)
        good = answer in output and (status == 0) == (answer == "")
        expect(good and "Traceback" not in output, f"transformers' loss {options}", output)
    return lines, failed


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", default=PYTHON)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    if not restart_with(options.python, "torch", "transformers"):
        return
    sys.path.insert(0, str(ROOT / "tools/export"))
    # Import these here, so that the forked children have them in memory.
    import torch
    import transformers
    from chimera_export import check as _, command, package as _  # noqa: F401

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    full = options.full or options.write
    families = [f for f in FAMILIES if full or f[0] in SHORT]
    rows = {}

    def at_end():
        if options.write:
            head = HEAD.format(
                torch=torch.__version__.split("+")[0], transformers=transformers.__version__
            )
            TABLE.write_text(head + "\n".join(rows[f] for f in families) + "\n")
        with tempfile.TemporaryDirectory() as name:
            return check_folders(command, pathlib.Path(name))

    check_each(
        lambda folder, family: check(command, folder, family, rows, options.write),
        families, at_end,
    )  # fmt: skip


if __name__ == "__main__":
    main()
