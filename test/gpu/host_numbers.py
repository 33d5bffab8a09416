#!/usr/bin/env python3
# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trains the models of programs.py, built-in and exported, on GPUs and on the host.
Compares each step's loss and each parameter's gradient. They must agree within 1e-4, and in bfloat16 within
1e-2. For a gradient, this is the norm of the difference divided by the norm of all
gradients."""

import argparse
import json
import math
import pathlib
import struct
import sys
import tempfile

import launch

STEPS = 3


def read_gradients(path):
    """The numbers of each gradient, by the parameter's name."""
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    tensors = {}
    for name, entry in json.loads(data[8 : 8 + size]).items():
        if name == "__metadata__":
            continue
        begin, end = (8 + size + at for at in entry["data_offsets"])
        letter = {"F32": "f", "F64": "d", "BF16": "f"}[entry["dtype"]]
        elements = data[begin:end]
        if entry["dtype"] == "BF16":  # each is the upper half of a float32
            elements = b"".join(
                b"\0\0" + elements[i : i + 2] for i in range(0, len(elements), 2)
            )
        tensors[name] = memoryview(elements).cast(letter)
    return tensors


def norm(numbers):
    return math.sqrt(math.fsum(number * number for number in numbers))


def train(options, program, data, device, ranks, folder):
    """Trains. `data` are the arguments for the data. Returns the losses of the steps and
    the gradients."""
    log, gradients = folder / f"{device}.log", folder / f"{device}.safetensors"
    # fmt: off
    command = [options.run, program, *data, "--device", device,
               "--steps", STEPS, "--log", log, "--save-gradients", gradients,
               "--check-replicas", "--evaluate-samples", 0, "--timeout",
               launch.TIMEOUT]
    # fmt: on
    if options.graphs and device == "cuda":
        command.append("--cuda-graphs")
    output, is_well = launch.run(command, ranks)
    if not is_well:
        raise RuntimeError(f"{program.name} on {device}:\n{output}")
    steps = [json.loads(line) for line in log.read_text().splitlines()]
    losses = [step["loss"] for step in steps if "loss" in step]
    return losses, read_gradients(gradients)


def compare(options, each, folder):
    """Trains on the host and on the device. Returns the largest differences of the
    losses and of the gradients."""
    program = options.programs / each["program"]
    data = ["--data", options.programs / each["data"], "--tokens", each["tokens"]]
    ranks = each["ranks"] if options.processes else 0
    theirs, expected = train(options, program, data, "host", 0, folder)
    ours, gradients = train(options, program, data, options.device, ranks, folder)
    if len(ours) != STEPS or gradients.keys() != expected.keys():
        raise RuntimeError(f"{program.name}: expected the same steps and parameters")
    of_losses = max(abs(a - b) / abs(b) for a, b in zip(ours, theirs))
    whole = norm([norm(numbers) for numbers in expected.values()])
    of_gradients = max(
        norm([a - b for a, b in zip(gradients[name], expected[name])]) / whole
        for name in expected
    )
    return of_losses, of_gradients


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", required=True, help="chimera-run")
    parser.add_argument("--programs", type=pathlib.Path, required=True)
    parser.add_argument("--processes", action="store_true", help="a process a rank")
    parser.add_argument("--device", default="cuda", help="instead of GPUs")
    parser.add_argument("--graphs", action="store_true", help="CUDA graphs too")
    options = parser.parse_args()
    every = json.loads((options.programs / "models.json").read_text())
    is_well = bool(every)
    for each in every:
        with tempfile.TemporaryDirectory() as folder:
            try:
                losses, gradients = compare(options, each, pathlib.Path(folder))
            except RuntimeError as error:
                print(error)
                is_well = False
                continue
        is_well = is_well and max(losses, gradients) <= each["most"]
        print(
            f"{each['program']}: losses within {losses:.1e}, gradients within "
            f"{gradients:.1e} (expected {each['most']:.0e})"
        )
    sys.exit(0 if is_well else "numbers differ")


if __name__ == "__main__":
    main()
