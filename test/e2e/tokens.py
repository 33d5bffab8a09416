#!/usr/bin/env python3
# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares the tokens that chimera-tokens writes with the tokens of the whole text. Some
tokenizer files have settings for single inputs of a model. The texts have all line ends,
byte order marks and bytes that files may have. Some come through pipes. Some are in JSON
lines, and an index says where they end. Also checks which files are never overwritten,
and how much memory a large text takes. Exits non-zero if one fails. Needs a Python with
tokenizers: that of build/venv, unless another Python runs this script."""

import array
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

from exporting import ROOT, run_inside
from forks import call_script

COMMAND = ROOT / "tools/export/chimera-tokens"
TEXT = (ROOT / "LICENSE").read_text()


class Bench:
    """A folder with tokenizers and texts, and the number of failed comparisons."""

    def __init__(self, folder):
        self.folder, self.failed = folder, 0

    def check(self, good, what, output=""):
        print(f"ok   {what}" if good else f"FAIL {what}\n{output}", flush=True)
        self.failed += not good

    def run(self, tokenizer, texts, *options):
        """Runs chimera-tokens. Returns its status, the tokens that it wrote, and its
        output."""
        tokenizer.save(str(self.folder / "tokenizer.json"))
        paths = []
        for number, content in enumerate(texts):
            paths.append(self.folder / f"{number}.txt")
            paths[-1].write_bytes(content)
        output = self.folder / "tokens.bin"
        output.unlink(missing_ok=True)
        status, *said = call_script(
            COMMAND, *paths, "--tokenizer", self.folder / "tokenizer.json", "-o", output,
            *options,
        )  # fmt: skip
        raw = output.read_bytes() if output.exists() else b""
        head = array.array("i", raw[:12])
        numbers = array.array("H", raw[1024:]).tolist() if raw else None
        if raw and (head[0] != 20240520 or head[2] != len(numbers)):
            numbers = None
        assert not list(self.folder.glob("*.part"))
        return status, numbers, "".join(said)


def make(**model):
    """A byte-level tokenizer like GPT-2's."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    made = Tokenizer(models.BPE(**model))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400, special_tokens=["<|end|>"], show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )  # fmt: skip
    made.train_from_iterator([TEXT], trainer)
    return made


def whole(tokenizer, text):
    return tokenizer.encode(text, add_special_tokens=False).ids


def remembered_settings(bench):
    """chimera-tokens must ignore each setting for single inputs, and must print its
    name."""
    from tokenizers import processors

    expected = whole(make(), TEXT)

    def truncation(tokenizer):
        tokenizer.enable_truncation(128)

    def padding(tokenizer):
        tokenizer.enable_padding(length=1 << 17, pad_id=0, pad_token="<|end|>")

    def pad_to_multiple(tokenizer):
        tokenizer.enable_padding(pad_to_multiple_of=1000, direction="left")

    def dropout(tokenizer):
        tokenizer.model.dropout = 0.5

    def template(tokenizer):
        tokenizer.post_processor = processors.TemplateProcessing(
            single="<|end|> $A <|end|>", special_tokens=[("<|end|>", 0)]
        )

    for change, named in (
        (truncation, "its truncation to 128 tokens is switched off"),
        (padding, "its padding is switched off"),
        (pad_to_multiple, "its padding is switched off"),
        (dropout, "its dropout of 0.5 of the merges is switched off"),
        (template, "the special tokens that it adds to an input, 2 to each"),
    ):
        tokenizer = make()
        change(tokenizer)
        status, ids, output = bench.run(tokenizer, [TEXT.encode()])
        good = status == 0 and ids == expected and named in output
        bench.check(good, f"a file that remembers {change.__name__}", output)
    status, _, output = bench.run(make(), [TEXT.encode()])
    bench.check(output.count("\n") == 1, "one that remembers nothing: one line", output)


def texts(bench):
    made = make()
    for what, content, expected in (
        ("CR LF is kept", b"one\r\ntwo\rthree\n\r\n", "one\r\ntwo\rthree\n\r\n"),
        ("no byte order mark is a token", b"\xef\xbb\xbfone", "one"),
        ("a mark inside is text", b"one\xef\xbb\xbf", "one\ufeff"),
    ):
        status, ids, output = bench.run(made, [content])
        bench.check(status == 0 and ids == whole(made, expected), what, output)
    end = made.token_to_id("<|end|>")
    status, ids, output = bench.run(
        made, [b"\xef\xbb\xbfone\r\n", b"\xef\xbb\xbftwo"], "--between", "<|end|>"
    )
    expected = [*whole(made, "one\r\n"), end, *whole(made, "two")]
    bench.check(ids == expected, "several texts, a token between", output)
    for what, content, expected in (
        ("UTF-16", "one".encode("utf-16"), "byte order mark of UTF-16"),
        ("UTF-32", "one".encode("utf-32"), "byte order mark of UTF-32"),
        ("other bytes", TEXT.encode() + b"\nab\xff", f"0xff in line {TEXT.count(chr(10)) + 2}"),
        ("no text", b"", "expected at least one token, got none"),
        *[
            (f"{name} without a mark", TEXT.encode(name), f"iconv -f {name} -t UTF-8")
            for name in ("UTF-16LE", "UTF-16BE", "UTF-32LE", "UTF-32BE")
        ],
        ("zeros", bytes(5000), "got a character 0 in line 1: "),
        ("a tar", b"a.txt".ljust(257, b"\0") + b"ustar" + TEXT.encode(), "tar archive"),
        (
            "a character 0 far inside",
            TEXT.encode() * 9 + b"ab\0\n",
            f"got a character 0 in line {TEXT.count(chr(10)) * 9 + 1}: ",
        ),
    ):
        status, ids, output = bench.run(made, [content])
        good = status != 0 and ids is None and expected in output
        bench.check(good and "Traceback" not in output, f"refused: {what}", output)


def pipes(bench):
    """If a text can be read only once, it must give the same tokens."""
    made = make()
    file = bench.folder / "tokenizer.json"
    made.save(str(file))
    output = bench.folder / "piped.bin"
    expected = whole(made, TEXT)

    def run(command):
        output.unlink(missing_ok=True)
        done = subprocess.run(
            ["bash", "-c", command, COMMAND, ROOT / "LICENSE", file, output, sys.executable],
            capture_output=True, text=True, timeout=600,
        )  # fmt: skip
        raw = output.read_bytes() if output.exists() else b""
        return done, array.array("H", raw[1024:]).tolist()

    call = '"$4" "$0"'
    for what, command in (
        ("standard input", f'cat "$1" | {call} /dev/stdin --tokenizer "$2" -o "$3"'),
        ("a process", f'{call} <(cat "$1") --tokenizer "$2" -o "$3"'),
        ("a process, and one's tokenizer",
         f'{call} <(cat "$1") --tokenizer <(cat "$2") -o "$3"'),
        ("a named pipe", f'mkfifo "$3.pipe" && (cat "$1" > "$3.pipe" &) '
         f'&& {call} "$3.pipe" --tokenizer "$2" -o "$3"'),
        ("a pipe in small parts", f'(while IFS= read -r line; do echo "$line"; done < "$1") '
         f'| {call} /dev/stdin --tokenizer "$2" -o "$3"'),
    ):  # fmt: skip
        done, ids = run(command)
        bench.check(done.returncode == 0 and ids == expected, f"a text of {what}", done.stderr)
    command = f'(cat "$1"; printf "a\\xff") | {call} /dev/stdin --tokenizer "$2" -o "$3"'
    done, ids = run(command)
    good = f"0xff in line {TEXT.count(chr(10)) + 1}" in done.stderr and done.returncode
    bench.check(good, "other bytes through a pipe", done.stderr)
    command = f'cat "$1" | {call} /dev/stdin /dev/stdin --tokenizer "$2" -o "$3"'
    done, ids = run(command)
    good = done.returncode and "expected each pipe or device only once" in done.stderr
    bench.check(good, "a pipe that is given twice", done.stderr)
    # /dev/zero never ends, and is not a text.
    done, ids = run(f'{call} /dev/zero --tokenizer "$2" -o "$3"')
    good = done.returncode and "got a character 0 in line 1" in done.stderr
    bench.check(good, "/dev/zero", done.stderr)
    done, ids = run(
        f'mkfifo "$3.open"; exec 9<>"$3.open"; {call} "$3.open" --tokenizer "$2" -o "$3" & '
        'for i in {1..3000}; do [ -e "$3.part" ] && break; sleep 0.1; done; '
        'kill $!; wait $!; echo "status $?"; ls "$3".*'
    )
    good = "status 143" in done.stdout and "piped.bin.part" not in done.stdout
    bench.check(good, "one that is ended leaves no part", done.stdout + done.stderr)


def outputs(bench):
    """An input is never overwritten, whatever its name. A link stays a link."""
    folder = bench.folder / "outputs"
    folder.mkdir()
    made = make()
    names = ["one.txt", "two.txt", "tokenizer.json"]
    content = [b"one", b"two", made.to_str().encode()]

    def run(output, *more):
        for name, each in zip(names, content):
            (folder / name).write_bytes(each)
        status, *said = call_script(
            COMMAND, *more, "one.txt", "two.txt", "--tokenizer", "tokenizer.json", "-o",
            output, folder=folder,
        )  # fmt: skip
        return status, "".join(said)

    def refused(what, output, answer, *more):
        status, text = run(output, *more)
        kept = all((folder / n).read_bytes() == c for n, c in zip(names, content))
        good = status and answer in text and "Traceback" not in text and kept
        bench.check(good, f"refused: an output that is {what}", text)

    different = "expected different files, got '{}' for {} and '{}' for --output"
    refused("a text", "two.txt", different.format("two.txt", "TEXT", "two.txt"))
    answer = different.format("tokenizer.json", "--tokenizer", "tokenizer.json")
    refused("the tokenizer", "tokenizer.json", answer)
    (folder / "link").symlink_to("one.txt")
    refused("a link to a text", "link", different.format("one.txt", "TEXT", "link"))
    (folder / "hard").hardlink_to(folder / "two.txt")
    refused("another name of a text", "hard", different.format("two.txt", "TEXT", "hard"))
    (folder / "part.part").write_bytes(b"three")
    refused("a text as it grows", "part", "for --output as it grows", "part.part")
    refused("a folder", ".", "expected the name of a file, got a folder")
    refused("a device", "/dev/null", "expected the name of a file, got a device or a pipe")
    (folder / "circle").symlink_to("circle")
    refused("a circle of links", "circle", "--output circle: ")

    expected = array.array("H", whole(made, "one") + whole(made, "two")).tobytes()
    for name in ("aim", "new"):
        (folder / f"to-{name}").symlink_to(name)
    (folder / "aim").write_bytes(b"old")
    for name in ("aim", "new"):
        status, text = run(f"to-{name}")
        good = status == 0 and (folder / f"to-{name}").is_symlink()
        good = good and (folder / name).read_bytes()[1024:] == expected
        bench.check(good, f"a link to a {name} file stays one", text)
    status, text = run("twice.bin", f"{folder}/two.txt")
    good = status == 0 and f"two.txt: it is given twice, as '{folder}/two.txt' too" in text
    bench.check(good, "a text that is given twice", text)


def tokenizers_that_fail(bench):
    """Each error is reported in one line."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    for name, model in (
        ("words", models.WordLevel({"one": 0})),
        ("parts of words", models.WordPiece({"one": 0})),
        ("pieces", models.Unigram([("one", 0.0)])),
        ("merges", models.BPE({"o": 0}, [], unk_token="?")),
    ):
        made = Tokenizer(model)
        made.pre_tokenizer = pre_tokenizers.Whitespace()
        status, ids, output = bench.run(made, [b"one two"])
        good = status and ids is None and "has no token for these" in output
        good = good and output.count("\n") == 1
        bench.check(good, f"refused: {name} without a token for what is not known", output)
    (bench.folder / "0.txt").write_text("one")
    (bench.folder / "vocab.json").write_text('{"one": 0}')
    (bench.folder / "empty").mkdir()
    wrong = "expected a tokenizer.json of Hugging Face's tokenizers, got a file that they"
    for name, answer in (
        ("vocab.json", wrong),
        ("0.txt", wrong),
        ("nothing.json", "No such file"),
        ("empty", "Is a directory"),
        (".", "; did you mean tokenizer.json?"),
    ):
        status, _, said = call_script(
            COMMAND, "0.txt", "--tokenizer", name, "-o", "tokens.bin", folder=bench.folder
        )
        good = status and answer in said and said.count("\n") == 1
        bench.check(good, f"refused: {name} as a tokenizer", said)


def losses(bench):
    """chimera-tokens counts the characters that the tokenizer does not know."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = Tokenizer(models.WordLevel({"one": 0, "?": 1}, unk_token="?"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    status, ids, output = bench.run(words, [b"one two one two"])
    good = ids == [0, 1, 0, 1] and "2 of these are '?'" in output
    bench.check(good, "unknown words", output)
    pieces = Tokenizer(models.Unigram([("?", 0.0), ("a", -1.0)], unk_id=0))
    status, ids, output = bench.run(pieces, ["aéa".encode()])
    bench.check("1 of these are '?'" in output, "unknown pieces", output)
    few = Tokenizer(models.BPE({"a": 0, "b": 1}, []))
    status, ids, output = bench.run(few, ["aéb é\n".encode()])
    good = ids == [0, 1] and "4 characters without a token are lost" in output and "'é'" in output
    bench.check(good, "characters without a token", output)


def indices(bench):
    """Texts of JSON lines, and the index of documents, which must have Megatron's
    form."""
    made = make()
    end = made.token_to_id("<|end|>")
    lines = ["one two", "", TEXT * 20, "é\r\nthree", TEXT]
    folder = bench.folder / "indices"
    folder.mkdir()
    made.save(str(folder / "tokenizer.json"))

    def run(text, *options):
        (folder / "texts.jsonl").write_text(text)
        status, *said = call_script(
            COMMAND, "texts.jsonl", "--tokenizer", "tokenizer.json", *options, folder=folder
        )
        return status, "".join(said)

    rows = "".join(json.dumps({"text": line, "id": 1}) + "\n\n" for line in lines)
    status, output = run(rows, "--between", "<|end|>", "--index", "-o", "a.bin")
    expected = [whole(made, line) + [end] for line in lines]
    expected[-1].pop()
    numbers = array.array("H", (folder / "a.bin").read_bytes()).tolist()
    good = status == 0 and numbers == sum(expected, []) and "in 5 documents" in output
    bench.check(good, "JSON lines", output)
    index = (folder / "a.idx").read_bytes()
    lengths, begins = [len(ids) for ids in expected], [0]
    for length in lengths[:-1]:
        begins.append(begins[-1] + 2 * length)
    form = struct.pack("<9sQBQQ", b"MMIDIDX\0\0", 1, 8, 5, 6)
    form += struct.pack("<5i5q6q", *lengths, *begins, *range(6))
    bench.check(index == form, "the index has each text as a document")
    status, output = run(rows, "-o", "b.bin")
    numbers = array.array("H", (folder / "b.bin").read_bytes()[1024:]).tolist()
    expected = sum((whole(made, line) for line in lines), [])
    bench.check(numbers == expected, "JSON lines without an index", output)
    status, output = run(rows, "--index", "-o", "c.bin")
    bench.check("in 4 documents" in output, "an empty text is no document", output)
    for what, text, answer in (
        ("no JSON", '{"text": "one"}\n\n{"text"\n', "texts.jsonl: line 3: expected JSON"),
        ("no object", "[1, 2]\n", "line 1: expected an object"),
        ("no text", '{"texts": "one", "id": 1}\n', "got the keys 'texts', 'id'"),
        ("no string", '{"text": 5}\n', "expected a string"),
        ("nothing", "", "expected at least one token, got none"),
    ):
        status, output = run(text, "--index", "-o", "d.bin")
        good = status and answer in output and not (folder / "d.bin").exists()
        good = good and "Traceback" not in output and not list(folder.glob("*.part"))
        bench.check(good, f"refused: {what} in a line", output)
    # JSON lines under another name are noticed.
    (folder / "rows.txt").write_text(rows)
    expected = (folder / "b.bin").read_bytes()
    for options, answer in (
        ([], "rows.txt: it seems to have JSON lines: give --json-lines"),
        (["--json-lines"], "b2.bin: "),
        (["--no-json-lines"], "b2.bin: "),
    ):
        status, *said = call_script(
            COMMAND, "rows.txt", "--tokenizer", "tokenizer.json", "-o", "b2.bin", *options,
            folder=folder,
        )  # fmt: skip
        good = answer in "".join(said) and (status == 0) == bool(options)
        if options == ["--json-lines"]:
            good = good and (folder / "b2.bin").read_bytes() == expected
        bench.check(good, f"JSON lines named .txt, {options}", "".join(said))
    status, output = run(rows, "-o", "a.bin")
    good = status and "a.idx would be read as its index" in output
    bench.check(good, "refused: an index that would no longer fit", output)
    (folder / "numbers").write_text("1 2 70000")
    status, _, said = call_script(
        COMMAND, "--decode", "numbers", "--tokenizer", "tokenizer.json", folder=folder
    )
    good = status and "the tokenizer has no token 70000" in said
    bench.check(good, "refused: numbers that the tokenizer does not have", said)
    status, output = run(rows, "--index", "-o", "tokens")
    bench.check(status and "expected --output NAME.bin" in output, "refused: another name")
    (folder / "e.idx").mkdir()
    status, output = run(rows, "--index", "-o", "e.bin")
    good = status and "e.idx: expected the name of a file, got a folder" in output
    bench.check(good, "refused: a folder as the index", output)


def large(bench):
    """A text that is encoded in pieces must give the tokens of the whole text, for any
    lines."""
    from tokenizers import pre_tokenizers

    # The text has long runs of line breaks and spaces. These are single tokens.
    text = "".join(
        TEXT[i * 997 % 9000 :][:1500] + "\n" * (i % 7) + " " * (i % 5) for i in range(400)
    )
    made = make()
    status, ids, output = bench.run(made, [text.encode()])
    bench.check(ids == whole(made, text), "a text of several pieces", output)
    status, ids, output = bench.run(made, [text.replace("\n", " ").encode()])
    bench.check(ids == whole(made, text.replace("\n", " ")), "one long line", output)
    # This tokenizer puts a space before every text that has none. If the text were cut
    # after a line break, the second piece would get a space and so other tokens.
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    status, ids, output = bench.run(made, [text.encode()])
    bench.check(ids == whole(made, text), "a tokenizer that adds spaces", output)

    peaks = []
    for times in (4, 40):
        make().save(str(bench.folder / "tokenizer.json"))
        (bench.folder / "large.txt").write_text(text * times)
        child = os.fork()
        if child == 0:
            with open(os.devnull, "w") as nothing:
                os.dup2(nothing.fileno(), 1)
            os.execv(
                sys.executable,
                [sys.executable, COMMAND, bench.folder / "large.txt", "--tokenizer",
                 bench.folder / "tokenizer.json", "-o", bench.folder / "large.bin"],
            )  # fmt: skip
        _, status, usage = os.wait4(child, 0)
        assert status == 0
        peaks.append(usage.ru_maxrss / 1024)
    size = len(text) * 36 / 2**20
    bench.check(
        peaks[1] - peaks[0] < 20 * size,
        f"{size:.0f} MiB more of text take {peaks[1] - peaks[0]:.0f} MiB more of memory",
    )


def inside():
    with tempfile.TemporaryDirectory() as name:
        bench = Bench(pathlib.Path(name))
        for part in (
            remembered_settings, texts, pipes, outputs, tokenizers_that_fail, losses, indices,
            large,
        ):
            part(bench)
    sys.exit(f"{bench.failed} comparisons failed" if bench.failed else 0)


if __name__ == "__main__":
    run_inside(__doc__, ["tokenizers"], inside, exports=False)
