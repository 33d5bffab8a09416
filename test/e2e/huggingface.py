#!/usr/bin/env python3
# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes a GPT-2, a Llama and a BERT of Hugging Face's transformers with random weights,
saves and exports them. Takes a step of SGD on 2 and on 4 ranks, in float32, on a file
of tokens. Compares loss, gradients and weights with a step of transformers' own model:
the norm of the difference must be at most 1e-4 of the norm of all. Transformers must
read the weights that the run saves, and those in its checkpoint. With examples/weights/gpt2-huggingface.json, the
runtime's own GPT-2 must take the same step as transformers' GPT-2.

BERT predicts masked tokens, and whether one sentence follows another. Its samples are
padded pairs of sentences.

With --full GPT-2 and BERT have the published sizes, 124 and 110 million parameters.
Prints a line for each comparison and exits non-zero if one fails. Needs a Python with
torch and transformers: that of build/venv, unless another Python runs this script."""

import argparse
import copy
import json
import pathlib
import sys
import types

from exporting import EXPORT, PYTHON, ROOT, check_each
from forks import restart_with, run_script
from grid import run
from numerics import Checks, losses

HERE = pathlib.Path(__file__).resolve().parent
CONTEXT, SAMPLES, BATCHES, SEED, RATE = 32, 2, 4, 7, 0.25
MASK, MARKS = 103, (101, 102, 0)  # in BERT's vocabulary
OWN = "gpt2-own"
NAMES = ROOT / "examples/weights/gpt2-huggingface.json"
DESCRIPTION = """
chimera.model @m {model}
chimera.training @training seed({seed}) optimizer(sgd) learning_rate({rate}) weight_decay(0)
chimera.pipeline @p of @m with @training stages({stages}) micro_batches({batches})
    schedule("{schedule}") micro_batch_size({samples})
"""


def configurations(full):
    import transformers

    size = {} if full else {"n_layer": 4, "n_head": 4, "n_embd": 64}
    of_bert = {} if full else {
        "num_hidden_layers": 4, "num_attention_heads": 4, "hidden_size": 64,
        "intermediate_size": 128,
    }  # fmt: skip
    gpt2 = transformers.GPT2Config(
        **size, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0
    )
    llama = transformers.LlamaConfig(
        vocab_size=1000, hidden_size=64, intermediate_size=128, num_hidden_layers=4,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=128,
    )  # fmt: skip
    bert = transformers.BertConfig(
        **of_bert, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0
    )
    own = copy.deepcopy(gpt2)
    own.n_positions = CONTEXT
    return {"gpt2": gpt2, "llama": llama, "bert": bert, OWN: own}


def make(name, folder, full):
    """Saves a model with random weights, and a file of tokens."""
    import torch
    import transformers

    torch.manual_seed(0)
    config = configurations(full)[name]
    if name == "bert":
        model = transformers.BertForPreTraining(config)
    else:
        model = transformers.AutoModelForCausalLM.from_config(config)
    model.save_pretrained(folder / "model")
    tokens = torch.randint(0, config.vocab_size, (20000,))
    (folder / "tokens.bin").write_bytes(tokens.to(torch.uint16).numpy().tobytes())


def read(name, folder):
    """Loads the model that is saved in `folder`."""
    import transformers

    if name == "bert":
        return transformers.BertForPreTraining.from_pretrained(folder)
    return transformers.AutoModelForCausalLM.from_pretrained(folder)


def compare(name, folder):
    """Takes the step in PyTorch, and compares the result with the runs on 2 and 4
    ranks. Prints a line of JSON for each difference."""
    sys.path.insert(0, str(HERE))
    import torch
    import torch.nn.functional as F
    from reference import windows
    from samples import BertSamples
    from safetensors.torch import load_file

    def load(path):
        return {n: t.double() for n, t in load_file(path).items()}

    torch.set_num_threads(2)
    model = read(name, folder / "model")
    model.train()
    raw = bytearray((folder / "tokens.bin").read_bytes())
    text = torch.frombuffer(raw, dtype=torch.uint16).long().tolist()
    settings = types.SimpleNamespace(
        hold_out=0.1, context=CONTEXT, micro_batch_size=SAMPLES, seed=SEED,
        micro_batches=BATCHES, data_parallel=1,
    )  # fmt: skip
    if name == "bert":
        # Make all micro-batches one batch. Then the model's own loss is the sum of both
        # means.
        samples = BertSamples(text, settings, MASK, MARKS)
        each = [samples.of(0, m) for m in range(BATCHES)]
        inputs = ["input_ids", "token_type_ids", "attention_mask"]
        names = [*inputs, "labels", "next_sentence_label"]
        batch = {
            n: torch.tensor(sum(map(list, parts), [])) for n, parts in zip(names, zip(*each))
        }
        loss = model(**batch).loss
        loss.backward()
        total = loss.item()
        sample = {n: batch[n] for n in inputs}
    else:
        total = 0.0
        for micro_batch in range(BATCHES):
            tokens, labels = windows(text, settings, 0, micro_batch)
            logits = model(tokens, use_cache=False).logits
            loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten())
            (loss / BATCHES).backward()
            total += loss.item() / BATCHES
        sample = {"input_ids": torch.tensor([text[:CONTEXT]])}
    print(json.dumps(["loss", total]))
    gradients = {n: p.grad.double() for n, p in model.named_parameters()}
    with torch.no_grad():
        for p in model.parameters():
            p -= RATE * p.grad
    weights = {n: p.detach().double() for n, p in model.named_parameters()}
    for ranks in (2, 4):
        for what, ours in (("gradients", gradients), ("weights", weights)):
            theirs = load(folder / f"{what}{ranks}")
            if theirs.keys() != ours.keys():
                print(json.dumps([what, ranks, str(theirs.keys() ^ ours.keys())]))
                continue
            whole = sum(t.square().sum() for t in ours.values()).sqrt()
            worst = max((ours[n] - theirs[n]).norm() / whole for n in ours)
            print(json.dumps([what, ranks, worst.item()]))
    # Read the saved model as a user would, and the checkpoint.
    model.eval()
    for what, trained in (
        ("logits", read(name, folder / "trained")),
        ("logits of the checkpoint", read(name, folder / "kept4/step-00000001")),
    ):
        trained.eval()
        with torch.no_grad():
            a, b = (m(**sample, return_dict=False)[0] for m in (model, trained))
        print(json.dumps([what, 4, ((a - b).norm() / a.norm()).item()]))


def own_model(folder):
    """The clauses of a description for the runtime's own GPT-2. It has the sizes of the
    model in `folder`."""
    config = json.loads((folder / "config.json").read_text())
    sizes = {
        "layers": "n_layer", "heads": "n_head", "width": "n_embd",
        "context": "n_positions", "vocabulary": "vocab_size",
    }  # fmt: skip
    return f"gpt2 {' '.join(f'{ours}({config[n]})' for ours, n in sizes.items())} tied"


def export(options, name, folder):
    run_script(
        EXPORT,
        f"{ROOT}/examples/models/huggingface.py{':bert' if name == 'bert' else ''}",
        f"source={folder / 'model'}",
        f"context={CONTEXT}", f"samples={SAMPLES}", "--no-values",
        "-o", folder / "package",
    )  # fmt: skip
    return f'exported("{folder / "package"}")'


def check(options, name, folder):
    checks = Checks()
    full = ["--full"] if options.full else []
    run_script(__file__, "--make", name, "--folder", folder, *full)
    weights = folder / "model/model.safetensors"
    if name == OWN:
        model, more = own_model(folder / "model"), ["--names", NAMES]
    else:
        model, more = export(options, name, folder), []
        package = (folder / "package/model.json").read_text()
        checks.check(
            "aten::cumsum" not in package, f"{name}: no search for texts in one row"
        )
    if name == "bert":
        more = ["--mask", MASK, "--pairs", "{},{},{}".format(*MARKS)]
    means = {}
    for ranks, schedule in ((2, "1f1b"), (4, "chimera")):
        source, program = folder / "m.mlir", folder / "m.chimera"
        source.write_text(
            DESCRIPTION.format(
                model=model, stages=ranks, batches=BATCHES, schedule=schedule,
                samples=SAMPLES, seed=SEED, rate=RATE,
            )  # fmt: skip
        )
        run(options.tools / "chimera-compile", source, "-o", program)
        run(
            options.tools / "chimera-run", program, "--data", folder / "tokens.bin",
            "--tokens", "uint16", "--load", weights, "--steps", 1, "--quiet",
            "--evaluate-samples", 0, "--save", folder / f"weights{ranks}",
            "--save-gradients", folder / f"gradients{ranks}",
            "--log", folder / f"log{ranks}", "--checkpoint", folder / f"kept{ranks}", *more,
        )  # fmt: skip
        means[ranks] = losses(folder / f"log{ranks}")[0]
    trained = folder / "trained"
    trained.mkdir()
    for file in (folder / "model").glob("*.json"):
        (trained / file.name).write_bytes(file.read_bytes())
    for file in (folder / "model").glob("*config.json"):
        (folder / "kept4/step-00000001" / file.name).write_bytes(file.read_bytes())
    (folder / "weights4").rename(folder / "trained/model.safetensors")
    (folder / "weights4").symlink_to(folder / "trained/model.safetensors")
    rows = run_script(__file__, "--compare", name, "--folder", folder)
    for row in map(json.loads, rows.splitlines()):
        if row[0] == "loss":
            for ranks, mean in means.items():
                checks.check(
                    abs(mean - row[1]) <= 1e-4 * row[1],
                    f"{name}: loss of {ranks} ranks {mean:.6f}, transformers' "
                    f"{row[1]:.6f}",
                )
        else:
            what, ranks, worst = row
            good = isinstance(worst, float) and worst <= 1e-4
            checks.check(good, f"{name}: {what} of {ranks} ranks differ by {worst}")
    return checks.lines, checks.failed


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tools", type=pathlib.Path)
    parser.add_argument("--python", default=PYTHON)
    parser.add_argument("--full", action="store_true", help="GPT-2's published size")
    parser.add_argument("--make", help=argparse.SUPPRESS)
    parser.add_argument("--compare", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=pathlib.Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.make:
        return make(options.make, options.folder, options.full)
    if options.compare:
        return compare(options.compare, options.folder)
    if restart_with(options.python, "torch", "transformers"):
        check_each(
            lambda folder, name: check(options, name, folder), ("gpt2", OWN, "llama", "bert")
        )
    return None


if __name__ == "__main__":
    main()
