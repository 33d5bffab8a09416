# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The file of chimera-run --names: which tensor of a file of weights has a parameter.
runtime/model/weights/WeightNames.h shows the file."""

import json
import re

from . import Refused

NUMBER = re.compile(r"\{n([+-]\d+)?\}")


class TensorNames:
    def __init__(self, path):
        """Reads the file; every parameter keeps its name if `path` is None."""
        self.entries = []  # (pattern of the parameter, name, whether it is transposed)
        if path is None:
            return
        try:
            made = json.loads(path.read_text(encoding="utf-8"))
            made.pop("ignored", None)
            for parameter, entry in made.items():
                if isinstance(entry, str):
                    entry = {"name": entry}
                self.entries.append(
                    (parameter, str(entry["name"]), entry.get("transposed") is True)
                )
        except (ValueError, RecursionError, AttributeError, TypeError, KeyError):
            raise Refused(
                f"--names {path}: expected a JSON object of names, as for chimera-run"
            ) from None

    def tensor_of(self, parameter):
        """The name of a parameter's tensor, and whether it is transposed."""
        for pattern, name, is_transposed in self.entries:
            if match := _regex(pattern).fullmatch(parameter):

                def number(place, match=match):
                    return str(int(match[1]) + int(place[1] or 0))

                filled = NUMBER.sub(number, name) if match.re.groups else name
                return filled, is_transposed
        return parameter, False

    def is_transposed(self, tensor):
        """Whether a tensor is transposed in files of weights."""
        return any(
            is_transposed and _regex(name).fullmatch(tensor)
            for _, name, is_transposed in self.entries
        )


def _regex(pattern):
    """Matches names that have any number in the place of {n}."""
    parts = NUMBER.split(pattern)[::2]  # without the offsets
    return re.compile(r"(\d+)".join(map(re.escape, parts)))
