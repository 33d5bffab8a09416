# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Turns texts into the tokens of a training corpus: every character and nothing else.

A tokenizer file also remembers how its last user prepared single inputs of a model:
truncation, padding, dropout of merges. A corpus has none of these, so they are switched
off. The tokenizer's changes of characters (normalizer, added tokens) stay.

Encoding needs some 180 bytes of memory for each byte of text, so a text is encoded in
pieces. A text is cut after a line break, or before a space if there is no such line break,
if the tokenizer makes the same tokens from the two sides separately as from both together.
A tokenizer that puts a space before every text allows no such cut after a line break.
"""

import collections
import io
import itertools
import json

import tokenizers

PIECE = 1 << 17  # characters
PIECES = 8  # encoded at once, on all cores
AROUND = 2000  # characters on each side of a possible cut that are encoded to test it
CUTS = 30  # possible cuts that are tested


def without_inputs_settings(tokenizer):
    """Switches off settings that do not belong to a corpus. Returns a message for
    each."""
    lines = []
    if tokenizer.truncation:
        lines.append(
            f"its truncation to {tokenizer.truncation['max_length']} tokens is switched "
            "off: texts are read whole"
        )
        tokenizer.no_truncation()
    if tokenizer.padding:
        lines.append("its padding is switched off: a corpus has none")
        tokenizer.no_padding()
    if getattr(tokenizer.model, "dropout", None):
        lines.append(
            f"its dropout of {tokenizer.model.dropout:g} of the merges is switched off: "
            "a file has each text once"
        )
        tokenizer.model.dropout = None
    if count := tokenizer.num_special_tokens_to_add(False):
        lines.append(
            f"the special tokens that it adds to an input, {count} to each, are left "
            "out: --between TOKEN puts one between texts"
        )
    return lines


class Encoder:
    """Turns texts into token numbers, and counts characters that get lost."""

    def __init__(self, tokenizer):
        self.tokenizer = tokenizer
        self.vocabulary = tokenizer.get_vocab()
        self.seen = collections.Counter()  # characters
        self.unknown = 0
        self.unknown_id = self.vocabulary.get(getattr(tokenizer.model, "unk_token", None))
        if isinstance(tokenizer.model, tokenizers.models.Unigram):  # which has no unk_token
            self.unknown_id = json.loads(tokenizer.to_str())["model"]["unk_id"]

    def encode(self, text):
        """Yields lists of token numbers of a Text, in order. Raises ValueError."""
        pieces = self._pieces(text)
        while some := list(itertools.islice(pieces, PIECES)):
            for piece in some:
                self.seen.update(piece)
            for ids in self._ids(some):
                self.unknown += ids.count(self.unknown_id)
                yield ids

    def encode_each(self, texts):
        """Yields the token numbers of each string of `texts`, a list each. Raises
        ValueError."""
        group, size = [], 0

        def flushed():
            for text in group:
                self.seen.update(text)
            for ids in self._ids(group):
                self.unknown += ids.count(self.unknown_id)
                yield ids

        for text in texts:
            # A long text is encoded alone, after those before it.
            if len(text) > PIECE or size + len(text) > PIECE * PIECES:
                yield from flushed()
                group, size = [], 0
            if len(text) > PIECE:
                yield list(itertools.chain(*self.encode(io.StringIO(text))))
                continue
            group.append(text)
            size += len(text)
        yield from flushed()

    def _ids(self, texts):
        try:
            encoded = self.tokenizer.encode_batch_fast(texts, add_special_tokens=False)
        except Exception as error:  # the library has no special exception
            if "unk" not in str(error).lower():
                raise ValueError(f"the tokenizer refuses it: {error}") from None
            raise ValueError(
                "it has unknown words or characters, and the vocabulary has no token for "
                f"these ({error}): give the tokenizer an unk_token that it has"
            ) from None
        return [each.ids for each in encoded]

    def _pieces(self, source):
        text, size = "", PIECE
        while more := source.read(size):
            text += more
            if (cut := self._cut(text)) is None:
                size = len(text)
                continue
            yield text[:cut]
            text, size = text[cut:], PIECE
        if text:
            yield text

    def _cut(self, text):
        """A position at which `text` can be cut, or None."""
        for mark, length in (("\n", 1), (" ", 0)):  # the mark stays before the cut or not
            end = len(text) - AROUND
            for _ in range(CUTS):
                at = text.rfind(mark, 0, max(end, 0))
                cut = at + length
                if at < 0 or cut == 0:
                    break
                left, right = text[max(cut - AROUND, 0) : cut], text[cut : cut + AROUND]
                both, alone, after = self._ids([left + right, left, right])
                if both == alone + after:
                    return cut
                end = at
        return None

    def losses(self):
        """A message for each way in which tokens lose something of the texts."""
        lines = []
        if self.unknown:
            token = self.tokenizer.id_to_token(self.unknown_id)
            lines.append(
                f"{self.unknown:,} of these are '{token}', the token for unknown text"
            )
        if lost := [c for c in self.seen if self._is_lost(c)]:
            lost.sort(key=self.seen.get, reverse=True)
            named = ", ".join(map(repr, lost[:5])) + (", …" if len(lost) > 5 else "")
            lines.append(
                f"{sum(map(self.seen.get, lost)):,} characters without a token are lost: "
                f"{named}"
            )
        return lines

    def _is_lost(self, character):
        """Whether a character, or a part of it, is lost. Byte-pair encoding drops
        unknown characters if the vocabulary has no token for them."""
        model = self.tokenizer.model
        if (
            not isinstance(model, tokenizers.models.BPE)
            or model.unk_token
            or model.byte_fallback
            or model.continuing_subword_prefix
            or model.end_of_word_suffix
        ):
            return False
        parts = [(character, None)]
        if self.tokenizer.normalizer:
            parts = [(self.tokenizer.normalizer.normalize_str(character), None)]
        if self.tokenizer.pre_tokenizer:
            parts = self.tokenizer.pre_tokenizer.pre_tokenize_str(parts[0][0])
        return any(symbol not in self.vocabulary for part, _ in parts for symbol in part)
