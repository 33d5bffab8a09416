# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Turns prompts and answers, or chats, into samples of a fixed length.

A sample has its tokens and says which of them count: the tokens that the model learns to
predict. They are those of the answers, or all. A row of the arrays has one sample, or
with packing several. Its labels are the next tokens already: labels[i] is the token
after input_ids[i] if that token counts, else -100. The labels of padding and of a
sample's last token are -100 too.

As in Hugging Face's TRL, a prompt and its completion are tokenized together, and the
tokenizer's end token follows. A chat becomes the text of the tokenizer's chat template.
A prompt and a completion that are lists of messages are one chat.
"""

import array
import bisect
import collections
import dataclasses
import json
import re
import struct

import numpy

from . import json_lines

IGNORED = -100
ANSWERS, ALL = "answers", "all"
FORMS = (
    '{"prompt": "…", "completion": "…"}, the same with two lists of messages, '
    '{"messages": [{"role": "…", "content": "…"}, …]} or {"text": "…"}'
)
# The types of JSON values, for errors.
TYPES = {
    str: "a string", list: "a list", dict: "an object", bool: "a boolean", type(None): "null"
}  # fmt: skip
# A chat template may mark the model's own words with this.
GENERATION = re.compile(r"{%-?\s*generation\s*-?%}")
ROWS = 4096  # rows that are written at once
# Which field a model must have to train on a file (runtime/data/ArrayFiles.h).
NEEDS = "chimera_needs"


@dataclasses.dataclass
class Sample:
    """The numbers of the tokens, and a 1 for each one that counts, else a 0."""

    ids: array.array
    counts: bytearray


class Reader:
    """Makes samples with a tokenizer of transformers. Counts samples with peculiarities,
    which `notes` describes."""

    def __init__(self, tokenizer, length, count):
        self.tokenizer, self.length, self.count = tokenizer, length, count
        self.end = tokenizer.eos_token or ""
        self.found = collections.Counter()

    def read(self, path):
        """Yields the samples of a file of JSON lines. Raises ValueError."""
        for number, line in json_lines.read(path):
            try:
                ids, counts = self._tokens(line)
            except ValueError as error:
                raise ValueError(f"line {number}: {error}") from None
            except Exception as error:  # of a template, which may raise any
                raise ValueError(
                    f"line {number}: the tokenizer refuses it: {type(error).__name__}: {error}"
                ) from None
            if len(ids) > self.length:
                self.found["cut"] += 1
            ids, counts = ids[: self.length], counts[: self.length]
            if any(counts[1:]):
                yield Sample(array.array("i", ids), bytearray(counts))
            else:
                self.found["nothing counts"] += 1

    def notes(self):
        """A message for each peculiarity that samples have."""
        if not self.end:
            yield (
                "the tokenizer has no end token (eos_token), so nothing says where an "
                "answer ends"
            )
        for what, line in (
            ("cut", f"of more than {self.length} tokens, which were cut at their end"),
            ("nothing counts", "without a token that counts, which were left out"),
            (
                "inside",
                "whose prompt ends inside a token, which does not count (end prompts without "
                "a space, and begin completions with it)",
            ),
        ):
            if self.found[what]:
                yield f"samples {line}: {self.found[what]:,}"

    def _tokens(self, line):
        """The token numbers of a line, and which of them count."""
        prompt, completion = line.get("prompt"), line.get("completion")
        if isinstance(line.get("messages"), list):
            return self._chat(line["messages"], line.get("tools"))
        if isinstance(prompt, list) and isinstance(completion, list):
            return self._chat(prompt + completion, line.get("tools"), len(prompt))
        if isinstance(prompt, str) and isinstance(completion, str):
            begin, text = len(prompt), prompt + completion
        elif isinstance(line.get("text"), str):
            begin, text = 0, line["text"]
        else:
            keys = (f"{key!r} ({TYPES.get(type(line[key]), 'a number')})" for key in line)
            raise ValueError(f"expected {FORMS}, got {', '.join(keys) or 'no keys'}")
        if not text.endswith(self.end):
            text += self.end
        return self._of_text(text, [(begin, len(text))], special=True)

    def _of_text(self, text, answers, special):
        """The tokens of `text`. A token counts if it begins in one of the ranges
        `answers`."""
        made = self.tokenizer(
            text, add_special_tokens=special, return_offsets_mapping=True, verbose=False
        )
        ids, offsets = made["input_ids"], made["offset_mapping"]
        if self.count == ALL or answers == [(0, len(text))]:
            return ids, [1] * len(ids)
        self.found["inside"] += any(
            first < begin < end for first, end in offsets for begin, _ in answers
        )
        return ids, [
            int(any(begin <= first < stop for begin, stop in answers)) for first, _ in offsets
        ]

    def _chat(self, messages, tools, prompt=None):
        """The token numbers of a chat, and which of them count. If the first `prompt`
        messages are a prompt, all later messages count. Without `prompt`, all messages of
        the assistant count."""
        template = self.tokenizer.get_chat_template(tools=tools)
        render = {"tools": tools, "tokenize": False}
        if prompt is None and self.count == ANSWERS and GENERATION.search(template):
            made = self.tokenizer.apply_chat_template(
                messages, tools=tools, return_dict=True, return_assistant_tokens_mask=True
            )
            return made["input_ids"], made["assistant_masks"]
        text = self.tokenizer.apply_chat_template(messages, **render)
        if self.count == ALL:
            ranges = []
        elif prompt is not None:
            ranges = [(prompt, len(messages))]
        else:
            ranges = [(i, i + 1) for i, m in enumerate(messages) if m.get("role") == "assistant"]
        answers = []
        for first, end in ranges:
            before = self.tokenizer.apply_chat_template(
                messages[:first], add_generation_prompt=True, **render
            )
            after = self.tokenizer.apply_chat_template(messages[:end], **render)
            if not (text.startswith(before) and text.startswith(after)):
                mark = "" if prompt is not None else (
                    "mark them in the template with {% generation %}, or "
                )
                raise ValueError(
                    f"the chat template changes earlier text after message {first + 1}, so "
                    f"its answers cannot be found: {mark}give --count all"
                )
            answers.append((len(before), len(after)))
        return self._of_text(text, answers, special=False)


def pack(lengths, length):
    """Puts samples into as few rows of `length` tokens as best-fit decreasing finds, as
    TRL's packing does. Returns, for each row, the numbers of its samples, ascending. Rows
    are in the order of their first samples."""
    rows, with_space, spaces = [], collections.defaultdict(list), []
    for number in sorted(range(len(lengths)), key=lambda n: (-lengths[n], n)):
        size = lengths[number]
        at = bisect.bisect_left(spaces, size)
        if at == len(spaces):
            row, space = len(rows), length
            rows.append([])
        else:
            space = spaces[at]
            row = with_space[space].pop()
            if not with_space[space]:
                del spaces[at]
        rows[row].append(number)
        rest = space - size
        if rest:
            if not with_space[rest]:
                bisect.insort(spaces, rest)
            with_space[rest].append(row)
    return sorted(map(sorted, rows))


def arrays_of(rows, samples, length, padding):
    """The arrays of some rows, by field. `rows` has the numbers of each row's samples."""
    shape = (len(rows), length)
    tokens = numpy.full(shape, padding, numpy.int64)
    labels = numpy.full(shape, IGNORED, numpy.int64)
    mask = numpy.zeros(shape, numpy.int64)
    positions = numpy.zeros(shape, numpy.int64)
    for row, numbers in enumerate(rows):
        begin = 0
        for number in numbers:
            ids = numpy.array(samples[number].ids, numpy.int64)
            counts = numpy.frombuffer(samples[number].counts, numpy.uint8)
            end = begin + len(ids)
            tokens[row, begin:end] = ids
            labels[row, begin : end - 1] = numpy.where(counts[1:], ids[1:], IGNORED)
            mask[row, begin:end] = 1
            positions[row, begin:end] = range(len(ids))
            begin = end
    return {
        "input_ids": tokens, "attention_mask": mask, "position_ids": positions,
        "labels": labels,
    }  # fmt: skip


def write(file, samples, length, padding, packs):
    """Writes the samples to a safetensors file, some rows at a time. Returns the number
    of rows. A file with several samples in a row has no attention mask: the model must
    keep samples apart by position_ids."""
    if packs:
        rows = pack([len(sample.ids) for sample in samples], length)
    else:
        rows = [[number] for number in range(len(samples))]
    fields = ["input_ids", "labels", "position_ids"]
    if not packs:
        fields.append("attention_mask")
    bytes_of_field = 8 * length * len(rows)
    header = {"__metadata__": {NEEDS: "position_ids"}} if packs else {}
    for number, field in enumerate(fields):
        header[field] = {
            "dtype": "I64",
            "shape": [len(rows), length],
            "data_offsets": [number * bytes_of_field, (number + 1) * bytes_of_field],
        }
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)  # the data is aligned
    file.write(struct.pack("<Q", len(text)) + text)
    data = file.tell()
    for first in range(0, len(rows), ROWS):
        made = arrays_of(rows[first : first + ROWS], samples, length, padding)
        for number, field in enumerate(fields):
            file.seek(data + number * bytes_of_field + 8 * length * first)
            file.write(made[field].astype("<i8").tobytes())
    return len(rows)
