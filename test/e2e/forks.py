# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls functions and runs scripts that use PyTorch in forks of a process that has loaded
it. Loading PyTorch and what an export needs takes longer than the export of a small
model."""

import importlib.util
import multiprocessing
import multiprocessing.connection
import os
import pathlib
import runpy
import sys
import tempfile
import threading

# The environment variable with the Python that restart_with starts.
RESTARTED = "CHIMERA_TEST_PYTHON"
# Modules that an export loads, and that load most others.
OF_EXPORTS = (
    "safetensors.torch", "sympy", "torch._dynamo", "torch._functorch.aot_autograd",
    "torch._inductor.decomposition", "torch.export._trace",
    "torch.fx.experimental.symbolic_shapes",
)  # fmt: skip


def restart_with(python, *modules, exports=True):
    """Restarts this script with the Python `python`, unless that Python runs it. Returns
    whether this Python has the modules. If not, prints which are missing. The forks have
    the modules in memory and, if `exports`, what an export needs."""
    if os.environ.pop(RESTARTED, None) != str(python) and os.path.exists(python):
        os.environ[RESTARTED] = str(python)
        os.execv(python, [str(python), *sys.argv])
    # The small LibTorch also installs a torch package, but without Python's sympy.
    missing = [name for name in (*modules, "sympy") if not importlib.util.find_spec(name)]
    if missing:
        print(f"skipped: {python} lacks {', '.join(missing)}")
    multiprocessing.set_forkserver_preload([*modules, *(OF_EXPORTS if exports else ())])
    return not missing


def restart_with_torch(python):
    """Restarts this script with the Python `python`, if one is given. The forks have torch
    in memory. Ends the script if this Python lacks torch."""
    if python and not restart_with(python, "torch", exports=False):
        sys.exit(1)


_lock = threading.Lock()


def _call(outputs, function, arguments):
    for number, path in enumerate(outputs, 1):
        with open(path, "w") as file:
            os.dup2(file.fileno(), number)
    function(*arguments)


def call(function, *arguments):
    """Calls `function`, which a module defines, in a fork. Returns the fork's exit status
    and what it wrote to standard output and to standard error."""
    with tempfile.TemporaryDirectory() as folder:
        outputs = [f"{folder}/{name}" for name in ("output", "errors")]
        fork = multiprocessing.get_context("forkserver").Process(
            target=_call, args=(outputs, function, arguments)
        )
        # Both calls look after all forks of this process, so only one thread at a time
        # may make them.
        with _lock:
            fork.start()
        multiprocessing.connection.wait([fork.sentinel])
        with _lock:
            fork.join()
        return fork.exitcode, *(pathlib.Path(path).read_text() for path in outputs)


def _run(words, folder):
    os.chdir(folder)
    sys.argv = words
    sys.path.insert(0, os.path.dirname(words[0]))
    runpy.run_path(words[0], run_name="__main__")


def call_script(script, *arguments, folder="."):
    """Runs the Python file `script` in a fork, in `folder`. Returns the same as call()."""
    return call(_run, [str(word) for word in (script, *arguments)], os.path.abspath(folder))


def run_script(script, *arguments):
    """Runs the Python file `script` in a fork and returns its output. If the script
    fails, raises RuntimeError with its text, as run() of grid.py does."""
    status, output, errors = call_script(script, *arguments)
    if status != 0:
        words = " ".join(map(str, (script, *arguments)))
        raise RuntimeError(f"{words}\nended with {status}:\n{output}{errors}")
    return output
