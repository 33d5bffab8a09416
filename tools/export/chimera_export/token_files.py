# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes files of tokens. One has llm.c's header. Or it has numbers alone, and an index
beside it has the documents, as Megatron-LM writes them (runtime/data/MegatronIndex.h)."""

import array
import struct
import sys

HEADERS = {2: (20240520, 1), 4: (20240801, 7)}  # magic and version, by bytes of a token
HEADER_BYTES = 1024
MOST = 1 << 32  # tokens in a file with llm.c's header
TYPES = {2: 8, 4: 4}  # Megatron's numbers of uint16 and int32, by bytes of a token
MAGIC = b"MMIDIDX\0\0"


def _bytes_of(kind, numbers):
    made = array.array(kind, numbers)
    if sys.byteorder == "big":
        made.byteswap()
    return made.tobytes()


class TokenFile:
    """Writes tokens of `size` bytes to `file`. If `index` is a file too, writes the
    index to it, and no header to `file`."""

    def __init__(self, file, size, index=None):
        self.file, self.size, self.index = file, size, index
        self.count = 0
        self.before = 0  # tokens before the current document
        self.lengths = array.array("i")  # of the documents that have ended
        if index is None:
            file.write(bytes(HEADER_BYTES))

    def add(self, ids):
        """Writes tokens. Raises ValueError if there are too many for a header."""
        if self.index is None and self.count + len(ids) >= MOST:
            raise ValueError("expected fewer than 2^32 tokens: --index has no such limit")
        self.file.write(_bytes_of({2: "H", 4: "I"}[self.size], ids))
        self.count += len(ids)

    def end_document(self):
        """Ends the current document for the index. One without tokens is left out. Raises
        ValueError if it has 2^31 tokens or more."""
        if self.index is None:
            return
        length = self.count - self.before
        if length >= 1 << 31:
            raise ValueError(f"expected a text of fewer than 2^31 tokens, got {length}")
        if length:
            self.lengths.append(length)
        self.before = self.count

    def finish(self):
        """Writes the header, or the index. Raises ValueError if there are no tokens."""
        if self.count == 0:
            raise ValueError("expected at least one token, got none")
        if self.index is not None:
            return self._write_index()
        self.file.seek(0)
        self.file.write(struct.pack("<iiI", *HEADERS[self.size], self.count))

    def _write_index(self):
        begins, begin = array.array("q"), 0
        for length in self.lengths:
            begins.append(begin)
            begin += length * self.size
        count = len(self.lengths)
        # Each document is one sequence. The last table has the first sequence of each
        # document, and the number of sequences.
        self.index.write(
            MAGIC + struct.pack("<QBQQ", 1, TYPES[self.size], count, count + 1)
        )
        for kind, numbers in (("i", self.lengths), ("q", begins), ("q", range(count + 1))):
            self.index.write(_bytes_of(kind, numbers))
