#!/usr/bin/env python3
# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exports the models of examples/models in float64, in several sizes, and the models of
operators.py. Trains them and compares the result with

- a plain PyTorch loop with SGD over the same data on one device: the loss of each step
  and the last step's gradients. They must agree bit by bit if the exporter's --check
  says that the graphs do and no parameter is tied; otherwise within rounding;
- a run of chimera on one device, under the schedules of the registry (numerics.py).

Prints a line for each comparison and exits non-zero if one fails. Needs a Python with
torch: that of build/venv, unless another Python runs this script."""

import argparse
import array
import json
import pathlib
import sys
import types

from exporting import EXPORT, PYTHON, ROOT, check_each, of_type
from forks import restart_with, run_script
from grid import run
from numerics import losses, read_tensors, worst_difference

HERE = pathlib.Path(__file__).resolve().parent
STEPS = 3
SAMPLES, BATCHES = 2, 4
EXPORTED_SAMPLES = 3  # the package serves SAMPLES, too
# For each case: the model, its arguments, and (stages, copies, whether to use
# numerics.py --variants). If the model has a tied matrix, numerics.py runs with --tied.
# None: no schedules, because numerics.py tests them with the built-in GPT-2.
CASES = [
    ("gpt2", "layers=6 heads=2 width=16 context=8", None),
    ("llama", "layers=6 heads=4 groups=2 width=16 context=8", (4, 1, False)),
    ("convolution", "layers=6 width=8 context=8", (4, 1, False)),
    ("gpt2", "layers=2 heads=2 width=32 context=16 tied=True", None),
    ("operators", "group=dropout layers=2", (2, 1, False)),
    # Software GPUs run this dropout as graphs.
    ("gpt2", "layers=2 heads=2 width=16 context=8 dropout=0.1 attention_dropout=0.0",
     (2, 1, False)),
    # With so many classes, the backward computes the loss.
    ("gpt2", "layers=4 heads=2 width=8 context=8 vocabulary=4096 tied=True", (4, 1, False)),
    # This model also has a bias that belongs to the tied matrix.
    ("bert", "layers=2 heads=2 width=32 context=16 pairs=False", (3, 1, False)),
]
MASK, MARKS = 256, (257, 258, 259)  # tokens of the BERT of examples/models
MORE = [
    ("bert", "layers=6 heads=2 width=16 context=16 tied=False", (4, 1, False)),
    ("operators", "group=recurrent layers=1", (2, 1, False)),
    ("gpt2", "layers=2 heads=2 width=8 context=8 vocabulary=4096", (2, 1, False)),
    ("convolution", "layers=6 width=8 context=8", (4, 2, False)),
    ("gpt2", "layers=2 heads=2 width=8 context=8 vocabulary=4096", (2, 1, True)),
    ("gpt2", "layers=6 heads=2 width=16 context=8 dropout=0.1", (4, 1, True)),
    ("gpt2", "layers=6 heads=2 width=16 context=8", (8, 1, True)),
    ("llama", "layers=2 heads=2 groups=1 width=32 context=16", (2, 2, True)),
    ("llama", "layers=14 heads=4 groups=4 width=16 context=8", (8, 1, False)),
    ("convolution", "layers=3 width=16 context=16", (2, 2, True)),
    ("convolution", "layers=8 width=8 context=8", (8, 1, True)),
    ("bert", "layers=6 heads=2 width=16 context=16 tied=False", (4, 1, True)),
    ("bert", "layers=6 heads=2 width=16 context=16 dropout=0.1", (8, 1, True)),
    ("bert", "layers=3 heads=4 width=32 context=24 dropout=0.1", (2, 2, False)),
    ("operators", "group=dropout layers=2", (2, 1, True)),
    *(
        ("operators", f"group={group} layers=2", (2, 1, False))
        for group in (
            "activations", "math", "losses", "planes", "norms", "choosing", "products"
        )
    ),
]  # fmt: skip
DESCRIPTION = """
chimera.model @m exported("{folder}")
chimera.training @training seed(7) optimizer(sgd) learning_rate(0.5) weight_decay(0.125)
chimera.pipeline @p of @m with @training stages(2) micro_batches({batches}) schedule("gpipe")
    micro_batch_size({samples}) weight_type(f64)
"""


def plain_loop(source, arguments, values, data, steps, compute, rate):
    """Trains the user's module in a plain loop, with the optimizer as documented.
    `compute` is the type of the parameters or, for float32 parameters in autocast,
    "autocast". Prints the losses and the last step's gradients. Needs torch."""
    sys.path[:0] = [str(ROOT / "tools/export"), str(HERE)]
    import torch
    from chimera_export import arguments as given, command
    from chimera_export.model import WithLoss
    from reference import windows
    from samples import BertSamples

    torch.set_num_threads(1)
    casts = compute == "autocast"
    dtype = torch.float32 if casts else getattr(torch, compute)
    torch.set_default_dtype(dtype)
    function = command.load_function(source)
    model = function(**given.parse_values(arguments), samples=SAMPLES)
    for module in (model.module, model.loss):
        if isinstance(module, torch.nn.Module):
            module.to(dtype)
    named = dict(model.named_parameters())
    start = read_tensors(pathlib.Path(values))
    with torch.no_grad():
        for name, p in named.items():
            if name in start:
                p.copy_(torch.tensor(start[name]).view(p.shape))
    named = {name: p for name, p in named.items() if name in start}
    of_model = WithLoss(model)

    def loss_of(*tensors):
        with torch.autocast("cpu", torch.bfloat16, enabled=casts):
            return of_model(*tensors)

    text = pathlib.Path(data).read_bytes()
    run = types.SimpleNamespace(
        hold_out=0.1, context=model.given()[0].shape[1], micro_batch_size=SAMPLES,
        micro_batches=BATCHES, data_parallel=1, seed=7,
    )  # fmt: skip
    of_bert = BertSamples(
        text, run, MASK, None if "pairs=False" in arguments else MARKS
    ).of
    def decays(p):
        return sum(extent > 1 for extent in p.shape) > 1

    matrices = [p for p in named.values() if decays(p)]
    others = [p for p in named.values() if not decays(p)]
    optimizer = torch.optim.SGD(
        [
            {"params": matrices, "weight_decay": 0.125},
            {"params": others, "weight_decay": 0.0},
        ],
        lr=rate,
    )
    mean = None
    for step in range(steps):
        total, weight = 0.0, 0.0
        for p in named.values():
            p.grad = None
        if "pairs=False" not in arguments and "bert" in str(source):
            # The loss is the sum of two means over the whole step, so all micro-batches
            # come first.
            each = [
                loss_of(*map(torch.tensor, of_bert(step, m))) for m in range(BATCHES)
            ]
            tokens, counts, pairs, of = (sum(column) for column in zip(*each))
            mean = tokens / counts + pairs / of
            mean.backward()
            print(json.dumps(mean.item()))
            if step + 1 < steps:
                optimizer.step()
            continue
        for micro_batch in range(BATCHES):
            tokens, labels = windows(text, run, step, micro_batch)
            if "bert" in str(source):
                loss, count = loss_of(*map(torch.tensor, of_bert(step, micro_batch)))
                weight += count.item()
            else:
                loss = loss_of(tokens, labels)
                weight += 1
            loss.backward()
            total += loss.item()
        mean = total / weight
        for p in named.values():
            p.grad *= 1 / weight
        print(json.dumps(mean))
        if step + 1 < steps:
            optimizer.step()
    for name, p in named.items():
        print(json.dumps([name, array.array("d", p.grad.flatten().tolist()).tobytes().hex()]))


def check(options, folder, case):
    name, text, schedules = case
    folder_of = HERE if name == "operators" else ROOT / "examples/models"
    source = folder_of / f"{name}.py"
    lines, failed = [], 0

    def say(good, line):
        nonlocal failed
        failed += not good
        lines.append(f"{'ok  ' if good else 'FAIL'} {name} {text}: {line}")

    package = folder / "package"
    drops = "dropout" in text
    tied = name == "llama" or "tied=True" in text
    tied |= name == "bert" and "tied=False" not in text
    pairs = name == "bert" and "pairs=False" not in text
    mask = ["--mask", MASK] if name == "bert" else []
    mask += ["--pairs", ",".join(map(str, MARKS))] if pairs else []
    output = run_script(
        EXPORT, source, *text.split(),
        f"samples={EXPORTED_SAMPLES}", *of_type("float64"), "-o", package,
        *([] if drops else ["--check"]),
    )  # fmt: skip
    if not drops:
        (folder / "m.mlir").write_text(
            DESCRIPTION.format(folder=package, batches=BATCHES, samples=SAMPLES)
        )
        program = folder / "m.chimera"
        run(options.tools / "chimera-compile", folder / "m.mlir", "-o", program)
        run(
            options.tools / "chimera-run", program, "--data", options.data,
            "--tokens", "bytes", "--sequential", "--steps", STEPS, "--threads", 1, "--quiet",
            "--evaluate-samples", 0, "--load", package / "values.safetensors",
            "--save-gradients", folder / "g", "--log", folder / "log", *mask,
        )  # fmt: skip
        # The two gradients of a tied parameter are added in another order than in
        # PyTorch.
        exact = "autograd's, bit by bit" in output
        exact &= not tied and not pairs
        rows = run_script(
            __file__, "--plain-loop", source, *text.split(),
            "--values", package / "values.safetensors", "--data", options.data,
            "--steps", STEPS,
        ).splitlines()  # fmt: skip
        theirs = [json.loads(row) for row in rows]
        wanted = {n: array.array("d", bytes.fromhex(h)) for n, h in theirs[STEPS:]}
        gradients, each = read_tensors(folder / "g"), losses(folder / "log")
        if exact:
            say(each == theirs[:STEPS], f"losses of {STEPS} steps, to the last bit")
            say(gradients == wanted, "gradients after them, to the last bit")
        else:
            worst = worst_difference(gradients, wanted)
            say(worst <= 1e-10, f"gradients of step {STEPS} differ by {worst:.1e}")
            worst = max(abs(a - b) for a, b in zip(each, theirs[:STEPS], strict=True))
            say(worst <= 1e-10, f"losses of {STEPS} steps differ by {worst:.1e}")
    if not schedules:
        return lines, failed
    stages, copies, variants = schedules
    output = run(
        sys.executable, HERE / "numerics.py", "--tools", options.tools, "--data",
        options.data, "--stages", stages, "--width", copies, "--package", package,
        *mask,
        *(["--tied"] if tied else ["--variants"] if variants else []),
        *(["--gpus"] if options.gpus and (stages == 2 or options.full) else []),
        *(["--full"] if options.full else []),
        *(["--mpirun", options.mpirun] if options.mpirun and (stages == 2 or options.full) else []),
    )  # fmt: skip
    good = sum(line.startswith("ok") for line in output.splitlines())
    say(good > 0, f"{good} comparisons of schedules with one device")
    return lines, failed


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tools", type=pathlib.Path)
    parser.add_argument("--data", type=pathlib.Path, default=ROOT / "LICENSE")
    parser.add_argument("--python", default=PYTHON)
    parser.add_argument("--mpirun", help="also run over MPI")
    parser.add_argument("--gpus", action="store_true", help="also run on software GPUs")
    parser.add_argument("--full", action="store_true", help="more sizes and stages")
    parser.add_argument("--plain-loop", help=argparse.SUPPRESS)
    parser.add_argument("--values", help=argparse.SUPPRESS)
    parser.add_argument("--steps", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--compute", default="float64", help=argparse.SUPPRESS)
    parser.add_argument("--rate", type=float, default=0.5, help=argparse.SUPPRESS)
    parser.add_argument("arguments", nargs="*", help=argparse.SUPPRESS)
    options = parser.parse_intermixed_args()
    if options.plain_loop:
        plain_loop(
            options.plain_loop, options.arguments, options.values, options.data,
            options.steps, options.compute, options.rate,
        )  # fmt: skip
        return
    if restart_with(options.python, "torch", "safetensors"):
        check_each(
            lambda folder, case: check(options, folder, case),
            CASES + (MORE if options.full else []),
        )


if __name__ == "__main__":
    main()
