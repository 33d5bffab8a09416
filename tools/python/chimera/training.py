# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trains with a program."""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence

import chimera_launch

from chimera import tools

_PAUSE = 0.01  # seconds between two looks at the log


@dataclasses.dataclass(frozen=True)
class TrainingStep:
    """What a run says of a step: a line of chimera-run's log.

    loss: mean over the labels of the step. None if an exact or synthetic stage computes
        no loss.
    tokens_per_second: None for data that are not tokens.
    seconds: since the first step began.
    numbers: the whole line, by name.
    """

    number: int
    loss: float | None
    learning_rate: float | None
    tokens_per_second: float | None
    seconds: float | None
    numbers: dict[str, float] = dataclasses.field(repr=False)


class Run(Iterator[TrainingStep]):
    """A run of chimera-run, as an iterator over its steps. The training does not wait for
    the loop.

    Ctrl-C (in a notebook: interrupt) stops the run after its step. The run then writes
    its results, and the loop ends as usual. A second Ctrl-C kills it. `stop()` does the
    same as the first. After a loop that ends early, the run goes on: call `stop()`, or use
    the run as a context manager, which stops it at the end of its block. A run to which no
    variable refers is killed.

    evaluations: the numbers on held-out samples so far, each with its step.
    checkpoints: the checkpoints so far, each with its step and its folder ("checkpoint").
    summary: the numbers of the whole run; None until the loop has ended.
    was_stopped: whether Ctrl-C or `stop` ended the run.
    """

    def __init__(self, command: Sequence[str], bar):
        self._folder = tempfile.TemporaryDirectory(prefix="chimera-")
        self._log = pathlib.Path(self._folder.name) / "log"
        self._errors = open(pathlib.Path(self._folder.name) / "errors", "w+")  # noqa: SIM115
        # In a session of its own, so that Ctrl-C reaches only this process, which decides.
        self._process = subprocess.Popen(
            [*command, "--log", str(self._log)], stdin=subprocess.DEVNULL,
            env=chimera_launch.environment(command[0]),
            stdout=subprocess.DEVNULL, stderr=self._errors, start_new_session=True,
        )  # fmt: skip
        self._lines, self._file, self._rest = [], None, ""
        self._has_ended = False  # and has been waited for
        self._bar = bar
        self.evaluations: list[dict[str, float]] = []
        self.checkpoints: list[dict] = []
        self.summary: dict | None = None
        self.was_stopped = False

    def __iter__(self):
        return self

    def __next__(self) -> TrainingStep:
        while True:
            try:
                line = self._line()
            except KeyboardInterrupt:
                if self.was_stopped:
                    self.kill()
                    raise
                self.stop()
                continue
            if line is None:
                self._end()
                raise StopIteration
            numbers = json.loads(line)
            if "summary" in numbers:
                self.summary = numbers["summary"]
            elif "held_out_loss" in numbers:
                self.evaluations.append(numbers)
            elif "checkpoint" in numbers:
                self.checkpoints.append(numbers)
            else:
                return self._step(numbers)

    def _step(self, numbers):
        step = TrainingStep(
            numbers["step"], numbers.get("loss"), numbers.get("learning_rate"),
            numbers.get("tokens_per_s"), numbers.get("seconds"), numbers,
        )  # fmt: skip
        if self._bar is not None:
            self._bar.update(step.number - self._bar.n)
            if step.loss is not None:
                self._bar.set_postfix(loss=f"{step.loss:.4f}")
        return step

    def _line(self):
        """The next line of the log. None after the last one."""
        while not self._has_ended:
            has_ended = self._process.poll() is not None
            self._read()
            if self._lines:
                return self._lines.pop(0)
            if has_ended:
                return None
            time.sleep(_PAUSE)
        return None

    def _read(self):
        """Reads what has been added to the log."""
        for path in (f"{self._log}.part", self._log) if self._file is None else ():
            try:
                self._file = open(path, encoding="utf-8")  # noqa: SIM115
                break
            except FileNotFoundError:
                continue
        if self._file is None:
            return
        *lines, self._rest = (self._rest + self._file.read()).split("\n")
        self._lines += lines

    def _end(self):
        if self._has_ended:
            return
        status = self._process.wait()
        self._errors.seek(0)
        told = self._errors.read().strip()
        self._close()
        # A run that has not begun yet is ended by the signal of `stop`.
        if status != 0 and not (self.was_stopped and status == -signal.SIGUSR1):
            raise tools.Error(told or f"chimera-run ended with {status}")

    def _close(self):
        self._has_ended = True
        for file in (self._bar, self._file, self._errors):
            if file is not None:
                file.close()
        self._folder.cleanup()

    def stop(self):
        """Makes the run end after its step, with its results. Does not wait for it."""
        self.was_stopped = True
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGUSR1)

    def kill(self):
        """Ends the run at once, without results."""
        self.was_stopped = True
        if not self._has_ended:
            self._process.kill()
            self._process.wait()
            self._close()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if self._process.poll() is None:
            self.stop()
        if kind is None:
            for _ in self:
                pass
        elif not self._has_ended:
            self._process.wait()
            self._close()

    def __del__(self):
        if not getattr(self, "_has_ended", True):
            self.kill()


def train(
    program: str | os.PathLike,
    data: str | os.PathLike | Sequence[str | os.PathLike] | None = None,
    *,
    steps: int | None = None,
    progress: bool | None = None,
    **options,
) -> Run:
    """Trains with a program, and returns an iterator over the steps.

        for step in chimera.train(program, "text.txt", steps=100, save="weights.safetensors"):
            print(step.number, step.loss)

    program: what `chimera.compile` returned, or the path of a program file.
    data: a file of tokens or a text, or a list of files (chimera-run --data).
    steps: number of steps.
    progress: whether to show a bar (tqdm). Default: if tqdm is installed, and in a
        terminal or a notebook.
    options: other options of chimera-run, such as learning_rate=1e-3, epochs=2,
        load="start.safetensors", checkpoint="folder", check_replicas=True.
        `chimera-run --help` lists them.

    The ranks are threads of one process. To train over several hosts or with MPI, start
    chimera-run with their launcher.

    Raises FileNotFoundError if chimera-run is not found. The loop raises `chimera.Error`,
    with the text of chimera-run, if the run fails.
    """
    for name in ("log", "quiet", "transport"):
        if name in options:
            raise TypeError(
                f"expected no {name}=, which chimera.train sets itself: `numbers` of a step "
                "is its line of a log"
            )
    command = [
        tools.find("chimera-run"), os.fspath(program), "--quiet", "--transport", "in-process",
        *tools.options({"data": data, "steps": steps, **options}),
    ]  # fmt: skip
    return Run(command, _bar(progress, steps))


def _bar(progress, steps):
    """A bar of tqdm, or None."""
    if progress is None:
        progress = sys.stderr.isatty() or "ipykernel" in sys.modules
        if not progress:
            return None
        try:
            import tqdm  # noqa: F401
        except ImportError:
            return None
    if not progress:
        return None
    from tqdm.auto import tqdm as bar

    return bar(total=steps, unit="step")
