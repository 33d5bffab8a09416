#!/usr/bin/env python3
# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trains a GPT-2 of transformers on two ranks in float64, on samples in which not all
labels count and on documents, and compares the loss of each step and the weights with a
plain PyTorch loop. The loop has no code of chimera's for its samples: it gets them from
transformers' tokenizer and data collators, one sequence for each sample or document.

- answers: prompts with completions, chats, and chats of a prompt and a completion, padded;
  DataCollatorForSeq2Seq.
- texts: padded texts in which all tokens count; DataCollatorForLanguageModeling.
- packed: the samples of `answers`, several in a row, kept apart by their positions.
- documents: a file of tokens with an index, whose documents the positions keep apart.
- within: the same file with --within-documents, for a model of tokens alone.

Prints a line for each comparison and exits non-zero if one fails. Needs a Python with
torch and transformers: that of build/venv, unless another Python runs this script."""

import argparse
import json
import pathlib
import random
import sys
import types

from exporting import EXPORT, PYTHON, ROOT, check_each, of_type
from forks import restart_with, run_script
from grid import run
from numerics import losses, read_tensors

HERE = pathlib.Path(__file__).resolve().parent
LENGTH, SAMPLES, BATCHES, STEPS, SEED, RATE = 24, 2, 4, 6, 7, 0.05
DESCRIPTION = """
chimera.model @m exported("{package}")
chimera.training @t seed({seed}) optimizer(sgd) learning_rate({rate}) weight_decay(0.0)
chimera.pipeline @p of @m with @t stages(2) micro_batches({batches}) schedule("1f1b")
    micro_batch_size({samples}) weight_type(f64)
"""
# For each case: the model, its arguments, and more options of chimera-run.
CASES = {
    "answers": ("huggingface.py:instructions", [], []),
    "texts": ("huggingface.py:instructions", [], []),
    "packed": ("huggingface.py:instructions", ["packed=True"], []),
    "documents": ("huggingface.py:instructions", ["packed=True"], []),
    "within": ("huggingface.py", [], ["--within-documents"]),
}
MARKS = ["<|end|>", "<|pad|>", "<|user|>", "<|assistant|>"]
TEMPLATE = (
    "{% for m in messages %}{% if m['role'] == 'assistant' %}<|assistant|>BEGIN"
    "{{ m['content'] + eos_token }}END{% else %}<|user|>{{ m['content'] }}{% endif %}"
    "{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
MARKED = TEMPLATE.replace("BEGIN", "{% generation %}").replace("END", "{% endgeneration %}")
PLAIN = TEMPLATE.replace("BEGIN", "").replace("END", "")


def lines_of(case):
    """The objects of the JSON lines of a case."""
    words = (ROOT / "LICENSE").read_text().split()
    draw = random.Random(case)

    def some(least, most):
        begin = draw.randrange(len(words) - most)
        return " ".join(words[begin : begin + draw.randint(least, most)])

    if case in ("answers", "packed"):
        made = []
        for i in range(60):
            prompt, completion = some(1, 4), " " + some(1, 4)
            if i % 3:
                made.append({"prompt": prompt, "completion": completion})
                continue
            turns = [("user", prompt), ("assistant", completion)] * draw.randint(1, 2)
            chat = [{"role": r, "content": c} for r, c in turns]
            if i % 2:
                made.append({"prompt": chat[:-1], "completion": chat[-1:]})
            else:
                made.append({"messages": chat})
        return made
    return [{"text": some(3, 60 if case == "within" else 15)} for _ in range(90)]


def make(case, folder):
    """Saves a model, a tokenizer and the JSON lines."""
    import tokenizers
    import torch
    import transformers

    text = tokenizers.Tokenizer(tokenizers.models.BPE())
    text.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    text.decoder = tokenizers.decoders.ByteLevel()
    text.train(
        [str(ROOT / "LICENSE")],
        tokenizers.trainers.BpeTrainer(
            vocab_size=500, special_tokens=MARKS, show_progress=False
        ),
    )
    for name, template in (("tokenizer", PLAIN), ("marked", MARKED)):
        transformers.PreTrainedTokenizerFast(
            tokenizer_object=text, eos_token=MARKS[0], pad_token=MARKS[1],
            chat_template=template,
        ).save_pretrained(folder / name)  # fmt: skip
    torch.manual_seed(0)
    # A sequence of the plain loop may have one token more than a window, for the label.
    transformers.GPT2LMHeadModel(
        transformers.GPT2Config(
            vocab_size=500, n_positions=LENGTH + 1, n_embd=32, n_layer=4, n_head=2,
            resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=0, eos_token_id=0,
        )
    ).save_pretrained(folder / "model")  # fmt: skip
    (folder / "lines.jsonl").write_text("".join(json.dumps(o) + "\n" for o in lines_of(case)))


def features_of(line, tokenizer):
    """A sample, as transformers' users make it: the tokens, and labels of the same
    positions."""
    if "messages" in line:
        made = tokenizer.apply_chat_template(
            line["messages"], return_dict=True, return_assistant_tokens_mask=True
        )
        ids, counts = made["input_ids"], made["assistant_masks"]
    elif isinstance(line.get("prompt"), list):
        before, ids = (
            tokenizer.apply_chat_template(chat, return_dict=True, add_generation_prompt=ends)
            ["input_ids"]
            for chat, ends in (
                (line["prompt"], True), (line["prompt"] + line["completion"], False),
            )
        )  # fmt: skip
        counts = [0] * len(before) + [1] * (len(ids) - len(before))
    elif "prompt" in line:
        before = len(tokenizer(line["prompt"])["input_ids"])
        ids = tokenizer(line["prompt"] + line["completion"] + tokenizer.eos_token)["input_ids"]
        counts = [0] * before + [1] * (len(ids) - before)
    else:
        ids = tokenizer(line["text"] + tokenizer.eos_token)["input_ids"]
        counts = [1] * len(ids)
    ids, counts = ids[:LENGTH], counts[:LENGTH]
    return {"input_ids": ids, "labels": [n if c else -100 for n, c in zip(ids, counts)]}


class Plain:
    """The samples of a case as sequences of their own. `batch(positions)` returns, for
    samples of one micro-batch by their numbers, lists of batches for the model. Each
    batch has labels of the same positions, which the loss shifts."""

    def __init__(self, case, folder):
        import transformers

        self.tokenizer = transformers.AutoTokenizer.from_pretrained(folder / "marked")
        each = [features_of(line, self.tokenizer) for line in lines_of(case)]
        self.each = [s for s in each if any(n != -100 for n in s["labels"][1:])]
        self.count = len(self.each) - len(self.each) // 10  # samples that train
        self.collate = transformers.DataCollatorForSeq2Seq(self.tokenizer, padding=True)

    def batches(self, step, numbers):
        return [self.collate([self.each[n] for n in numbers])]


class Texts(Plain):
    def __init__(self, case, folder):
        import transformers

        super().__init__(case, folder)
        collate = transformers.DataCollatorForLanguageModeling(self.tokenizer, mlm=False)
        self.collate = lambda some: collate([{"input_ids": s["input_ids"]} for s in some])


class Packed(Plain):
    """The sequences are those in the file. They must be all samples."""

    def __init__(self, case, folder):
        super().__init__(case, folder)
        from safetensors.torch import load_file

        arrays = load_file(folder / "samples.safetensors")
        pad = self.tokenizer.pad_token_id
        self.rows = []
        for tokens, labels, positions in zip(
            *(arrays[n].tolist() for n in ("input_ids", "labels", "position_ids"))
        ):
            begins = [i for i, p in enumerate(positions) if p == 0 and tokens[i] != pad]
            ends = [*begins[1:], LENGTH - tokens.count(pad)]
            self.rows.append(
                [
                    {"input_ids": tokens[b:e], "labels": [-100, *labels[b : e - 1]]}
                    for b, e in zip(begins, ends)
                ]
            )
        ours = sorted(str(s) for row in self.rows for s in row)
        for sample in self.each:
            sample["labels"][0] = -100  # the first token has no label
        if ours != sorted(map(str, self.each)):
            sys.exit("packed: expected all samples in the rows")
        self.count = len(self.rows) - len(self.rows) // 10

    def batches(self, step, numbers):
        return [self.collate([s]) for n in numbers for s in self.rows[n]]


class Documents:
    """The documents in a window, each as a sequence. The label of a window's last token
    is the next token."""

    def __init__(self, case, folder):
        import transformers

        tokenizer = transformers.AutoTokenizer.from_pretrained(folder / "marked")
        self.text, self.ends = [], []
        lines = lines_of(case)
        for i, line in enumerate(lines):
            self.text += tokenizer(line["text"])["input_ids"]
            if i + 1 < len(lines):
                self.text.append(tokenizer.eos_token_id)  # --between
            self.ends.append(len(self.text))
        self.training = len(self.text) - int(len(self.text) * 0.1)
        self.count = max((self.training - LENGTH) // LENGTH, 1)

    def start(self, epoch, window):
        from reference import FIRST_WINDOW, mix

        places = min(LENGTH, self.training - self.count * LENGTH)
        return mix(SEED, FIRST_WINDOW, epoch) % places + window * LENGTH

    def batches(self, step, samples):
        import torch

        made = []
        for epoch, window in samples:
            begin = start = self.start(epoch, window)
            cuts = [e for e in self.ends if start < e <= start + LENGTH]
            for end in [*cuts, start + LENGTH]:
                # The token after the window is the last label, if no document ends.
                whole = self.text[begin : end if end in cuts else end + 1]
                if len(whole) > 1:
                    made.append({n: torch.tensor([whole]) for n in ("input_ids", "labels")})
                begin = end
        return made


class Within(Documents):
    def __init__(self, case, folder):
        super().__init__(case, folder)
        self.starts = []  # of each window: the document's, its number there, and places
        begin = 0
        for end in self.ends:
            size = min(end, self.training) - begin
            windows = max(size - 1, 0) // LENGTH
            self.starts += [(begin, k, size - windows * LENGTH) for k in range(windows)]
            begin = end
        self.count = len(self.starts)
        self.ends = []  # windows have no ends of documents

    def start(self, epoch, window):
        from reference import FIRST_WINDOW, mix

        begin, number, places = self.starts[window]
        return begin + mix(SEED, FIRST_WINDOW, epoch, begin) % places + number * LENGTH


PLAIN_DATA = {
    "answers": Plain, "texts": Texts, "packed": Packed, "documents": Documents,
    "within": Within,
}  # fmt: skip


def plain_loop(case, folder):
    """Trains in plain PyTorch. Prints the losses and the weights, as JSON."""
    sys.path.insert(0, str(HERE))
    import torch
    import torch.nn.functional as F
    import transformers
    from reference import sample_at

    torch.set_num_threads(1)
    model = transformers.AutoModelForCausalLM.from_pretrained(
        folder / "model", dtype=torch.float64
    ).train()
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
    settings = types.SimpleNamespace(
        micro_batch_size=SAMPLES, micro_batches=BATCHES, data_parallel=1, seed=SEED
    )
    data = PLAIN_DATA[case](case, folder)
    each, theirs, counted = [], [], 0
    for step in range(STEPS):
        batches = []
        for m in range(BATCHES):
            numbers = [
                sample_at(data.count, settings, step, m * SAMPLES + i) for i in range(SAMPLES)
            ]
            if not isinstance(data, Documents):
                numbers = [number for _, number in numbers]
            batches += data.batches(step, numbers)
        weight = sum(int((b["labels"][:, 1:] != -100).sum()) for b in batches)
        counted += weight
        optimizer.zero_grad()
        total = of_transformers = 0.0
        for batch in batches:
            # The model's own loss is in float32, so ours is from its logits.
            made = model(**batch, num_items_in_batch=weight, use_cache=False)
            loss = F.cross_entropy(
                made.logits[:, :-1].flatten(0, 1), batch["labels"][:, 1:].flatten(),
                reduction="sum",
            ) / weight  # fmt: skip
            loss.backward()
            total += loss.item()
            of_transformers += made.loss.item()
        each.append(total)
        theirs.append(of_transformers)
        optimizer.step()
    weights = {n: p.flatten().tolist() for n, p in model.named_parameters()}
    print(json.dumps([each, theirs, weights, counted]))


def write_data(options, case, folder):
    """Writes the data of a case with chimera's commands. Returns its name, and lines of
    comparisons."""
    tools = ROOT / "tools/export"
    if case in ("documents", "within"):
        run_script(
            tools / "chimera-tokens", folder / "lines.jsonl", "--tokenizer",
            folder / "tokenizer/tokenizer.json", "--between", MARKS[0], "--index",
            "-o", folder / "tokens.bin",
        )  # fmt: skip
        return folder / "tokens.bin", []
    files = []
    for name in ("tokenizer", "marked"):
        files.append(folder / ("samples" if name == "tokenizer" else name))
        files[-1] = files[-1].with_suffix(".safetensors")
        run_script(
            tools / "chimera-samples", folder / "lines.jsonl", "--tokenizer",
            folder / name, "--length", LENGTH, *(["--pack"] if case == "packed" else []),
            "-o", files[-1],
        )  # fmt: skip
    same = files[0].read_bytes() == files[1].read_bytes()
    return files[0], [(same, "a template with marks gives the same samples")]


def check(options, folder, case):
    tool = [__file__, "--case", case, "--folder", folder]
    run_script(*tool, "--make")
    data, said = write_data(options, case, folder)
    source, arguments, more = CASES[case]
    run_script(
        EXPORT,
        ROOT / "examples/models" / source, f"source={folder / 'model'}",
        f"context={LENGTH}", f"samples={SAMPLES}", *arguments, *of_type("float64"),
        "--no-values", "-o", folder / "package",
    )  # fmt: skip
    (folder / "m.mlir").write_text(
        DESCRIPTION.format(
            package=folder / "package", seed=SEED, rate=RATE, batches=BATCHES,
            samples=SAMPLES,
        )
    )  # fmt: skip
    run(options.tools / "chimera-compile", folder / "m.mlir", "-o", folder / "m")
    output = run(
        options.tools / "chimera-run", folder / "m", "--data", data, "--threads", 1,
        "--quiet", "--steps", STEPS, "--load", folder / "model", "--save", folder / "w",
        "--log", folder / "log", *more,
    )  # fmt: skip
    wanted, theirs, weights, counted = json.loads(run_script(*tool, "--plain-loop"))
    ours = losses(folder / "log")
    worst = max(abs(a - b) for a, b in zip(ours, wanted, strict=True))
    said.append((worst <= 1e-9, f"losses of {STEPS} steps differ by {worst:.1e}"))
    worst = max(abs(a - b) for a, b in zip(ours, theirs))
    said.append((worst <= 1e-5, f"transformers' own losses differ by {worst:.1e}"))
    trained = read_tensors(folder / "w")
    worst = max(
        abs(a - b) for n in weights for a, b in zip(trained[n], weights[n], strict=True)
    )
    said.append((worst <= 1e-9, f"weights differ by {worst:.1e}"))
    full = STEPS * BATCHES * SAMPLES * LENGTH
    said.append((counted < full or case == "within", f"{counted} of {full} labels count"))
    said.append(("held-out loss" in output, "held-out loss"))
    if case == "packed":
        said.append(refuses_crossing(options, folder))
    lines = [f"{'ok  ' if good else 'FAIL'} {case}: {line}" for good, line in said]
    return lines, sum(not good for good, _ in said)


def refuses_crossing(options, folder):
    """A model without positions must not train on packed samples."""
    import subprocess

    run_script(
        EXPORT,
        ROOT / "examples/models/huggingface.py", f"source={folder / 'model'}",
        f"context={LENGTH}", f"samples={SAMPLES}", *of_type("float64"), "--no-values",
        "-o", folder / "package",
    )  # fmt: skip
    run(options.tools / "chimera-compile", folder / "m.mlir", "-o", folder / "other")
    done = subprocess.run(
        [options.tools / "chimera-run", folder / "other", "--load", folder / "model",
         "--data", folder / "samples.safetensors"], capture_output=True, text=True,
    )  # fmt: skip
    good = done.returncode == 1 and "only for models with the field 'position_ids'" in done.stderr
    return good, f"refused for a model without positions{'' if good else ': ' + done.stderr}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tools", type=pathlib.Path)
    parser.add_argument("--python", default=PYTHON)
    parser.add_argument("--only", choices=CASES, help="one case")
    parser.add_argument("--case", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=pathlib.Path, help=argparse.SUPPRESS)
    parser.add_argument("--make", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--plain-loop", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.make:
        make(options.case, options.folder)
    elif options.plain_loop:
        plain_loop(options.case, options.folder)
    elif restart_with(options.python, "torch", "transformers", "safetensors", "jinja2"):
        cases = [options.only] if options.only else list(CASES)
        check_each(lambda folder, case: check(options, folder, case), cases)


if __name__ == "__main__":
    main()
