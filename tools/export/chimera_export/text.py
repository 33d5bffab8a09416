# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A text that is read once from start to end, so that it may come from a pipe."""

import codecs

BYTES = 1 << 16  # bytes read at once, a multiple of 4
OTHER_MARKS = {
    codecs.BOM_UTF32_LE: "UTF-32LE", codecs.BOM_UTF32_BE: "UTF-32BE",
    codecs.BOM_UTF16_LE: "UTF-16LE", codecs.BOM_UTF16_BE: "UTF-16BE",
}  # fmt: skip
# ASCII text in these encodings has zero bytes. The numbers are their positions in every
# four bytes.
ZEROS = {
    "UTF-32LE": (1, 2, 3), "UTF-32BE": (0, 1, 2), "UTF-16LE": (1, 3), "UTF-16BE": (0, 2),
}  # fmt: skip
TAR = 257, b"ustar"


class Text:
    """The characters of `file`, which is open in binary mode. Line ends stay as they are,
    and a byte order mark at the start is skipped. Raises ValueError if it is not text."""

    def __init__(self, file):
        self.file = file
        self.decoder = codecs.getincrementaldecoder("utf-8-sig")()
        self.line = 1  # number of the next character's line
        self.is_begin = True

    def read(self, size):
        """Reads `size` characters or a few more. Returns fewer only at the end."""
        parts, count = [], 0
        while count < size:
            raw = self.file.read(BYTES)
            if self.is_begin:
                _check_mark(raw)
                self.is_begin = False
            parts.append(self._decoded(raw))
            count += len(parts[-1])
            if not raw:
                break
        return "".join(parts)

    def _decoded(self, raw):
        try:
            text = self.decoder.decode(raw, final=not raw)
        except UnicodeDecodeError as error:
            line = self.line + error.object.count(b"\n", 0, error.start)
            raise ValueError(
                f"expected UTF-8, got the byte {error.object[error.start]:#04x} in line "
                f"{line}: {error.reason}"
            ) from None
        if (at := text.find("\0")) >= 0:
            line = self.line + text.count("\n", 0, at)
            raise ValueError(
                f"expected text, got a character 0 in line {line}: {_advice(raw)}"
            )
        self.line += text.count("\n")
        return text


def _check_mark(raw):
    for mark, name in OTHER_MARKS.items():
        if raw.startswith(mark):
            raise ValueError(
                f"expected UTF-8, got the byte order mark of {name}: convert it with "
                f"iconv -f {name.removesuffix('LE').removesuffix('BE')} -t UTF-8"
            )


def _advice(raw):
    """Advice about a file with zero bytes, as text for a message."""
    if raw.startswith(TAR[1], TAR[0]):
        return "it looks like a tar archive, so extract the text first"
    shares = [raw[i::4].count(0) / max(len(raw[i::4]), 1) for i in range(4)]
    for name, zeros in ZEROS.items():
        if all((share > 0.9) == (i in zeros) for i, share in enumerate(shares)):
            return f"it looks like {name}, so convert it with iconv -f {name} -t UTF-8"
    return "give a file of text; if it is one, tr -d '\\000' takes such characters out"
