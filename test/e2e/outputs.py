#!/usr/bin/env python3
"""Tests the files and streams that chimera-run writes, and what happens if they cannot
be written or if nobody reads them.

usage: outputs.py CHIMERA_RUN WRITE_SAMPLE [MPIRUN]
"""
import json
import os
import pathlib
import pty
import signal
import subprocess
import sys
import time
import unittest

from job import ENVIRONMENT, PATIENCE, fill, stat_of
from runs import CHIMERA_RUN, MPIRUN, Runs


class Test(Runs):
    def start_endless(self, log, **streams):
        """Starts a run that takes days. It ends if it gets SIGUSR1."""
        run = subprocess.Popen(
            [CHIMERA_RUN, self.sample(), "--stages", "synthetic", "--unit-ns", "1e7",
             "--steps", "1000000", "--log", log], env=ENVIRONMENT, **streams)
        self.addCleanup(run.kill)
        return run

    def wait_for_more_steps(self, log, count):
        """Waits until a run has logged `count` more steps."""
        def logged():
            return self.read(log + ".part").count(b"\n")

        expected = logged() + count
        begin = time.monotonic()
        while logged() < expected:
            self.assertLess(time.monotonic() - begin, PATIENCE, "no step went on")
            time.sleep(0.05)

    def is_stopped(self, pid):
        """Whether all threads of a process are stopped."""
        found = [stat_of(f"{pid}/task/{thread}")
                 for thread in os.listdir(f"/proc/{pid}/task")]
        return all(stat and stat[0] == "T" for stat in found)

    def test_log_that_cannot_be_written(self):
        self.expect_error("log.jsonl: cannot write", self.sample(), "--log",
                          "/nowhere/log.jsonl")

    def test_a_failed_output_does_not_affect_others(self):
        arguments = self.training()
        result = self.run_it(*arguments, "--save", "weights",
                             "--save-gradients", "gradients")
        self.assertEqual(result.returncode, 0, result.stderr)
        for ranks in (0, 4) if MPIRUN else (0,):
            result = self.run_it(
                *arguments, "--save", "/dev/full", "--save-gradients", "other",
                "--log", "/dev/full", "--profile", "/dev/full", ranks=ranks)
            self.assertEqual(result.returncode, 1, result.stderr)
            rescued = self.path("rescued-full")
            for line in ("chimera-run: /dev/full: cannot write: No space left "
                         f"on device: the weights are in {rescued}\n",
                         "chimera-run: /dev/full: cannot write: No space left "
                         "on device\n",
                         "chimera-run: cannot write the log /dev/full: No "
                         "space left on device\n"):
                self.assertEqual(result.stderr.count(line), 1, result.stderr)
            self.assertNotIn("failed", result.stderr)
            self.assertIn("held-out loss ", result.stdout)
            self.assertEqual(self.read("rescued-full"), self.read("weights"))
            self.assertEqual(self.read("other"), self.read("gradients"))
            os.remove(rescued)

    def test_weights_that_fit_nowhere(self):
        result = self.shell(
            'cd /proc && TMPDIR=/proc "$0" "$@"',
            *self.training("--save", "/dev/full"))
        self.assertEqual(result.returncode, 1)
        self.assertIn("No space left on device: the weights are lost: "
                      "neither the current folder", result.stderr)

    def test_a_full_disk(self):
        disk = self.path("disk")
        os.mkdir(disk)
        mount = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4k",
                                "tmpfs", disk], capture_output=True, text=True)
        if mount.returncode:
            self.skipTest(f"cannot mount: {mount.stderr.strip()}")
        self.addCleanup(subprocess.run, ["umount", disk], check=True)
        # The run is refused before training starts.
        result = self.run_it(*self.training("--save", "disk/weights"))
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, r"disk/weights: expected room for \d+ "
                         r"bytes on the file system, got 4096: free some")
        self.assertNotIn("step", result.stdout)
        result = self.run_it(*self.training("--checkpoint", "disk/new/kept"))
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, r"disk/new/kept: expected room for \d+ bytes of a "
                         r"checkpoint on the file system, got \d+: free some")
        # If the file system becomes full during the run, the run continues and reports
        # this once.
        result = self.run_it(self.sample(), "--steps", "100", "--log",
                             "disk/log")
        self.assertEqual(result.returncode, 1)
        self.assertEqual(result.stderr.count("cannot write the log"), 1,
                         result.stderr)
        self.assertIn("digest of the weights ", result.stdout)
        self.assertEqual(os.listdir(disk), ["log.part"])

    def test_files_that_collide(self):
        program, path = self.sample(), self.path("out")
        link = self.path("link")
        os.symlink("out", link)
        data, index = self.path("text.bin"), self.path("text.idx")
        for file in data, index:
            pathlib.Path(file).touch()
        for first, second in ((["--profile", path], ["--log", path]),
                              (["--trace", path], ["--profile", path]),
                              ([], ["--trace", program]),
                              (["--save", path], ["--log", self.path("./out")]),
                              (["--save", path], ["--log", link]),
                              (["--save", path + ".part"], ["--log", path]),
                              (["--save", path + ".part"], ["--log", link]),
                              (["--data", path], ["--save", path]),
                              (["--data", data], ["--save", index]),
                              (["--data", data], ["--data", data]),
                              ([], ["--log", program])):
            self.expect_error("expected different files, got ", program, *first,
                              *second)
        with open(path, "w") as output:
            result = subprocess.run([CHIMERA_RUN, program, "--log", path],
                                    stdout=output, stderr=subprocess.PIPE,
                                    text=True, timeout=PATIENCE)
        self.assertEqual(result.returncode, 1)
        self.assertIn("for standard output and ", result.stderr)
        # A device file like /dev/null may receive several outputs.
        result = self.run_it(program, "--profile", "/dev/null", "--log",
                             "/dev/null")
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_a_reader_that_leaves_ends_no_run(self):
        reader, writer = os.pipe()
        run = self.start_endless(self.path("log"), stdout=writer,
                                 stderr=subprocess.PIPE, text=True)
        os.close(writer)
        os.read(reader, 1)
        os.close(reader)
        self.wait_for_more_steps("log", 2)
        run.send_signal(signal.SIGUSR1)
        _, errors = run.communicate(timeout=PATIENCE)
        self.assertEqual(run.returncode, 1)
        self.assertIn("cannot write to standard output", errors)
        self.assertIn(b'"summary"', self.read("log"))

    def test_closed_streams(self):
        program, log = self.sample(), self.path("log")
        arguments = [program, "--steps", "2", "--log", log]
        result = self.shell('"$0" "$@" >&-', *arguments)
        self.assertEqual(result.returncode, 1)
        self.assertIn("standard output is closed", result.stderr)
        for closed in ("<&- 2>&-", "2>&-", "<&-"):
            result = self.shell(f'"$0" "$@" {closed}', *arguments)
            self.assertEqual(result.returncode, 0, closed)
            with open(log) as lines:
                self.assertEqual(len([json.loads(line) for line in lines]), 3)
            os.remove(log)
        # Standard error is closed. A report must not be written into the log. The first
        # step takes ten minutes, so the signal comes during this step.
        self.sample("--micro-batches", "200")
        result = self.shell('"$0" "$@" --stages synthetic --unit-ns 1e9 2>&- & '
                            f'until [ -e {log}.part ]; do sleep 0.1; done; '
                            'sleep 0.3; kill -TERM $!; wait $!', *arguments)
        self.assertEqual(result.returncode, 128 + 15)
        self.assertEqual(os.path.getsize(log + ".part"), 0)

    def test_a_file_too_large_is_an_error(self):
        log = self.path("log")
        result = self.shell('ulimit -f 1; "$0" "$@"', self.sample(), "--steps",
                            "100", "--log", log)
        self.assertEqual(result.returncode, 1)
        self.assertEqual(result.stderr, f"chimera-run: cannot write the log "
                         f"{log}.part: File too large\n")
        self.assertIn("digest of the weights ", result.stdout)

    def test_one_log_for_two_runs(self):
        program, log = self.sample(), self.path("log")
        first = subprocess.Popen(
            [CHIMERA_RUN, program, "--log", log, "--steps", "1000000", "--stages",
             "synthetic", "--unit-ns", "1e6"], stdout=subprocess.PIPE)
        self.addCleanup(first.kill)
        for line in first.stdout:
            if line.startswith(b"step 1/"):
                break
        # Stop the first run. Otherwise it might end before the second run has started.
        first.send_signal(signal.SIGSTOP)
        self.expect_error(f"cannot write the log {log}.part: another run is "
                          "writing it", program, "--log", log)
        first.send_signal(signal.SIGUSR1)
        first.send_signal(signal.SIGCONT)
        first.communicate(timeout=PATIENCE)
        self.assertEqual(first.returncode, 0)
        with open(log) as lines:
            *steps, last = [json.loads(line) for line in lines]
        self.assertEqual(len(steps), last["summary"]["steps"])

    def test_help_that_cannot_be_written(self):
        for option in ("--help", "--version"):
            for output in (">/dev/full", ">&-"):
                result = self.shell(f'"$0" "$@" {output}', option)
                self.assertEqual(result.returncode, 1, (option, output))
                self.assertIn("cannot write to standard output", result.stderr)
            self.assertEqual(self.run_it(option).returncode, 0)

    def saving_into_a_pipe_without_reader(self, *arguments):
        pipe = self.path("pipe")
        os.mkfifo(pipe)
        return subprocess.Popen(
            [CHIMERA_RUN, *self.training("--save", pipe, *arguments)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=ENVIRONMENT, cwd=self.folder)

    def test_results_are_there_before_they_are_saved(self):
        for mode in ([], ["--sequential"]):
            # On a busy machine the start of the run may take longer than a short
            # timeout, so try longer ones.
            for seconds in (1, 4, 16, 64):
                run = self.saving_into_a_pipe_without_reader(
                    "--timeout", str(seconds), *mode)
                output, errors = run.communicate(timeout=PATIENCE)
                os.remove(self.path("pipe"))
                self.assertEqual(run.returncode, 1, errors)
                if "waiting for progress of its saving" in errors:
                    break
            self.assertIn(f"timed out after {seconds} s waiting for progress of its "
                          "saving", errors)
            self.assertIn("final loss ", output)
            self.assertIn("digest of the weights ", output)

    def test_a_sequential_run_ended_while_it_saves(self):
        run = self.saving_into_a_pipe_without_reader("--sequential", "--grace",
                                                     "1")
        for line in run.stdout:
            if line.startswith("digest"):
                break
        run.send_signal(signal.SIGTERM)
        _, errors = run.communicate(timeout=PATIENCE)
        self.assertEqual(run.returncode, 128 + signal.SIGTERM)
        self.assertIn("ended by SIGTERM while saving\n", errors)

    def test_messages_on_a_terminal_have_lines_of_their_own(self):
        master, terminal = pty.openpty()
        self.addCleanup(os.close, master)
        run = subprocess.Popen(
            ["sh", "-c", 'ulimit -f 1; exec "$0" "$@"', CHIMERA_RUN,
             self.sample(), "--steps", "200", "--stages", "synthetic",
             "--unit-ns", "1e5", "--log", self.path("log")],
            stdout=terminal, stderr=terminal, env=ENVIRONMENT)
        os.close(terminal)
        text = b""
        try:
            while piece := os.read(master, 65536):
                text += piece
        except OSError:
            pass  # the terminal has been closed
        self.assertEqual(run.wait(timeout=PATIENCE), 1)
        self.assertRegex(text, rb"ETA \d+:\d\d")
        self.assertRegex(text, rb"\nchimera-run: cannot write the log")
        self.assertRegex(text, rb"\n200 steps in")

    def test_a_slow_reader_does_not_delay_ranks(self):
        reader, writer = os.pipe()
        run = self.start_endless(self.path("log"), stdout=writer,
                                 stderr=subprocess.PIPE)
        self.assertIn(b"4 workers", os.read(reader, 4096))
        # Stop the run while the pipe is being filled: `fill` makes the pipe non-blocking
        # for a moment, so a write of the run would fail. Then steps must go on, and the
        # run must still print its results and complete its log.
        run.send_signal(signal.SIGSTOP)
        while run.poll() is None and not self.is_stopped(run.pid):
            time.sleep(0.01)
        self.assertIsNone(run.poll(), "the run ended before it was stopped")
        fill(writer)
        os.close(writer)
        run.send_signal(signal.SIGCONT)
        self.wait_for_more_steps("log", 3)
        run.send_signal(signal.SIGUSR1)
        output = b"".join(iter(lambda: os.read(reader, 65536), b""))
        os.close(reader)
        run.communicate(timeout=PATIENCE)
        self.assertEqual(run.returncode, 0)
        self.assertRegex(output, rb"\n\d+ steps in")
        self.assertIn(b'"summary"', self.read("log"))

unittest.main(argv=sys.argv[:1], verbosity=2)
