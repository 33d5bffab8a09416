#!/usr/bin/env python3
# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks the samples that chimera-samples writes: which tokens count, padding, packed
rows, samples that are cut or left out, and what is refused. instructions.py compares
them with the samples of transformers. Exits non-zero if a check fails. Needs a Python
with transformers: that of build/venv, unless another Python runs this script."""

import contextlib
import json
import pathlib
import random
import sys
import tempfile

from exporting import ROOT, run_inside
from forks import call_script

COMMAND = ROOT / "tools/export/chimera-samples"
FIELDS = ["input_ids", "attention_mask", "position_ids", "labels"]
WORDS = ["<end>", "<pad>", "<u>", "<a>", *"abcdefghijklmnop"]
PLAIN = (
    "{% for m in messages %}{{ ('<a>' if m.role == 'assistant' else '<u>') }} "
    "{{ m.content }} {% if m.role == 'assistant' %}<end> {% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<a>{% endif %}"
)
# A template that leaves out all but the last answer.
FORGETFUL = (
    "{% for m in messages %}{% if loop.last or m.role == 'user' %}"
    "{{ ('<a>' if m.role == 'assistant' else '<u>') }} {{ m.content }} {% endif %}{% endfor %}"
)


class Bench:
    """A folder with tokenizers, and the number of failed checks."""

    def __init__(self, folder):
        self.folder, self.failed = folder, 0
        import tokenizers
        import transformers

        words = tokenizers.Tokenizer(
            tokenizers.models.WordLevel({w: i for i, w in enumerate(WORDS)}, unk_token="<pad>")
        )
        words.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
        merges = tokenizers.Tokenizer(
            tokenizers.models.BPE({"a": 0, "b": 1, "ab": 2}, [("a", "b")])
        )
        for name, made, more in (
            ("words", words, {"eos_token": "<end>", "pad_token": "<pad>", "chat_template": PLAIN}),
            ("forgetful", words, {"eos_token": "<end>", "chat_template": FORGETFUL}),
            ("bare", words, {}),
            ("merges", merges, {}),
        ):
            transformers.PreTrainedTokenizerFast(tokenizer_object=made, **more).save_pretrained(
                folder / name
            )

    def check(self, good, what, output=""):
        print(f"ok   {what}" if good else f"FAIL {what}\n{output}", flush=True)
        self.failed += not good

    def run(self, lines, *options, tokenizer="words", length=8):
        """Runs chimera-samples. Returns its status, the arrays as lists, and its
        output."""
        from safetensors.numpy import load_file

        content = lines if isinstance(lines, str) else "\n".join(map(json.dumps, lines))
        (self.folder / "lines.jsonl").write_text(content)
        output = self.folder / "samples.safetensors"
        output.unlink(missing_ok=True)
        with contextlib.chdir(self.folder):
            status, text, errors = call_script(
                COMMAND, "lines.jsonl", "--tokenizer", tokenizer, "--length", length,
                "-o", output, *options,
            )  # fmt: skip
        assert not list(self.folder.glob("*.part"))
        arrays = {}
        if output.exists():
            arrays = {n: a.tolist() for n, a in load_file(output).items()}
        return status, arrays, text + errors


def numbers(text):
    return [WORDS.index(word) for word in text.split()]


def chat(*contents):
    roles = ["user", "assistant"] * len(contents)
    return {"messages": [{"role": r, "content": c} for r, c in zip(roles, contents)]}


def prompt_and_completion(count, *contents):
    """A chat whose first `count` messages are the prompt."""
    messages = chat(*contents)["messages"]
    return {"prompt": messages[:count], "completion": messages[count:]}


def lists_of_messages(bench):
    """Prompts and completions that are lists of messages."""
    no = -100
    a, b, c, d, u, s = numbers("a b c d <u> <a>")
    lines = [
        prompt_and_completion(1, "a", "b"), prompt_and_completion(3, "a", "b", "c", "d"),
        prompt_and_completion(1, "a", "b", "c"),
    ]  # fmt: skip
    status, arrays, output = bench.run(lines, length=10)
    tokens = [
        [u, a, s, b, 0, 1, 1, 1, 1, 1], [u, a, s, b, 0, u, c, s, d, 0],
        [u, a, s, b, 0, u, c, 1, 1, 1],
    ]  # fmt: skip
    labels = [
        [no, no, b, 0, no, no, no, no, no, no], [no, no, no, no, no, no, no, d, 0, no],
        [no, no, b, 0, u, c, no, no, no, no],
    ]  # fmt: skip
    good = status == 0 and [arrays["input_ids"], arrays["labels"]] == [tokens, labels]
    bench.check(good, "the messages of a completion count", (output, arrays))
    status, arrays, output = bench.run(lines[:1], "--count", "all")
    good = status == 0 and arrays["labels"] == [[a, s, b, 0, no, no, no, no]]
    bench.check(good, "a chat of two lists with --count all", (output, arrays))
    status, arrays, output = bench.run(lines[1:2], tokenizer="forgetful")
    good = status == 0 and arrays["labels"] == [[no, no, no, s, d, no, no, no]]
    bench.check(good, "a template that changes the text before a completion", (output, arrays))


def samples(bench):
    no = -100
    a, b, c, d = numbers("a b c d")
    status, arrays, output = bench.run(
        [{"prompt": "a b", "completion": " c d"}, {"text": "d"}, chat("a", "b", "c", "d")]
    )
    u, s = numbers("<u> <a>")
    expected = {
        "input_ids": [
            [a, b, c, d, 0, 1, 1, 1], [d, 0, 1, 1, 1, 1, 1, 1], [u, a, s, b, 0, u, c, s],
        ],
        "attention_mask": [[1] * 5 + [0] * 3, [1] * 2 + [0] * 6, [1] * 8],
        "position_ids": [
            [0, 1, 2, 3, 4, 0, 0, 0], [0, 1, 0, 0, 0, 0, 0, 0], [0, 1, 2, 3, 4, 5, 6, 7],
        ],
        "labels": [
            [no, c, d, 0, no, no, no, no], [0] + [no] * 7, [no, no, b, 0, no, no, no, no],
        ],
    }  # fmt: skip
    bench.check(arrays == expected, "labels are the next tokens of answers", (output, arrays))
    good = "3 samples in 3 rows of 8 tokens, 62% full; 6 tokens count" in output
    good = good and "of more than 8 tokens, which were cut at their end: 1" in output
    bench.check(status == 0 and good, "the command says what it wrote", output)
    status, arrays, output = bench.run(
        [{"prompt": "a b", "completion": " c"}, chat("a", "b")], "--count", "all"
    )
    expected = [[b, c, 0, no, no, no, no, no], [a, s, b, 0, no, no, no, no]]
    bench.check(arrays["labels"] == expected, "--count all", (output, arrays))
    status, arrays, output = bench.run(
        [{"prompt": "a b c d e f g h", "completion": " a"}, {"text": "a"}]
    )
    good = arrays["labels"] == [[0] + [no] * 7] and "without a token that counts, which were left out: 1" in output
    bench.check(good, "a prompt that fills a row is left out", output)
    status, arrays, output = bench.run([{"text": "a <end>"}, {"text": "b"}], tokenizer="bare")
    good = arrays["input_ids"] == [[a, 0] + [0] * 6] and "no end token (eos_token)" in output
    bench.check(good, "a tokenizer without an end token", (output, arrays))
    status, arrays, output = bench.run(
        [{"prompt": "a", "completion": "ba"}], tokenizer="merges", length=4
    )
    good = arrays["labels"] == [[0, no, no, no]] and "whose prompt ends inside a token" in output
    bench.check(good, "a token that is partly prompt does not count", (output, arrays))


def packing(bench):
    draw = random.Random(1)
    texts = {}
    while len(texts) < 300:
        texts[" ".join(draw.choice("abcdefghij") for _ in range(draw.randint(1, 15)))] = True
    lines = [{"text": text} for text in texts]
    status, arrays, output = bench.run(lines, "--pack", length=16)
    bench.check(sorted(arrays) == sorted(set(FIELDS) - {"attention_mask"}), "no mask", output)
    found, good = [], True
    for tokens, positions, labels in zip(
        arrays["input_ids"], arrays["position_ids"], arrays["labels"]
    ):
        begin = 0
        for i, token in enumerate(tokens):
            good = good and positions[i] == (i - begin if token != 1 else 0)
            good = good and labels[i] == (-100 if token in (0, 1) else tokens[i + 1])
            if token == 0:
                found.append(tokens[begin : i + 1])
                begin = i + 1
    bench.check(good, "positions and labels of packed samples", output)
    expected = [numbers(line["text"]) + [0] for line in lines]
    bench.check(sorted(found) == sorted(expected), "each sample once", output)
    rows, tokens = len(arrays["input_ids"]), sum(map(len, expected))
    bench.check(rows <= -(-tokens // 16) * 1.02 + 1, f"{rows} rows for {tokens} tokens")
    firsts = [expected.index(f) for f in (r[: r.index(0) + 1] for r in arrays["input_ids"])]
    bench.check(firsts == sorted(firsts), "rows in the order of their first samples")


def refusals(bench):
    for what, lines, more, answer in (
        ("no JSON", '{"text": "a"}\n{', {}, "lines.jsonl: line 2: expected JSON"),
        ("other keys", [{"text": "a"}, {"question": "a"}], {},
         "line 2: expected {\"prompt\": \"…\", \"completion\": \"…\"}"),
        ("a number", [{"prompt": "a", "completion": 5}], {},
         "got 'prompt' (a string), 'completion' (a number)"),
        ("messages and a string", [{"prompt": chat("a")["messages"], "completion": "b"}], {},
         "got 'prompt' (a list), 'completion' (a string)"),
        ("a template that changes a prompt", [prompt_and_completion(2, "a", "b", "c")],
         {"tokenizer": "forgetful"}, "cannot be found: give --count all"),
        ("chats without a template", [chat("a", "b")], {"tokenizer": "bare"},
         "line 1: Cannot use chat template"),
        ("messages that the template refuses", [{"messages": [5]}], {}, "line 1: "),
        ("a template that changes earlier text", [chat("a", "b", "c", "d")],
         {"tokenizer": "forgetful"}, "give --count all"),
        ("nothing", "", {}, "expected at least one sample with a token that counts"),
        ("a length of 1", [{"text": "a"}], {"length": 1}, "expected at least 2 tokens"),
        ("no tokenizer", [{"text": "a"}], {"tokenizer": "none"}, "expected a folder"),
        ("a file as tokenizer", [{"text": "a"}], {"tokenizer": "words/tokenizer.json"},
         "did you mean words?"),
    ):  # fmt: skip
        status, arrays, output = bench.run(lines, **more)
        good = status and not arrays and answer in output and "Traceback" not in output
        bench.check(good, f"refused: {what}", output)
    status, arrays, output = bench.run(
        [chat("a", "b", "c", "d")], "--count", "all", tokenizer="forgetful"
    )
    bench.check(status == 0, "the same with --count all", output)
    for name, answer in (
        ("samples.bin", "expected a name such as samples.safetensors"),
        ("folder.safetensors", "expected the name of a file, got a folder"),
    ):
        (bench.folder / "folder.safetensors").mkdir(exist_ok=True)
        status, arrays, output = bench.run([{"text": "a"}], "-o", name)
        bench.check(status and answer in output, f"refused: {name}", output)


def inside():
    with tempfile.TemporaryDirectory() as name:
        bench = Bench(pathlib.Path(name))
        for part in (samples, lists_of_messages, packing, refusals):
            part(bench)
    sys.exit(f"{bench.failed} checks failed" if bench.failed else 0)


if __name__ == "__main__":
    run_inside(__doc__, ["transformers", "jinja2", "safetensors"], inside)
