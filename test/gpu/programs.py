#!/usr/bin/env python3
# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles the programs that run on GPUs, so that no compiler is needed on the machine
with the GPU. These are all schemes of the registry with their options, proven for the
order in which a GPU communicates. Each program comes with the expected digest of its
weights. One device computes the digest with exact stages, whose numbers are
integers."""

import argparse
import array
import contextlib
import json
import pathlib
import re
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
import grid  # noqa: E402

DIGEST = re.compile(r"digest of the weights (\w+)")
STEPS = 3
# The schedules use these options in turn.
OPTIONS = (
    "",
    "split_backward",
    "recompute(all)",
    "all_reduce(eager_opt) bucket_bytes(24)",
    "recompute([0]) split_backward all_reduce(eager)",
)


def descriptions():
    """Yields (name, description, number of ranks) of the programs with exact stages."""
    number = 0
    for stages in (2, 4):
        for scheme, schedule, workers in grid.schedules(stages):
            options = OPTIONS[number % len(OPTIONS)]
            # Use two copies if there are then at most four ranks.
            width = 2 if workers <= 2 and number % 2 else 1
            batches = 2 * stages + number % 2
            if not grid.accepts(scheme, workers, batches):
                batches = 2 * stages
            tied = number % 3 == 1 and scheme not in grid.WITHOUT_FLUSH
            model = grid.tied_model(stages) if tied else ""
            of, size = ("of @m ", "micro_batch_size(2)") if tied else ("", "")
            yield f"{number:02}-{scheme}", (
                f"{model}chimera.pipeline @p {of}stages({stages}) "
                f"micro_batches({batches}) {schedule} "
                f"data_parallel({width}) {size} {options}\n"
            ), workers * width
            number += 1


def models():
    """Yields (name, description, number of ranks) of programs with models that train on
    text."""
    for number, (stages, schedule, context, dropout, more) in enumerate((
        (2, '"chimera"', 64, 0, ""),
        (2, '"1f1b"', 64, 0, "split_backward"),
        (4, '"chimera"', 64, 0.1, "recompute(all)"),
        (4, '"gpipe"', 200, 0.1, ""),
        (2, '"1f1b"', 64, 0, f"recompute([0]) {grid.COPIED}"),
        (2, '"1f1b"', 200, 0.1, grid.COPIED),
    )):  # fmt: skip
        tied = "tied" if more else ""
        yield f"gpt2-{number}", (
            f"chimera.model @m gpt2 layers(4) heads(4) width(128) context({context}) "
            f"vocabulary(256) dropout({dropout}) {tied}\n"
            f"chimera.pipeline @p of @m stages({stages}) micro_batches({2 * stages}) "
            f"schedule({schedule}) micro_batch_size(4) {more}\n"
        ), stages


def exported():
    """Yields (name, description, number of ranks) of programs with exported models that
    train on small tokens. The packages are those of the runtime's tests, and have float32
    and bfloat16."""
    for number, (name, stages, schedule, more) in enumerate((
        ("llama", 2, '"1f1b"', "split_backward"),
        ("llama", 2, '"chimera"', grid.COPIED),
        ("llama", 2, '"chimera"', "weight_type(bf16)"),
        ("gpt2", 4, '"chimera"', "recompute(all)"),
        ("convolution", 2, '"gpipe"', ""),
        ("many-classes", 2, '"1f1b"', ""),
        ("many-classes", 2, '"1f1b"', f"split_backward {grid.COPIED}"),
    )):  # fmt: skip
        yield f"exported-{number}-{name}", (
            f'chimera.model @m exported("{name}")\n'
            "chimera.training @t learning_rate(1.0e-2) clip_norm(1.0)\n"
            f"chimera.pipeline @p of @m with @t stages({stages}) "
            f"micro_batches({2 * stages}) schedule({schedule}) micro_batch_size(4) {more}\n"
        ), stages


GPT2 = {
    "GPT-2 124M": "layers(12) heads(12) width(768) context(1024) vocabulary(50257) tied",
    "GPT-2 350M": "layers(24) heads(16) width(1024) context(1024) vocabulary(50257) tied",
    # A small model, to try table.py on the host.
    "tiny": "layers(2) heads(2) width(16) context(8) vocabulary(256) tied",
}


def timed():
    """Yields (name, description, number of ranks, model) of the programs that table.py
    times. For each model: two stages in both types, with and without dropout, and a
    step on one rank."""
    for number, (model, sizes) in enumerate(GPT2.items()):
        for types in ("", "activation_type(bf16)"):
            for stages, batches, name in (
                (2, 2, "stages"), (2, 2, "dropout"), (1, 4, "step"),
            ):  # fmt: skip
                dropout = "dropout(0.1)" if name == "dropout" else ""
                yield f"timed-{number}-{name}-{len(types)}", (
                    f"chimera.model @m gpt2 {sizes} {dropout}\n"
                    f"chimera.pipeline @p of @m stages({stages}) "
                    f'micro_batches({batches}) schedule("1f1b") '
                    f"micro_batch_size(4) {types}\n"
                ), stages, model
    # A program with many instructions that compute almost nothing.
    yield "timed-instructions", (
        f"chimera.model @m gpt2 {GPT2['tiny']}\n"
        'chimera.pipeline @p of @m stages(2) micro_batches(64) schedule("1f1b") '
        "micro_batch_size(1)\n"
    ), 2, "instructions"


def predicted():
    """Yields (name, description, number of ranks, model, type, whether it is profiled)
    of programs of one rank. In the programs to profile, each layer is a stage,
    including embedding and head. The others are plans, whose steps plans.py
    predicts."""
    clauses = {"float32": "", "bfloat16": "activation_type(bf16)"}
    for model, types, sizes in (
        ("GPT-2 124M", ("float32", "bfloat16"), (1, 2, 4, 8)),
        ("tiny", ("float32",), (1, 2)),
    ):
        layers = int(re.search(r"layers\((\d+)\)", GPT2[model])[1])
        pipeline = f"chimera.model @m gpt2 {GPT2[model]}\nchimera.pipeline @p of @m "
        for type_ in types:
            clause, kind = clauses[type_], f"{model.split()[-1]}-{type_}"
            for size in (sizes[0], sizes[-1]):
                yield f"profiled-{kind}-{size}", (
                    f"{pipeline}stages({layers + 2}) micro_batches(2) workers(1) "
                    f'schedule("interleaved-1f1b") micro_batch_size({size}) {clause}\n'
                ), 1, model, type_, True
            for size in sizes:
                for name, schedule in (
                    ("plan", 'schedule("1f1b")'),
                    ("recompute", 'schedule("gpipe") recompute(all)'),
                ):
                    yield f"{name}-{kind}-{size}", (
                        f"{pipeline}stages(1) micro_batches({2 * sizes[-1] // size}) "
                        f"{schedule} micro_batch_size({size}) {clause}\n"
                    ), 1, model, type_, False


@contextlib.contextmanager
def copied_packages(folder):
    """While it lives, `folder` has the packages of the runtime's tests."""
    inputs = pathlib.Path(__file__).resolve().parents[1] / "runtime/model/graph/Inputs"
    made = []
    for file in inputs.glob("*.json"):
        made.append(folder / file.stem)
        made[-1].mkdir(exist_ok=True)  # it is left over if a run was killed
        shutil.copy(file, made[-1] / "model.json")
    try:
        yield
    finally:
        for each in made:
            shutil.rmtree(each)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tools", type=pathlib.Path, required=True)
    parser.add_argument("--to", type=pathlib.Path, required=True, help="a folder")
    options = parser.parse_args()
    options.to.mkdir(parents=True, exist_ok=True)

    def compiled(case):
        name, description, ranks = case
        program = options.to / f"{name}.chimera"
        # fmt: off
        grid.compile_to(options.tools, description, program,
                        "--messages", "stream-per-device")
        # fmt: on
        program.with_suffix(".mlir").unlink()
        return {"program": program.name, "description": description, "ranks": ranks}

    def one(case):
        try:
            made = compiled(case)
            program = options.to / made["program"]
            # fmt: off
            text = grid.run(options.tools / "chimera-run", program, "--stages",
                            "exact", "--steps", STEPS, "--sequential")
            # fmt: on
        except RuntimeError as error:
            raise RuntimeError(f"{case[1]}{error}") from None
        return made | {"steps": STEPS, "digest": DIGEST.search(text)[1]}

    every = list(grid.in_parallel(one, descriptions()))
    (options.to / "programs.json").write_text(json.dumps(every, indent=1))
    # `most` is the largest difference that the numbers on GPUs and on the host may
    # have.
    with copied_packages(options.to):
        trained = [
            compiled(case)
            | {"most": 1e-2 if "bf16" in case[1] else 1e-4}
            | {"data": data, "tokens": tokens}
            for cases, data, tokens in ((models(), "text", "bytes"),
                                        (exported(), "numbers", "uint16"))
            for case in cases
        ]  # fmt: skip
    (options.to / "models.json").write_text(json.dumps(trained, indent=1))
    table = [
        compiled(case[:3]) | {"model": case[3], "sizes": grid.gpt2_sizes(case[1])}
        for case in timed()
    ]
    for each in table:
        # stage_times_pytorch.py must build these stages. The machine that reads the
        # file has no compiler to list them.
        dump = json.loads(
            grid.run(options.tools / "chimera-translate", "--program-to-json",
                     options.to / each["program"])
        )  # fmt: skip
        each["micro_batches"] = dump["micro_batches"]
        each["micro_batch_size"] = dump["micro_batch_size"]
        each["type"] = dump["activation_type"]
        each["stages"] = [
            {key: stage[key] for key in ("first_layer", "layers")}
            for stage in dump["stages"]
        ]
    (options.to / "table.json").write_text(json.dumps(table, indent=1))
    plans = [
        compiled(case[:3]) | dict(zip(("model", "type", "is_profiled"), case[3:]))
        for case in predicted()
    ]
    (options.to / "plans.json").write_text(json.dumps(plans, indent=1))
    root = pathlib.Path(__file__).resolve().parent.parent.parent
    text = (root / "dialect" / "Chimera.md").read_bytes()
    longest = max(int(size) for model in GPT2.values()
                  for size in re.findall(r"context\((\d+)\)", model))  # fmt: skip
    if len(text) < 20 * longest:
        sys.exit(f"expected a text of {20 * longest} bytes, got {len(text)}")
    (options.to / "text").write_bytes(text)
    numbers = array.array("H", (byte % 16 for byte in text))
    (options.to / "numbers").write_bytes(numbers.tobytes())
    count = len(every) + len(trained) + len(table) + len(plans)
    print(f"{count} programs are in {options.to}")


if __name__ == "__main__":
    main()
