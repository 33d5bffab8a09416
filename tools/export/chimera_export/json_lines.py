# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Files of JSON lines: each line is an object, such as {"text": "…"}."""

import json

SUFFIXES = (".jsonl", ".ndjson")


def is_json_lines(path):
    """Whether the name of a file says that it has JSON lines."""
    return path.suffix.lower() in SUFFIXES


def seem_to_begin(head):
    """Whether the first bytes of a file seem to be JSON lines with texts."""
    return head.lstrip()[:1] == b"{" and b'"text"' in head


def read(path):
    """Yields the number of each line, from 1, and its object. Empty lines are skipped.
    Raises ValueError, with the line in the message, if a line is no object."""
    with open(path, "rb") as file:
        for number, raw in enumerate(file, start=1):
            if not raw.strip():
                continue
            try:
                made = json.loads(raw)
            except (ValueError, RecursionError) as error:
                raise ValueError(f"line {number}: expected JSON: {error}") from None
            if not isinstance(made, dict):
                raise ValueError(
                    f"line {number}: expected an object such as {{\"text\": \"…\"}}, got "
                    f"{raw[:40].decode(errors='replace').strip()!r}"
                )
            yield number, made


def texts(path):
    """Yields the "text" of each line."""
    for number, made in read(path):
        text = made.get("text")
        if not isinstance(text, str):
            raise ValueError(
                f"line {number}: expected a string \"text\", got the keys "
                f"{', '.join(map(repr, made)) or 'none'}"
            )
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise ValueError(f"line {number}: expected a text, got {error.reason}") from None
        yield text
