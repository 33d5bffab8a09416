# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The results of chimera-opt for the paper's configurations."""

import json
import pathlib
import subprocess
import sys
import tempfile

import costs
import paper

# The mini-batches of Fig. 9, which the paper does not give. Only GPipe's memory
# depends on them, because it holds N micro-batches.
MINI_BATCH_9 = {"BERT-48": 1024, "GPT-2 (32 layers)": 64}


class Simulator:
    """The results of chimera-opt for configurations, each simulated once."""

    def __init__(self, tools, constants):
        self.tool = tools / "chimera-opt"
        self.constants = constants
        self.reports = {}

    def run(self, bars):
        bars = {bar.configuration for bar in bars} - self.reports.keys()
        if not bars:
            return
        bars = sorted(bars, key=lambda bar: bar.name)
        with tempfile.TemporaryDirectory() as name:
            source = pathlib.Path(name, "paper.mlir")
            output = pathlib.Path(name, "report")
            source.write_text(
                "".join(
                    costs.describe(self.constants, bar, f"p{index}")
                    for index, bar in enumerate(bars)
                )
            )
            command = [
                self.tool, source, "--verify-each=0", "--chimera-to-scheduled",
                f"--chimera-report=costs=stages format=json output={output}",
                "-o", "/dev/null",
            ]  # fmt: skip
            result = subprocess.run(
                command, capture_output=True, text=True, check=False
            )
            if result.returncode != 0:
                sys.exit(result.stderr)
            self.reports.update(zip(bars, json.loads(output.read_text())))

    def throughput(self, bar):
        """Sequences per second."""
        self.run([bar])
        return bar.mini_batch / (self.reports[bar.configuration]["step"] * 1e-9)

    def memory(self, bar):
        """The peak bytes of each worker."""
        self.run([bar])
        peaks = self.reports[bar.configuration]["peak_bytes"]
        return [peak + self.constants.reserved for peak in peaks]


def error(ours, measured):
    """The error in percent."""
    return 100 * (ours / measured - 1)


def distinct(bars):
    """Each configuration once. If several figures show it, the first one's
    measurement counts."""
    first = {}
    for bar in bars:
        first.setdefault(bar.configuration, bar)
    return list(first.values())


def figure_9():
    """(bar, most and least GB or None)."""
    for model, width, depth, batch, values in paper.FIGURE_9:
        for scheme, gigabytes in zip(paper.SCHEMES_9, values):
            bar = paper.bar(
                "Fig. 9", model, scheme, width, depth, batch,
                MINI_BATCH_9[model.name], gigabytes and 0.0,
            )  # fmt: skip
            yield bar, gigabytes
