#!/usr/bin/env python3
# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks the learning rate of each step. Trains a tiny GPT-2 for 1,000 steps under each
schedule of the learning rate. The rates in the log must be equal, to the last bit, to
the rates of a scheduler of transformers, which computes with PyTorch's LambdaLR.

The numbers of a schedule are given once in the description, and once as options of
chimera-run for a program that was compiled with other numbers. Both runs must give the
same weights. Without --full, only schedules with a floor have the second run. Also checks
which options are refused, and that ranks that were started with different options say so.

Prints a line for each comparison and exits non-zero if one fails. Needs a Python with
torch and transformers: that of build/venv."""

import argparse
import json
import pathlib
import subprocess

from exporting import PYTHON, ROOT, check_each, has
from grid import compile_to, run
from job import tcp_environments

STEPS, PEAK, FLOOR = 1000, 3e-4, 2.7e-5
# For each case: the numbers of the schedule, transformers' scheduler, and its
# arguments.
CASES = {
    "constant": ({}, "constant_schedule", {}),
    "constant, warm-up": (
        {"warmup": 130},
        "constant_schedule_with_warmup", {"num_warmup_steps": 130},
    ),
    "linear": (
        {"lr_schedule": "linear", "warmup": 130},
        "linear_schedule_with_warmup",
        {"num_warmup_steps": 130, "num_training_steps": STEPS},
    ),
    "linear, floor": (
        {"lr_schedule": "linear", "warmup": 70, "min_lr": FLOOR},
        "polynomial_decay_schedule_with_warmup",
        {
            "num_warmup_steps": 70, "num_training_steps": STEPS, "lr_end": FLOOR,
            "power": 1.0,
        },
    ),
    "cosine": (
        {"lr_schedule": "cosine"},
        "cosine_schedule_with_warmup",
        {"num_warmup_steps": 0, "num_training_steps": STEPS},
    ),
    "cosine, floor": (
        {"lr_schedule": "cosine", "warmup": 130, "min_lr": FLOOR},
        "cosine_with_min_lr_schedule_with_warmup",
        {"num_warmup_steps": 130, "num_training_steps": STEPS, "min_lr": FLOOR},
    ),
    "wsd": (
        {"lr_schedule": "wsd", "warmup": 130, "decay_steps": 290},
        "wsd_schedule",
        {"num_warmup_steps": 130, "num_training_steps": STEPS, "num_decay_steps": 290},
    ),
    "wsd, floor": (
        {"lr_schedule": "wsd", "warmup": 130, "decay_steps": 290, "min_lr": FLOOR},
        "wsd_schedule",
        {
            "num_warmup_steps": 130, "num_training_steps": STEPS, "num_decay_steps": 290,
            "min_lr_ratio": FLOOR / PEAK,
        },
    ),
    "a part of a cosine": (
        {"lr_schedule": "cosine", "warmup": 130, "lr_steps": 1700},
        "cosine_schedule_with_warmup",
        {"num_warmup_steps": 130, "num_training_steps": 1700},
    ),
    "after the end of a line": (
        {"lr_schedule": "linear", "warmup": 130, "min_lr": FLOOR, "lr_steps": 700},
        "polynomial_decay_schedule_with_warmup",
        {
            "num_warmup_steps": 130, "num_training_steps": 700, "lr_end": FLOOR,
            "power": 1.0,
        },
    ),
}  # fmt: skip
DESCRIPTION = """
chimera.model @m gpt2 layers(1) heads(1) width(4) context(4) vocabulary(256)
chimera.training @t seed({seed}) {clauses}
chimera.pipeline @p of @m with @t stages(2) micro_batches(2) schedule("1f1b")
    weight_type(f64)
"""
# For each refused combination: the clauses, the options, and the error.
REFUSED = [
    ("", "--lr-schedule cosin", "got cosin: did you mean cosine?"),
    ("", "--lr-schedule wsd", "--lr-schedule wsd needs --decay-steps"),
    ("", "--decay-steps 3", "--decay-steps is for the schedule wsd, and this one is "
     "constant"),
    ("", "--min-lr 1e-5", "--min-lr is for a learning rate that falls, and this one is "
     "constant: give --lr-schedule too"),
    ("lr_schedule(cosine)", "--lr-schedule constant --lr-steps 9",
     "--lr-steps is for a learning rate that falls, and this one is constant: give another "
     "--lr-schedule"),
    ("lr_schedule(cosine) min_lr(1e-4)", "--learning-rate 1e-5",
     "expected min_lr to be at most the learning rate of 1e-05, got 0.0001"),
    ("lr_schedule(cosine) lr_steps(20)", "--warmup 21",
     "expected lr_steps of at least 21, the steps of warmup, got 20"),
    ("", "--warmup 0.1", "expected a whole number in [0 - 1099511627776], got 0.1"),
    ("", "--no-decay *wte*",
     "--no-decay: expected each pattern of no_decay to match a parameter, got '*wte*': "
     "names are like layers.0.token_embedding, layers.1."),
    ("", "--no-decay none --no-decay *bias*",
     "--no-decay: expected none alone, got it with other patterns"),
    ("", "--beta1 1", "expected a beta1 in [0, 1), got 1"),
    ("", "--momentum 0.5", "compile the program with optimizer(sgd) momentum(…)"),
    ("optimizer(sgd)", "--beta2 0.5", "--beta2 is for adamw and muon, and the program has sgd"),
    ("", "--stages exact --weight-decay 0.5",
     "--weight-decay is for model stages"),
]  # fmt: skip


def rates_of_transformers():
    """Prints the rates of each case, as JSON."""
    import torch
    import transformers.optimization

    rates = {}
    for case, (_, name, arguments) in CASES.items():
        parameter = torch.nn.Parameter(torch.zeros(1))
        parameter.grad = torch.zeros(1)
        optimizer = torch.optim.SGD([parameter], lr=PEAK)
        schedule = getattr(transformers.optimization, f"get_{name}")(
            optimizer, **arguments
        )
        rates[case] = []
        for _ in range(STEPS):
            rates[case].append(optimizer.param_groups[0]["lr"])
            optimizer.step()
            schedule.step()
    # PyTorch's own scheduler computes each rate from the one before, so it rounds
    # differently.
    optimizer = torch.optim.SGD([parameter], lr=PEAK)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=STEPS)
    for rate in rates["cosine"]:
        assert abs(optimizer.param_groups[0]["lr"] - rate) <= 1e-12 * PEAK
        optimizer.step()
        schedule.step()
    print(json.dumps(rates))


def compile_one(options, file, clauses, seed=7):
    program = file.with_suffix(".chimera")
    compile_to(options.tools, DESCRIPTION.format(seed=seed, clauses=clauses), program)
    return program


def train(options, program, log, *arguments):
    """Trains. Returns the rates in the log, and the digest of the weights."""
    run(
        options.tools / "chimera-run", program, "--data", options.data, "--steps",
        STEPS, "--threads", 1, "--quiet", "--evaluate-samples", 0, "--log", log,
        *arguments,
    )  # fmt: skip
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    digest = lines.pop()["summary"]["weights_digest"]
    return [line["learning_rate"] for line in lines], digest


def check(options, folder, case, theirs):
    numbers, name, _ = CASES[case]
    numbers = {"learning_rate": PEAK, **numbers}
    clauses = " ".join(f"{key}({value})" for key, value in numbers.items())
    ours, digest = train(
        options, compile_one(options, folder / "a", clauses), folder / "a.log"
    )
    different = [step for step in range(STEPS) if ours[step] != theirs[step]]
    lines = [
        f"{'FAIL' if different else 'ok  '} {case}: {len(different)} of {STEPS} rates "
        f"differ from get_{name}"
    ]
    for step in different[:1]:
        lines.append(f"     step {step}: expected {theirs[step]!r}, got {ours[step]!r}")

    if "min_lr" not in numbers and not options.full:
        return lines, len(different[:1])
    # Options replace all numbers of another program.
    numbers = {"lr_schedule": "constant", "warmup": 0, **numbers}
    if numbers["lr_schedule"] != "constant":
        numbers.setdefault("min_lr", 0)
    given = ["--seed", 7]
    for key, value in numbers.items():
        given += ["--" + key.replace("_", "-"), value]
    other = compile_one(
        options, folder / "b",
        "lr_schedule(wsd) warmup(3) decay_steps(5) min_lr(1e-7)", seed=8,
    )  # fmt: skip
    same = train(options, other, folder / "b.log", *given) == (ours, digest)
    lines.append(f"{'ok  ' if same else 'FAIL'} {case}: the same numbers as options")
    return lines, len(different[:1]) + (not same)


def check_refused(options, folder):
    lines, failed = [], 0
    for clauses, arguments, expected in REFUSED:
        program = compile_one(options, folder / "refused", clauses)
        command = [options.tools / "chimera-run", program, *arguments.split()]
        if "exact" not in command:
            command += ["--data", options.data]
        result = subprocess.run(command, capture_output=True, text=True)
        good = result.returncode == 1 and expected in result.stderr
        failed += not good
        lines.append(f"{'ok  ' if good else 'FAIL'} {clauses} {arguments} is refused")
        if not good:
            lines.append(result.stderr)
    return lines, failed


def check_disagreement(options, folder):
    """Starts two ranks with different options."""
    program = compile_one(options, folder / "ranks", "")
    ranks = [
        subprocess.Popen(
            [
                options.tools / "chimera-run", program, "--data", options.data,
                "--learning-rate", rate,
            ],
            env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )
        for environment, rate in zip(tcp_environments(2, by_hand=True), ("1e-3", "2e-3"))
    ]  # fmt: skip
    errors = "".join(rank.communicate()[1] for rank in ranks)
    good = "expected the same --learning-rate at every rank, but rank 1" in errors
    lines = [f"{'ok  ' if good else 'FAIL'} ranks with different options say so"]
    return lines + ([] if good else [errors]), not good


def check_notes(options, folder):
    """A run that is shorter than its warm-up says so, and trains."""
    program = compile_one(options, folder / "short", "lr_schedule(cosine) warmup(100)")
    output = run(
        options.tools / "chimera-run", program, "--data", options.data, "--steps", 5
    )
    expected = (
        "the learning rate does not reach its peak: the warm-up has 100 steps, the run "
        "has 5\n"
    )
    good = expected in output and "step 5/5" in output and "lr 4.00e-05" in output
    lines = [f"{'ok  ' if good else 'FAIL'} a run that is shorter than its warm-up"]
    return lines + ([] if good else [output]), not good


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tools", type=pathlib.Path)
    parser.add_argument("--data", type=pathlib.Path, default=ROOT / "LICENSE")
    parser.add_argument("--python", default=PYTHON)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--rates", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.rates:
        return rates_of_transformers()
    if not has(options.python, "torch", "transformers"):
        return None
    theirs = json.loads(run(options.python, __file__, "--rates"))
    others = {
        "refused": check_refused,
        "disagreement": check_disagreement,
        "notes": check_notes,
    }

    def one(folder, case):
        if case in others:
            return others[case](options, folder)
        return check(options, folder, case, theirs[case])

    check_each(one, [*CASES, *others])
    return None


if __name__ == "__main__":
    main()
