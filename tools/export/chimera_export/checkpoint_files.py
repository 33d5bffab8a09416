# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reads and writes checkpoints of chimera-run. runtime/model/checkpoint/Folder.h and
Description.h show their files."""

import contextlib
import dataclasses
import fcntl
import json
import os
import re
import secrets
import shutil

import safetensors.torch
import torch
import xxhash

from . import Refused
from .tensor_names import TensorNames

FORMAT = "chimera checkpoint 1"
TRAINING = "training.json"
INDEXES = ("model.safetensors.index.json", "optimizer.safetensors.index.json")
TYPES = {
    "float32": ("F32", torch.float32), "float64": ("F64", torch.float64),
    "bfloat16": ("BF16", torch.bfloat16),
}  # fmt: skip
ADAMW, MOMENTUM = ("exp_avg", "exp_avg_sq"), ("momentum_buffer",)
STATES = {  # of each optimizer: what a parameter may have
    "sgd": [()],
    "sgd-momentum": [MOMENTUM],
    "adamw": [ADAMW],
    "muon": [MOMENTUM, ADAMW],
}
CHECKSUM = re.compile(rb'("checksum": ").{16}', re.DOTALL)  # of training.json itself
TEXT, NUMBER = "a text", "a whole number"
FIELDS = {
    "step": NUMBER, "updates": NUMBER, "samples_per_step": NUMBER, "seed": NUMBER, "optimizer": TEXT,
    "weight_type": TEXT, "data": TEXT, "program": TEXT, "checksum": TEXT,
}  # fmt: skip


def checksum_of(tensor):
    """The checksum of a tensor's elements in training.json."""
    return xxhash.xxh3_64_hexdigest(tensor.contiguous().reshape(-1).view(torch.uint8).numpy())


def checksum_of_text(text):
    """The checksum of the bytes of training.json, which is among them."""
    return xxhash.xxh3_64_hexdigest(CHECKSUM.sub(rb"\g<1>" + b"0" * 16, text, count=1))


def step_name(step):
    return f"step-{step:08}"


def complete_in(folder):
    """The complete checkpoints in a folder by their steps."""
    found = {}
    for path in folder.iterdir():
        match = re.fullmatch(r"step-(\d{8,19})", path.name)
        if match and (path / TRAINING).exists() and step_name(int(match[1])) == path.name:
            found[int(match[1])] = path
    return found


def find(path):
    """The checkpoint `path`, or the newest one in the folder `path`."""
    if not path.is_dir():
        got = "a file" if path.exists() else "nothing"
        raise Refused(f"{path}: expected a checkpoint or a folder of checkpoints, got {got}")
    if (path / TRAINING).exists():
        return path
    found = complete_in(path)
    if not found:
        raise Refused(
            f"{path}: expected a checkpoint, which has a file {TRAINING}, or a folder of "
            "checkpoints, found none"
        )
    return found[max(found)]


@dataclasses.dataclass
class Tensor:
    """A tensor of a checkpoint."""

    file: str
    name: str  # in the file
    parameter: str  # the name of its parameter in files of weights
    state: str | None  # exp_avg and so on; None for weights
    shape: tuple  # in files of weights
    is_transposed: bool  # whether files of weights have another shape than the program


class Checkpoint:
    """A complete checkpoint, whose files are read when they are needed."""

    def __init__(self, path, names):
        """Reads what the checkpoint has. `names` is the file of --names or None."""
        self.path = path
        self.training = self._read_training()
        self.type, self.dtype = TYPES[self.training["weight_type"]]
        self.states = STATES[self.training["optimizer"]]
        self.tensors = self._read_headers(TensorNames(names))

    def _read_training(self):
        file = self.path / TRAINING
        try:
            text = file.read_bytes()
            made = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise Refused(f"{file}: expected JSON: {error}") from None
        got = made.get("format") if isinstance(made, dict) else None
        if got != FORMAT:
            raise Refused(f"{file}: expected the format '{FORMAT}', got {got!r}")
        for field, kind in FIELDS.items():
            value = made.get(field)
            is_number = type(value) is int and value >= 0
            if not (is_number if kind is NUMBER else isinstance(value, str)):
                raise Refused(f"{file}: expected \"{field}\" with {kind}, got {value!r}")
        for field, known in (("optimizer", STATES), ("weight_type", TYPES)):
            if made[field] not in known:
                raise Refused(
                    f"{file}: expected \"{field}\" with one of {', '.join(known)}, got "
                    f"'{made[field]}'"
                )
        sums = made.get("checksums")
        if not isinstance(sums, dict) or not all(
            re.fullmatch(r"(model|optimizer)-\d+-of-\d+\.safetensors", name)
            and isinstance(tensors, dict)
            for name, tensors in sums.items()
        ):
            raise Refused(f"{file}: expected \"checksums\" with the tensors of each file")
        if (got := checksum_of_text(text)) != made["checksum"]:
            raise Refused(
                f"{file}: expected a file with the checksum {made['checksum']}, got one with "
                f"{got}: it is damaged, or was edited"
            )
        return made

    def _read_headers(self, names):
        headers = {}  # shape by tensor by file
        for file in sorted(self.training["checksums"]):
            try:
                with safetensors.safe_open(self.path / file, framework="pt") as opened:
                    slices = {name: opened.get_slice(name) for name in opened.keys()}
                    types = {each.get_dtype() for each in slices.values()}
                    headers[file] = {n: tuple(s.get_shape()) for n, s in slices.items()}
            except safetensors.SafetensorError as error:
                raise Refused(f"{self.path / file}: {error}: {DAMAGED}") from None
            if types - {self.type}:
                raise Refused(
                    f"{self.path / file}: expected tensors of type {self.type}, as "
                    f"{TRAINING} says, got {', '.join(sorted(types))}"
                )
            if headers[file].keys() != self.training["checksums"][file].keys():
                raise Refused(
                    f"{self.path / file}: expected the tensors of {TRAINING}, got others: "
                    + DAMAGED
                )
        tensors = [
            Tensor(file, name, name, None, shape, names.is_transposed(name))
            for file, shapes in headers.items()
            if file.startswith("model-")
            for name, shape in shapes.items()
        ]
        shapes = {tensor.parameter: tensor.shape for tensor in tensors}
        known = {state for states in self.states for state in states}
        present = {name: set() for name in shapes}  # states by parameter
        for file in headers:
            if file.startswith("model-"):
                continue
            for name, shape in headers[file].items():
                own, _, state = name.rpartition(".")
                parameter, is_transposed = names.tensor_of(own)
                found = shape[::-1] if is_transposed else shape
                if (
                    state not in known
                    or shapes.get(parameter) != found
                    or state in present[parameter]
                ):
                    raise Refused(
                        f"{self.path / file}: expected the optimizer state of a parameter "
                        f"with its shape, got '{name}' {list(shape)}: if the run had "
                        "--names, give it the same file here"
                    )
                present[parameter].add(state)
                tensors.append(Tensor(file, name, parameter, state, found, is_transposed))
        for parameter, states in sorted(present.items()):
            if states in map(set, self.states):
                continue
            likely = max(self.states, key=lambda each: len(states & set(each)))
            missing = next(state for state in likely if state not in states)
            raise Refused(
                f"{self.path}: expected the optimizer state {missing} of '{parameter}', got "
                f"none: {DAMAGED}"
            )
        return tensors

    def read(self, tensor):
        """The values of a Tensor as files of weights have them, with its checksum
        compared."""
        with safetensors.safe_open(self.path / tensor.file, framework="pt") as opened:
            value = opened.get_tensor(tensor.name)
        program = value.t() if tensor.is_transposed and tensor.state is None else value
        got = checksum_of(program)
        expected = self.training["checksums"][tensor.file][tensor.name]
        if got != expected:
            hint = "" if tensor.state else ", or the run had --names: give it the same file"
            raise Refused(
                f"{self.path / tensor.file}: expected the checksum {expected} of "
                f"'{tensor.name}', got {got}: {DAMAGED}{hint}"
            )
        return value.t() if tensor.is_transposed and tensor.state else value


DAMAGED = "the checkpoint is damaged"


def write(folder, like, step, updates, load):
    """Writes a checkpoint with the files and tensors of the Checkpoint `like`, after
    `step` steps and `updates` updates of each weight, to a folder of checkpoints. `load` turns a list of Tensors into their
    values in the same order. Returns the checkpoint's path."""
    with _locked(folder):
        later = {n: path for n, path in complete_in(folder).items() if n >= step}
        if later:
            raise Refused(
                f"{folder}: expected checkpoints of earlier steps than {step} or none, got "
                f"{later[max(later)].name}: give another folder"
            )
        target = folder / step_name(step)
        partial = folder / f"{target.name}.{secrets.token_hex(8)}.partial"
        try:
            partial.mkdir()
            sums = {}
            for file in sorted(like.training["checksums"]):
                tensors = [each for each in like.tensors if each.file == file]
                sums[file] = _write_shard(partial / file, tensors, load(tensors))
            for index in INDEXES:
                if (like.path / index).exists():
                    shutil.copyfile(like.path / index, partial / index)
            training = like.training | {
                "step": step,
                "updates": updates,
                "data": "",
                "program": "chimera-checkpoint --from-dcp",
                "checksums": sums,
            }
            (partial / TRAINING).write_bytes(_with_checksum(training))
            for path in (*partial.iterdir(), partial):
                _sync(path)
            partial.rename(target)
            _sync(folder)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
    return target


def _with_checksum(training):
    """The text of training.json."""
    training = training | {"checksum": "0" * 16}
    text = (json.dumps(training, indent=1, ensure_ascii=False) + "\n").encode()
    return CHECKSUM.sub(rb"\g<1>" + checksum_of_text(text).encode(), text, count=1)


def _write_shard(path, tensors, values):
    """Writes the values of the Tensors to a file. Returns their checksums."""
    sums, written = {}, {}
    for tensor, value in zip(tensors, values, strict=True):
        program = value.t() if tensor.is_transposed else value
        sums[tensor.name] = checksum_of(program)
        written[tensor.name] = (program if tensor.state else value).contiguous()
    path.touch()
    mode = path.stat().st_mode
    try:
        safetensors.torch.save_file(written, path, metadata={"format": "pt"})
    except safetensors.SafetensorError as error:
        raise OSError(f"{path}: {error}") from error
    path.chmod(mode)  # the library makes files that only their owner can read
    return sums


def _sync(path):
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


@contextlib.contextmanager
def _locked(folder):
    """Locks a folder of checkpoints, as runs do that write to it."""
    if folder.exists() and (not folder.is_dir() or (folder / TRAINING).exists()):
        got = "a checkpoint" if folder.is_dir() else "a file"
        raise Refused(f"{folder}: expected a folder of checkpoints or a new one, got {got}")
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / ".lock", "a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Refused(
                f"{folder}: another process writes its checkpoints there: give another "
                "folder"
            ) from None
        yield
