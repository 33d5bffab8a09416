# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The answers of chimera-plan for the paper's models and machine.

The planner cuts layers into stages itself. The machine depends on the code: Chimera's
sums gradients in several buckets at a time. So the planner is asked twice, once about
Chimera's schedules and once about the others.
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import time

import costs
import paper

# (model, nodes, mini-batch), as in the paper's weak scaling.
QUESTIONS = (
    (paper.BERT, 32, 512),
    (paper.GPT2, 512, 512),
    (paper.GPT2, 2048, 2048),
)
FLUSH = ("Chimera", "GPipe", "DAPPLE", "GEMS")
SCHEDULES = ("gpipe", "1f1b", "gems", "interleaved-1f1b", "zb-v")  # besides Chimera's


def describe(constants, model, nodes, bucketed):
    """A bare model. The first layer includes the embedding, and the last one the head,
    whose operations are counted at the layers' speed, because the machine has only
    one."""
    tokens = model.sequence * model.width
    scores = model.heads * model.sequence**2
    kept = tokens * costs.TOKEN_BYTES + scores * constants.score_bytes
    head = costs.head_operations(model) * constants.speed / constants.head_speed
    logits = costs.predictions(model) * model.vocabulary * costs.LOGITS_BYTES

    def layer(count, operations=0.0, parameters=0, stash=0):
        forward = round(costs.layer_operations(model) + operations)
        return (
            f"<count = {count}, forward = {forward},"
            f" parameters = {model.layer_parameters + parameters},"
            f" stash = {round(kept + stash)}, boundary = {tokens * costs.VALUE}>"
        )

    layers = ",\n  ".join(
        (
            layer(1, parameters=model.embedding_parameters),
            layer(model.layers - 2),
            layer(1, head, model.head_parameters, logits),
        )
    )
    return (
        f"chimera.model @model bare [\n  {layers}]\n"
        + costs.machine(constants, nodes, bucketed, "daint")
    )


class Planner:
    def __init__(self, tools, constants, model, nodes, mini_batch):
        self.command = [tools / "chimera-plan", "-", "--batch", mini_batch]
        self.texts = {
            bucketed: describe(constants, model, nodes, bucketed)
            for bucketed in (False, True)
        }
        self.mini_batch = mini_batch

    def best(self):
        """The fastest of all plans."""
        others = ",".join(SCHEDULES)
        return min(
            self.ask("chimera")[:1] + self.ask(others)[:1],
            key=lambda plan: plan["step"],
        )

    def ask(self, schedules, *options):
        """The plans of the answer, or an empty list."""
        text = self.texts[schedules == "chimera"]
        with tempfile.TemporaryDirectory() as name:
            output = pathlib.Path(name, "plans.json")
            words = [*self.command, "--schedule", schedules, "--json", output, *options]
            result = subprocess.run(
                list(map(str, words)), input=text, capture_output=True,
                text=True, check=False,
            )  # fmt: skip
            # The file is written even if no plan is possible.
            if not output.exists():
                sys.exit(result.stderr)
            return json.loads(output.read_text())["plans"]

    def throughput(self, plan):
        return self.mini_batch / (plan["step"] * 1e-9)

    def measured(self, bar):
        """The plan that the paper measured, or None if it does not fit."""
        schedule = "chimera" if bar.scheme == "Chimera" else costs.SCHEDULES[bar.scheme]
        expected = {}
        if bar.scheme == "Chimera":
            expected = {
                "pipelines": bar.pipelines,
                "concatenation": costs.CONCATENATIONS[bar.concatenation],
            }
        plans = self.ask(
            schedule, "--workers", bar.depth,
            "--micro-batch-size", bar.batch, "--stages-per-worker", 1,
            "--split-backward", "no", "--top", 100,
            "--recompute", "fused" if bar.recompute else "none",
        )  # fmt: skip
        alike = [plan for plan in plans if plan["options"] == expected]
        # If two settings give the same schedule, the table has the first one.
        return (alike or plans or [None])[0]


def name(plan):
    words = [plan["schedule"]]
    words += [f"{key} {value}" for key, value in plan["options"].items()]
    words += [
        f"W{plan['data_parallel']}", f"D{plan['workers']}",
        f"B{plan['micro_batch_size']}", f"N{plan['micro_batches']}",
    ]  # fmt: skip
    if plan["stages"] != plan["workers"]:
        words.append(f"{plan['stages']} stages")
    if plan["split_backward"]:
        words.append("split")
    if recomputed := sum(how != "none" for how in plan["recompute"]):
        words.append(f"R {recomputed}")
    return " ".join(words)


def judge(tools, constants, bars):
    """Prints the picks among the measured plans and among all. Returns the largest
    loss, in percent, of a pick against the best measured plan, and the longest time of
    an answer, in seconds."""
    print(
        "\n## What the planner answers\n\n"
        "| model | nodes | of the measured it picks | paper | best | | of all plans "
        "| ours, to the pick | seconds |\n|---|---|---|---|---|---|---|---|---|"
    )
    worst = slowest = 0.0
    for model, nodes, mini_batch in QUESTIONS:
        planner = Planner(tools, constants, model, nodes, mini_batch)
        begin = time.perf_counter()
        answer = planner.best()
        seconds = time.perf_counter() - begin
        slowest = max(slowest, seconds)
        known = []
        for bar in bars:
            if (bar.model, bar.nodes, bar.mini_batch) != (model, nodes, mini_batch):
                continue
            if bar.scheme in FLUSH and bar.measured is not None:
                if plan := planner.measured(bar):
                    known.append((planner.throughput(plan), bar))
        ours, pick = max(known, key=lambda pair: pair[0])
        best = max((bar for _, bar in known), key=lambda bar: bar.measured)
        loss = 100 * (pick.measured / best.measured - 1)
        worst = max(worst, -loss)
        better = 100 * (planner.throughput(answer) / ours - 1)
        print(
            f"| {model.name} | {nodes} | {pick.label} W{pick.width} D{pick.depth} "
            f"B{pick.batch}{' R' * pick.recompute} | {pick.measured:g} "
            f"| {best.measured:g} | {loss:+.1f} % | {name(answer)} "
            f"| {better:+.1f} % | {seconds:.1f} |"
        )
    return worst, slowest
