#!/usr/bin/env python3
# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exports the small modules of modules.py, loss_modules.py, refused_modules.py and
refused_losses.py, and modules that call the operators of operators.py, as a user does.
An exported module must compute what autograd computes (--check). If a module is
refused, the output must give the reason in one line, without a traceback. The checks
are in three parts, which can run at the same time.

Exports some groups of operators. With --full, exports all groups, and each operator that
the runtime knows must be called by one of them or by a package of the runtime's tests.
--full also exports each module without fault a second time, with --no-values. Needs a
Python with torch: that of build/venv, unless another Python runs this script."""

import argparse
import importlib
import os
import pathlib
import re
import sys
import tempfile

from exporting import PYTHON, ROOT, check_each, of_type
from forks import OF_EXPORTS, restart_with
from loss_modules import LOSSES, REMEDIES
from modules import (
    ALSO_READS, CASES, CHECKPOINTED, EVAL, EXACT, GOOD, NOTED, READS, START, WARNED,
)  # fmt: skip
from refused_losses import REFUSED_LOSSES
from refused_modules import REFUSED

HERE = pathlib.Path(__file__).resolve().parent
# The name of a case that exports a group of operators.py.
OPERATORS = "operators of"
# The groups without --full.
SHORT = ("activations", "dropout", "mixed")


def export_as(command, folder, *calls):
    """Runs chimera-export with the arguments of each call in a forked child of this
    process, which has PyTorch in memory, until a call fails. Returns the status of the
    last call that was run, and the output of all."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        status = 1
        with open(folder / "output", "w") as output:
            os.dup2(output.fileno(), 1)
            os.dup2(output.fileno(), 2)
            # New objects: another thread, which does not exist here, may have been
            # printing and have the locks of the old ones.
            sys.stdout = open(1, "w", closefd=False)
            sys.stderr = open(2, "w", buffering=1, closefd=False)
            try:
                for arguments in calls:
                    sys.argv = arguments
                    status = command.main()
                    if status != 0:
                        break
            finally:
                sys.stdout.flush()
                os._exit(status)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return status, (folder / "output").read_text()


def export(command, folder, *options, source=None, again=None):
    """Exports in float64 to the folder `package` and, if this succeeds, a second time
    with the options `again`, if there are some. Returns the same as export_as."""
    source = source or str(folder / "source.py")
    start = ["chimera-export", source, *of_type("float64"), "-o", str(folder / "package")]
    calls = [[*start, *options]] + ([[*start, *again]] if again else [])
    return export_as(command, folder, *calls)


def operators_of(package):
    """The operators that a package calls."""
    return set(re.findall(r'"operator": ?"([^"]+)"', package.read_text()))


def unused_operators(seen):
    """Checks that each operator that packages may call is called by some package: of
    this test, or of the runtime's tests."""
    for package in (ROOT / "test/runtime/model/graph/Inputs").glob("*.json"):
        seen |= operators_of(package)
    text = (ROOT / "runtime/model/graph/operators.txt").read_text()
    listed = {line for line in text.splitlines() if line.startswith(("aten::", "chimera::"))}
    unused = sorted(listed - seen)
    lines = [f"{'FAIL' if unused else 'ok  '} each operator is called by a package"]
    return lines + unused, len(unused)


def written_files(command):
    """Checks that either all files of a package are written or none, that a link stays
    a link, and that other files stay."""
    lines = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "source.py").write_text(START + "def make(): return model(Net())")
        package = folder / "package"
        (package / "native").mkdir(parents=True)
        (package / "native/other.pt2").touch()
        (package / "model.json").symlink_to("../linked.json")
        status, output = export(command, folder)
        good = status == 0 and (package / "native/other.pt2").exists()
        good = good and (package / "model.json").is_symlink()
        good = good and (folder / "linked.json").stat().st_size > 1000
        mode = (package / "values.safetensors").stat().st_mode if good else 0
        good = good and mode == (folder / "source.py").stat().st_mode
        lines += [f"{'ok  ' if good else 'FAIL'} files of a package, by a link", output]
        # The values are written first. Here writing them fails, because the folder of
        # the link's target does not exist.
        (package / "model.json").unlink()
        (package / "values.safetensors").unlink()
        (package / "values.safetensors").symlink_to("nothing/values")
        status, output = export(command, folder)
        good = status == 1 and "Traceback" not in output
        good = good and not [*folder.rglob("*.part"), *package.glob("model.json")]
        lines += [f"{'ok  ' if good else 'FAIL'} all files of a package or none", output]
    return lines, sum(line.startswith("FAIL") for line in lines)


def verbose_refusal(command):
    """Checks that with --verbose a refusal has a traceback before its line."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "source.py").write_text(START + "def make(): return Net()")
        status, output = export(command, folder, "--verbose")
    good = status == 1 and "Traceback" in output
    good = good and output.splitlines()[-1].startswith("chimera-export: ")
    return [f"{'ok  ' if good else 'FAIL'} a refusal with a traceback", output], int(not good)


def frames_of_errors(command):
    """Checks that an error of PyTorch has a traceback with the user's frames only, or
    with all frames if --verbose is given."""
    lines = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "source.py").write_text(
            START + "def make(): return model(Net(lambda: nn.Linear(C + 1, C)))"
        )
        for options in ([], ["--no-values"], ["--verbose"]):
            status, output = export(command, folder, *options)
            good = status == 1 and "    x = block(x)\n" in output
            good = good and "chimera-export: RuntimeError while exporting " in output
            for frames in ("/chimera_export/", "/torch/"):
                good = good and (frames in output) == ("--verbose" in options)
            lines += [f"{'ok  ' if good else 'FAIL'} frames of an error {options}", output]
    return lines, sum(line.startswith("FAIL") for line in lines)


# Sources that are exported with --no-values, each with a part of the output. The last
# one computes initial values that a run cannot draw: it is exported, and a note names the
# parameters. The others need values of parameters, so they are refused.
WITHOUT_VALUES = [
    (
        "reads values",
        """
def make():
    net = Net()
    if net.head.weight.sum() > 0:
        net.head.bias.data.fill_(1)
    return model(net)
""",
        "reads values of parameters: leave out --no-values",
    ),
    (
        "compares values",
        """
def make():
    net = Net()
    if torch.equal(net.head.weight, net.embedding.weight):
        net.head.bias.data.fill_(1)
    return model(net)
""",
        "reads values of parameters (aten.equal.default): leave out --no-values",
    ),
    (
        "writes values into another tensor",
        """
KEPT = torch.zeros(16, C)
def make():
    net = Net()
    KEPT.copy_(net.embedding.weight.data)
    return model(net)
""",
        "writes values of parameters into another tensor (aten::copy_): leave out --no-values",
    ),
    (
        "computes values",
        """
def make():
    net = Net()
    nn.init.orthogonal_(net.head.weight)
    return model(net)
""",
        "a run cannot draw the initial values of some parameters: start it with --load",
    ),
]


def without_values(command):
    """Checks that code that needs values is refused with --no-values, and that values
    that a run cannot draw are named."""
    lines = []
    for what, source, text in WITHOUT_VALUES:
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "source.py").write_text(START + source)
            status, output = export(command, folder, "--no-values")
            is_exported = (folder / "package/model.json").exists()
        good = text in output and "Traceback" not in output
        good = good and (status == 0) == is_exported == (what == "computes values")
        lines += [f"{'ok  ' if good else 'FAIL'} code that {what}", output]
    return lines, sum(line.startswith("FAIL") for line in lines)


def no_waits(command):
    """Checks that a package has no call for which a host waits for its GPU, if `where`
    does the same, and that it computes the same bits as autograd."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "source.py").write_text(
            START
            + """
class Masked(Block):
    def forward(self, x):
        y = super().forward(x)
        y = y.masked_fill(x > 0.5, torch.tensor(0.25)).permute(2, 0, 1)
        y[:, x[..., 0] > 0] = 0.5
        z = torch.tanh(x).permute(2, 0, 1)
        z = z.masked_fill((x > 0.7).permute(2, 0, 1), torch.tensor(0.75))
        y = (y + z).permute(1, 2, 0).clone()
        y[x[..., 1] > 0] = 1
        y[x > 1] = 2
        return y
def make(): return model(Net(Masked))
"""
        )
        status, output = export(command, folder, "--check")
        good = status == 0 and GOOD in output
        if good:
            package = folder / "package/model.json"
            called = operators_of(package)
            good = "aten::where" in called and "aten::index_put" not in called
            fills = r'"operator": ?"aten::masked_fill",\s*"overload": ?"(\w+)"'
            good = good and set(re.findall(fills, package.read_text())) == {"Scalar"}
            output += f"called: {sorted(called)}"
    return [f"{'ok  ' if good else 'FAIL'} no call waits for a GPU", output], int(not good)


def check(command, seen, full, folder, case):
    name, text, wanted, *options = case
    if name == OPERATORS:
        source = f"{HERE / 'operators.py'}"
        # One group converts to float16, and another one mixes samples.
        wanted = wanted if text not in ("math", "mixed") else WARNED
        # With dropout no comparison is possible, because autograd draws other numbers.
        options = [] if text == "dropout" else ["--check"]
        status, output = export(command, folder, *options, f"group={text}", source=source)
    else:
        (folder / "source.py").write_text(START + text)
        # With --no-values the exporter must make the same layers. The loss makes no
        # difference to that. Two calls in one process take less time.
        same = wanted == GOOD and case in CASES and (full or case == CASES[0])
        status, output = export(
            command, folder, "--check", *options, again=["--no-values"] if same else None
        )
    package = folder / "package/model.json"
    if status == 0:
        seen |= operators_of(package)
    is_exported = name == OPERATORS or wanted.startswith(
        (GOOD, EVAL, EXACT, CHECKPOINTED, NOTED, WARNED)
    )
    is_noted = is_exported and name != OPERATORS
    good = (
        wanted in output
        and "Traceback" not in output
        and "def forward(self, arg0_1" not in output  # a graph of PyTorch's
        and (status == 0) == is_exported
        and (not is_exported or (WARNED in output) == wanted.startswith(WARNED))
        and (not is_noted or (READS in output) == (wanted == READS or name in ALSO_READS))
        and all(remedy in output for fault, remedy in REMEDIES.items() if fault in output)
        and package.exists() == is_exported
    )
    name = f"{name} {text}" if name == OPERATORS else name
    lines = [f"ok   {name}"] if good else [f"FAIL {name}", output]
    return lines, int(not good)


def inside(part, full):
    sys.path[:0] = [str(ROOT / "tools/export"), str(HERE)]
    import operators
    from chimera_export import command

    # The forks have these modules in memory.
    for name in OF_EXPORTS:
        importlib.import_module(name)
    groups = [
        (OPERATORS, group, "layers of" if group == "dropout" else GOOD)
        for group in (operators.GROUPS if full else SHORT)
    ]
    # The cases of each part, and what it checks after them.
    cases, others = {
        "modules": ([*groups, *CASES], []),
        "losses": (LOSSES, [no_waits, without_values]),
        "refused": (
            [*REFUSED, *REFUSED_LOSSES], [written_files, verbose_refusal, frames_of_errors]
        ),
    }[part]  # fmt: skip
    seen = set()

    def at_end():
        results = [other(command) for other in others]
        if part == "modules" and full:
            results.append(unused_operators(seen))
        return [line for lines, _ in results for line in lines], sum(n for _, n in results)

    check_each(
        lambda folder, case: check(command, seen, full, folder, case), cases, at_end
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=["modules", "losses", "refused"])
    parser.add_argument("--python", default=PYTHON)
    parser.add_argument("--full", action="store_true")
    options = parser.parse_args()
    if restart_with(options.python, "torch", "safetensors"):
        inside(options.part, options.full)


if __name__ == "__main__":
    main()
