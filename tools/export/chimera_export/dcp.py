# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Converts checkpoints of chimera-run to and from distributed checkpoints (DCP) of
PyTorch, with the keys of torch.distributed.checkpoint.state_dict.

A DCP that we write has no optim.param_groups. Their number and their values depend on
the user's optimizer, and a value of a DCP would replace that of the user's loop.
"""

import contextlib
import dataclasses
import os
import shutil
import warnings

import torch
import torch.distributed.checkpoint as torch_dcp
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.metadata import TensorStorageMetadata

from . import Refused, checkpoint_files

STEP = "step"
# A state of each parameter that AdamW updates. In a DCP it has its number of updates
# beside it.
OF_ADAMW = "exp_avg"
# An error shows at most this many differences. More are mostly of one kind.
SHOWN = 5


@dataclasses.dataclass
class Keys:
    """The keys of the weights and of the optimizer in a DCP."""

    model: str
    optimizer: str

    def weight(self, parameter):
        return f"{self.model}.{parameter}" if self.model else parameter

    def state(self, parameter, state):
        return f"{self.states()}{parameter}.{state}"

    def states(self):
        return f"{self.optimizer}.state."

    def of(self, tensor):
        if tensor.state is None:
            return self.weight(tensor.parameter)
        return self.state(tensor.parameter, tensor.state)


def to_dcp(folder, target, keys, names):
    """Writes the newest checkpoint in `folder` as the DCP `target`. Returns a line
    about it."""
    saved = checkpoint_files.Checkpoint(checkpoint_files.find(folder), names)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise Refused(
            f"--to-dcp {target}: expected a new or empty folder, got "
            + ("a folder with files" if target.is_dir() else "a file")
        )
    step, updates = saved.training["step"], saved.training["updates"]
    values = {keys.of(tensor): saved.read(tensor) for tensor in saved.tensors}
    for tensor in saved.tensors:
        if tensor.state == OF_ADAMW:
            values[keys.state(tensor.parameter, STEP)] = torch.tensor(float(updates))
    values[STEP] = step
    partial = target.with_name(f"{target.name}.{os.getpid()}.partial")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with _alone():
            torch_dcp.save(
                values, storage_writer=torch_dcp.FileSystemWriter(partial), no_dist=True
            )
        partial.rename(target)
    except CheckpointException as error:
        _raise_interrupt(error)
        raise OSError(f"--to-dcp {target}: {_reason(error)}") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return f"{target}: {saved.path} as a DCP, {len(values)} keys, after {step} steps"


def from_dcp(folder, source, like, keys, names, step):
    """Writes the DCP `source` as a checkpoint to `folder`, with the files of the newest
    checkpoint in `like`. Returns lines about it."""
    like = checkpoint_files.Checkpoint(checkpoint_files.find(like), names)
    reader = torch_dcp.FileSystemReader(source)
    found = _entries(reader, source)
    _check(found, source, like, keys)
    step, updates = _progress(reader, found, source, like, keys, step)

    def load(tensors):
        values = {
            keys.of(tensor): torch.empty(tensor.shape, dtype=like.dtype) for tensor in tensors
        }
        _load(reader, source, values)
        return list(values.values())

    path = checkpoint_files.write(folder, like, step, updates, load)
    lines = [f"{path}: a checkpoint after {step} steps, with the files of {like.path}"]
    used = {keys.of(tensor) for tensor in like.tensors}
    prefix = keys.weight("")
    rest = [key for key in found if key.startswith(prefix) and key not in used]
    rest = [key for key in rest if keys.model or not _is_other(key, keys)]
    if rest:
        lines.append(
            "not used, since a checkpoint has no buffers, and a tied parameter once: "
            + ", ".join(rest)
        )
    return lines


def _is_other(key, keys):
    return key == STEP or key.startswith(f"{keys.optimizer}.")


def _entries(reader, source):
    """The entries of a DCP, by key."""
    if not (source / ".metadata").is_file():
        raise Refused(
            f"--from-dcp {source}: expected a DCP, which is a folder with a file .metadata"
        )
    try:
        return dict(reader.read_metadata().state_dict_metadata)
    except OSError:
        raise
    except Exception as error:  # a pickle can fail in any way
        raise Refused(
            f"--from-dcp {source}: PyTorch {torch.__version__} cannot read .metadata: "
            f"{type(error).__name__}: {error}"
        ) from None


def _raise_interrupt(error):
    """Raises Ctrl-C or SIGTERM again, which PyTorch has caught."""
    for inner, _ in error.failures.values():
        if isinstance(inner, (KeyboardInterrupt, SystemExit)):
            raise inner from None


def _load(reader, source, values):
    """Reads the values of the keys of `values` from a DCP into it."""
    try:
        with _alone():
            torch_dcp.load(values, storage_reader=reader, no_dist=True)
    except CheckpointException as error:
        _raise_interrupt(error)
        raise Refused(f"--from-dcp {source}: {_reason(error)}") from None


@contextlib.contextmanager
def _alone():
    """Hides torch's warning that there is no process group: one process converts."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="torch.distributed is disabled")
        yield


def _reason(error):
    """The error of the only process in a CheckpointException."""
    inner, _ = next(iter(error.failures.values()))
    return f"{type(inner).__name__}: {inner}"


def _check(found, source, like, keys):
    """Refuses a DCP whose parameters and optimizer state are not those of `like`."""
    missing, wrong = [], []
    for tensor in like.tensors:
        key = keys.of(tensor)
        entry = found.get(key)
        if entry is None:
            missing.append(key)
        elif not isinstance(entry, TensorStorageMetadata):
            wrong.append(f"{key}: expected a tensor")
        elif (tuple(entry.size), entry.properties.dtype) != (tensor.shape, like.dtype):
            wrong.append(
                f"{key}: expected {_text(like.dtype, tensor.shape)}, got "
                f"{_text(entry.properties.dtype, entry.size)}"
            )
    states = {keys.of(tensor) for tensor in like.tensors if tensor.state}
    states |= {keys.state(t.parameter, STEP) for t in like.tensors}
    unknown = [
        key for key in found if key.startswith(keys.states()) and key not in states
    ]
    if not (missing or wrong or unknown):
        return
    lines = [
        f"--from-dcp {source}: expected the weights and the optimizer state "
        f"({like.training['optimizer']}) of {like.path}"
    ]
    for option, is_state in (("--model-key", False), ("--optimizer-key", True)):
        of_kind = [tensor for tensor in like.tensors if bool(tensor.state) == is_state]
        if of_kind and {keys.of(tensor) for tensor in of_kind} <= set(missing):
            missing = sorted(set(missing) - {keys.of(tensor) for tensor in of_kind})
            lines += _all_missing(found, keys, option, of_kind)
    differences = wrong
    differences += [f"{key}: missing" for key in missing]
    differences += [f"{key}: not in {like.path}" for key in unknown]
    lines += differences[:SHOWN]
    if len(differences) > SHOWN:
        lines.append(f"… and {len(differences) - SHOWN} more")
    raise Refused("\n  ".join(lines))


def _all_missing(found, keys, option, tensors):
    """Lines for a DCP that has none of the tensors, which are all weights or all
    optimizer state. Names the keys under which it has the first one."""
    first = tensors[0]
    end = first.parameter if first.state is None else f"state.{first.parameter}.{first.state}"
    others = {key[: -len(end) - 1] for key in found if key.endswith(f".{end}")}
    if end in found:
        others.add("''")
    hint = f"; {option} may be {' or '.join(sorted(others))}" if others else ""
    what = "weights" if first.state is None else "tensors of optimizer state"
    return [f"all {len(tensors)} {what}, such as {keys.of(first)}: missing{hint}"]


def _text(dtype, shape):
    return f"{str(dtype).removeprefix('torch.')} {list(shape)}"


def _progress(reader, found, source, like, keys, given):
    """The numbers of steps and of updates of each weight before a DCP was written. The DCP
    has the number of steps, and for AdamW the number of updates, from which the steps
    follow if each step has as many updates as in the run of `like`. `given` is the number
    of --step."""
    step, updates = like.training["step"], like.training["updates"]
    each = updates // step if step and updates % step == 0 else None
    of_adamw = [
        keys.state(t.parameter, STEP) for t in like.tensors if t.state == OF_ADAMW
    ]
    stated = _number(reader, found, source, [STEP])
    if not of_adamw:
        number = given if stated is None else stated
        if number is None:
            raise Refused(
                f"--from-dcp {source}: expected the number of steps under the key {STEP}, got "
                "none: give --step N"
            )
        if given not in (None, number):
            raise Refused(
                f"--step {given}: {source} is after {number} steps: leave out --step"
            )
        return number, number * (each or 1)
    made = _number(reader, found, source, of_adamw)
    implied = made // each if each and made % each == 0 else None
    known = {number for number in (stated, implied) if number is not None}
    if given is None and not known:
        raise Refused(
            f"--from-dcp {source}: expected a multiple of {each or 1} updates, as in the steps "
            f"of {like.path}, got {made}: give the number of steps with --step N"
        )
    if given is None and len(known) > 1:
        raise Refused(
            f"--from-dcp {source}: expected one number of steps, got {stated} under the key "
            f"{STEP}, and {implied} from {made} updates: give --step N"
        )
    if given is not None and known and given not in known:
        raise Refused(
            f"--step {given}: {source} is after {' or '.join(map(str, sorted(known)))} steps: "
            "leave out --step"
        )
    return (known.pop() if given is None else given), made


def _number(reader, found, source, entries):
    """The number that all `entries` of a DCP have, or None if `entries` has only STEP
    and the DCP does not have it."""
    values = {
        key: torch.zeros((), dtype=found[key].properties.dtype)
        if isinstance(found[key], TensorStorageMetadata)
        else None
        for key in entries
        if key in found
    }
    if len(values) < len(entries) and entries != [STEP]:
        key = next(key for key in entries if key not in values)
        raise Refused(f"--from-dcp {source}: expected the number of steps {key}, got none")
    _load(reader, source, values)
    numbers = {}
    for key, value in values.items():
        try:
            number = float(value)
            if number < 0 or int(number) != number:
                raise ValueError
            numbers.setdefault(int(number), key)
        except (TypeError, ValueError, OverflowError):
            raise Refused(
                f"--from-dcp {source}: {key}: expected a number of steps, got {value!r}"
            ) from None
    if len(numbers) > 1:
        (one, a), (other, b), *_ = numbers.items()
        raise Refused(
            f"--from-dcp {source}: expected the same number of steps of all parameters, "
            f"got {one} of {a} and {other} of {b}"
        )
    return next(iter(numbers), None)
