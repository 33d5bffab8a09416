#!/usr/bin/env python3
"""Runs chimera-run as a user does: results, files and errors.

usage: chimera-run.py CHIMERA_RUN WRITE_SAMPLE [MPIRUN]

Needs no compiler: WRITE_SAMPLE makes the programs. Without MPIRUN the tests
over MPI are skipped.
"""
import fcntl
import json
import os
import pty
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from job import ENVIRONMENT

CHIMERA_RUN, WRITE_SAMPLE, *REST = sys.argv[1:]
MPIRUN = REST[0] if REST else None


class Test(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def sample(self, *options):
        file = self.path("sample.chimera")
        subprocess.run([WRITE_SAMPLE, file, *options], check=True)
        return file

    def training(self, *arguments):
        """Of a program with a model, and text."""
        text = self.path("text")
        with open(text, "w") as file:
            file.write("What is trained on. " * 20)
        return [self.sample("--model"), "--data", text, "--steps", "2",
                "--threads", "1", *arguments]

    def run_it(self, *arguments, ranks=0):
        command = [CHIMERA_RUN, *arguments]
        if ranks:
            command = [MPIRUN, "-n", str(ranks), "--oversubscribe", *command]
        return subprocess.run(command, capture_output=True, text=True,
                              timeout=60, env=ENVIRONMENT, cwd=self.folder)

    def expect_error(self, text, *arguments, ranks=0):
        result = self.run_it(*arguments, ranks=ranks)
        self.assertNotEqual(result.returncode, 0, result.stdout)
        self.assertIn(text, result.stderr)
        self.assertEqual(result.stderr.count(text), 1, "told more than once")

    def log_of(self, *arguments, ranks=0):
        log = self.path("log.jsonl")
        result = self.run_it(*arguments, "--log", log, ranks=ranks)
        self.assertEqual(result.returncode, 0, result.stderr)
        with open(log) as lines:
            *steps, last = [json.loads(line) for line in lines]
        self.assertFalse(os.path.exists(log + ".part"))
        return [step["loss"] for step in steps], last["summary"]

    def test_pipeline_equals_sequential(self):
        for options in ([], ["--bidirectional", "--split"],
                        ["--data-parallel", "2", "--micro-batches", "4"]):
            program = self.sample(*options)
            losses, summary = self.log_of(program, "--steps", "4",
                                          "--check-replicas")
            expected, alone = self.log_of(program, "--steps", "4",
                                          "--sequential")
            self.assertEqual(len(losses), 4)
            self.assertEqual(losses, expected)
            self.assertEqual(summary["weights_digest"],
                             alone["weights_digest"])

    @unittest.skipUnless(MPIRUN, "MPI was not found")
    def test_mpi_equals_sequential(self):
        for ranks, options in ((4, ["--bidirectional"]),
                               (4, ["--workers", "2", "--data-parallel", "2",
                                    "--boundary-bytes", "262144"])):
            program = self.sample(*options)
            expected, alone = self.log_of(program, "--steps", "3",
                                          "--sequential")
            for progress in ("on", "off"):
                losses, summary = self.log_of(
                    program, "--steps", "3", "--check-replicas", "--progress",
                    progress, ranks=ranks)
                self.assertEqual(losses, expected)
                self.assertEqual(summary["weights_digest"],
                                 alone["weights_digest"])
                self.assertEqual(len(summary["ranks"]), ranks)

    @unittest.skipUnless(MPIRUN, "MPI was not found")
    def test_says_whether_ranks_have_progress_threads(self):
        program = self.sample("--workers", "2")
        for progress, how in (("on", "a process with a progress thread a rank"),
                              ("off", "a process a rank")):
            result = self.run_it(program, "--steps", "1", "--progress",
                                 progress, ranks=2)
            self.assertIn(f", {how} over MPI, ", result.stdout)

    @unittest.skipUnless(MPIRUN, "MPI was not found")
    def test_mpi_sums_integers_alike(self):
        for progress, options in (("off", ["--bidirectional"]),
                                  ("on", ["--workers", "2",
                                          "--data-parallel", "2"])):
            program = self.sample(*options)
            losses, summary = self.log_of(
                program, "--steps", "3", "--check-replicas", "--progress",
                progress, "--all-reduce", "transport", ranks=4)
            expected, alone = self.log_of(program, "--steps", "3",
                                          "--sequential")
            self.assertEqual(losses, expected)
            self.assertEqual(summary["weights_digest"],
                             alone["weights_digest"])

    def test_the_all_reduce_of_a_transport_is_for_mpi(self):
        for options in ([], ["--sequential"]):
            self.expect_error("--all-reduce transport is for runs over MPI",
                              self.sample(), "--all-reduce", "transport",
                              *options)

    def test_progress_threads_are_for_mpi(self):
        for options in ([], ["--sequential"]):
            self.expect_error("--progress on is for runs over MPI",
                              self.sample(), "--progress", "on", *options)

    def test_synthetic(self):
        losses, summary = self.log_of(self.sample(), "--stages", "synthetic",
                                      "--unit-ns", "1e6", "--steps", "2e0")
        self.assertEqual(losses, [0, 0])
        # 8 micro-batches of 1 + 2 units of 1 ms on each worker, two steps.
        self.assertGreater(summary["seconds"], 0.048)
        self.assertGreater(summary["instructions"], 0)

    def test_profile(self):
        program, file = self.sample("--bidirectional"), self.path("profile")
        for ranks in (0, 4) if MPIRUN else (0,):
            self.log_of(program, "--stages", "synthetic", "--unit-ns", "1e6",
                        "--steps", "3", "--profile", file, ranks=ranks)
            with open(file) as text:
                profile = json.load(text)
            self.assertEqual([s["stage"] for s in profile["stages"]],
                             list(range(4)))
            for stage in profile["stages"]:
                self.assertEqual(stage["forward"]["count"], 24)
                self.assertGreaterEqual(stage["forward"]["min"], 1_000_000)
                self.assertGreaterEqual(stage["backward"]["min"], 2_000_000)
            for rank, entry in enumerate(profile["ranks"]):
                self.assertEqual(entry["rank"], rank)
                self.assertGreater(
                    entry["waits"]["receive_activation"]["median"], 0)
            self.assertEqual(profile["steps"]["later"]["count"], 2)
            os.remove(file)

    def test_profile_errors(self):
        program = self.sample()
        file = self.path("profile")
        self.expect_error("--profile is for pipelines", program, "--profile",
                          file, "--sequential")
        self.expect_error("--profile needs at least one step", program,
                          "--profile", file, "--steps", "0")
        self.expect_error("profile: cannot write", program, "--profile",
                          "/nowhere/profile")

    def test_prints_progress_and_result(self):
        ranks = os.cpu_count() + 1
        program = self.sample("--workers", str(ranks))
        result = self.run_it(program, "--steps", "2")
        self.assertRegex(result.stdout, rf"\n{ranks} ranks share \d+ cores?: "
                         "steps take longer than predicted")
        self.assertRegex(result.stdout, r"step 2/2  .* steps/s  ETA 0:00")
        self.assertIn("digest of the weights ", result.stdout)
        quiet = self.run_it(program, "--steps", "2", "--quiet")
        self.assertNotIn("step", quiet.stdout.replace("2 steps in", ""))
        self.assertIn("digest of the weights ", quiet.stdout)

    def test_missing_program(self):
        self.expect_error(self.path("none"), self.path("none"))

    def test_corrupt_program(self):
        program = self.sample()
        with open(program, "r+b") as file:
            file.seek(100)
            file.write(b"\xff" * 8)
        self.expect_error("checksum", program)
        with open(program, "wb") as file:
            file.write(b"not a program")
        self.expect_error(program, program)

    @unittest.skipUnless(MPIRUN, "MPI was not found")
    def test_wrong_rank_count(self):
        self.expect_error(
            "program expects 4 ranks (4 workers x 1 copy), got 3: run "
            "mpirun -n 4 chimera-run", self.sample(), ranks=3)
        self.expect_error("got 1: run mpirun -n 4", self.sample(),
                          "--transport", "mpi")

    @unittest.skipUnless(MPIRUN, "MPI was not found")
    def test_one_process_only(self):
        self.expect_error("--sequential needs one process, got 2 from mpirun",
                          self.sample(), "--sequential", ranks=2)
        self.expect_error("--transport in-process needs one process, got 4",
                          self.sample(), "--transport", "in-process", ranks=4)

    def test_transformer_needs_a_model_and_data(self):
        program = self.sample()
        self.expect_error("give --data FILE", program, "--stages",
                          "transformer")
        text = self.path("text")
        with open(text, "w") as file:
            file.write("x" * 100000)
        self.expect_error("model", program, "--stages", "transformer",
                          "--data", text)

    def test_data_and_saving_are_for_transformers(self):
        for option in ("--data", "--save", "--save-gradients"):
            self.expect_error(f"{option} is for transformer stages",
                              self.sample(), option, self.path("file"))

    def test_no_steps(self):
        losses, summary = self.log_of(self.sample(), "--steps", "0")
        _, alone = self.log_of(self.sample(), "--steps", "0", "--sequential")
        self.assertEqual(losses, [])
        self.assertEqual(summary["weights_digest"], alone["weights_digest"])
        self.expect_error("--save-gradients needs at least one step",
                          self.sample(), "--steps", "0", "--save-gradients",
                          self.path("gradients"))

    def test_log_that_cannot_be_written(self):
        self.expect_error("log.jsonl: cannot write", self.sample(), "--log",
                          "/nowhere/log.jsonl")

    def read(self, name):
        with open(self.path(name), "rb") as file:
            return file.read()

    def test_outputs_that_fail_cost_no_other(self):
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
        self.assertIn("No space left on device: the weights are lost, as "
                      "neither the current folder", result.stderr)

    def test_a_full_disk(self):
        disk = self.path("disk")
        os.mkdir(disk)
        mount = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4k",
                                "tmpfs", disk], capture_output=True, text=True)
        if mount.returncode:
            self.skipTest(f"cannot mount: {mount.stderr.strip()}")
        self.addCleanup(subprocess.run, ["umount", disk], check=True)
        # Refused before anything is trained.
        result = self.run_it(*self.training("--save", "disk/weights"))
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, r"disk/weights: expected room for \d+ "
                         r"bytes on the file system, got 4096: free some")
        self.assertNotIn("step", result.stdout)
        # One that fills up on the way ends nothing, and is told once.
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
        for first, second in ((["--profile", path], ["--log", path]),
                              (["--save", path], ["--log", self.path("./out")]),
                              (["--save", path], ["--log", link]),
                              (["--save", path + ".part"], ["--log", path]),
                              (["--save", path + ".part"], ["--log", link]),
                              (["--data", path], ["--save", path]),
                              ([], ["--log", program])):
            self.expect_error("expected different files, got ", program, *first,
                              *second)
        with open(path, "w") as output:
            result = subprocess.run([CHIMERA_RUN, program, "--log", path],
                                    stdout=output, stderr=subprocess.PIPE,
                                    text=True, timeout=60)
        self.assertEqual(result.returncode, 1)
        self.assertIn("for standard output and ", result.stderr)
        # What is no file may take all.
        result = self.run_it(program, "--profile", "/dev/null", "--log",
                             "/dev/null")
        self.assertEqual(result.returncode, 0, result.stderr)

    def shell(self, command, *arguments):
        return subprocess.run(["bash", "-c", command, CHIMERA_RUN, *arguments],
                              capture_output=True, text=True, timeout=60)

    def test_a_reader_that_leaves_ends_no_run(self):
        log = self.path("log")
        result = self.shell('"$0" "$@" | head -c 1; exit ${PIPESTATUS[0]}',
                            self.sample(), "--stages", "synthetic", "--unit-ns",
                            "1e6", "--steps", "3", "--log", log)
        self.assertEqual(result.returncode, 1)
        self.assertIn("cannot write to standard output", result.stderr)
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
        # A report is no part of the log that it stands beside.
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
            [CHIMERA_RUN, program, "--log", log, "--steps", "4", "--stages",
             "synthetic", "--unit-ns", "1e7"], stdout=subprocess.PIPE)
        for line in first.stdout:
            if line.startswith(b"step 1/"):
                break
        self.expect_error(f"cannot write the log {log}.part: another run is "
                          "writing it", program, "--log", log)
        first.communicate(timeout=60)
        self.assertEqual(first.returncode, 0)
        with open(log) as lines:
            self.assertEqual(len([json.loads(line) for line in lines]), 5)

    def test_a_program_from_a_pipe(self):
        text = self.path("text")
        with open(text, "w") as file:
            file.write("x" * 100000)
        # With threads it starts itself again, before it has read anything.
        with open(self.sample(), "rb") as program:
            result = subprocess.run(
                [CHIMERA_RUN, "/dev/stdin", "--data", text, "--threads", "2"],
                input=program.read(), capture_output=True, timeout=60,
                env={name: value for name, value in ENVIRONMENT.items()
                     if name != "OMP_WAIT_POLICY"})
        self.assertIn(b"the program has no model", result.stderr)

    @unittest.skipUnless(MPIRUN, "MPI was not found")
    def test_an_error_of_the_root_ends_a_job(self):
        # The root of this program is rank 3, which alone has a log to write.
        part = self.path("log.part")
        with open(part, "w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            self.expect_error(f"cannot write the log {part}: another run is "
                              "writing it", self.sample(), "--log",
                              self.path("log"), ranks=4)

    def test_option_errors(self):
        program = self.sample()
        for arguments in (["--steps", "-1"], ["--stages", "magic"],
                          ["--hold-out", "1"], ["--threads", "0"],
                          ["--timeout", "-1"], ["--transport", "pigeon"],
                          ["--progress", "maybe"], ["--all-reduce", "tree"],
                          ["--unit-ns", "-1"], ["--unit-ns", "nan"],
                          ["--steps", "1e30"], ["--threads", "4096"],
                          ["--timeout", "nan"], ["--hold-out", "-NaN"]):
            result = self.run_it(program, *arguments)
            self.assertNotEqual(result.returncode, 0, arguments)
            self.assertIn(arguments[0], result.stderr)
        for arguments, error in (
                (["--steps", "1.5"], "--steps: expected a whole number in [0 - "
                 "1099511627776], got 1.5"),
                (["--wrong"], "unknown option '--wrong'\n"),
                (["--step=3"], "unknown option '--step': did you mean "
                 "'--steps'?\n"),
                ([program], f"unexpected argument '{program}'\n")):
            result = self.run_it(program, *arguments)
            self.assertTrue(result.stderr.startswith(f"chimera-run: {error}"),
                            result.stderr)
            self.assertIn("--help", result.stderr)

    def test_a_program_after_two_dashes(self):
        program = self.sample()
        result = self.run_it("--steps", "1", "--", program)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.expect_error("unexpected argument '--steps'", "--", program,
                          "--steps")
        self.expect_error("unknown option '--wrong'", "--wrong", "--", program)

    def test_wrong_arguments_end_with_status_1(self):
        for arguments in ([], ["--wrong"], [self.sample(), "--steps", "-1"]):
            self.assertEqual(self.run_it(*arguments).returncode, 1, arguments)

    def test_help_that_cannot_be_written(self):
        for option in ("--help", "--version"):
            for output in (">/dev/full", ">&-"):
                result = self.shell(f'"$0" "$@" {output}', option)
                self.assertEqual(result.returncode, 1, (option, output))
                self.assertIn("cannot write to standard output", result.stderr)
            self.assertEqual(self.run_it(option).returncode, 0)

    def test_a_program_too_large_for_the_host(self):
        program = self.sample("--boundary-bytes", str(1 << 40))
        for ranks in (0, 4) if MPIRUN else (0,):
            result = self.run_it(program, "--log", "log", ranks=ranks)
            self.assertNotEqual(result.returncode, 0)
            self.assertEqual(result.stderr.count("expected arenas that fit"), 1,
                             result.stderr)
            self.assertEqual(result.stdout, "")
            self.assertFalse(os.path.exists(self.path("log.part")))
        self.expect_error("expected weights, gradients and optimizer state "
                          "that fit into", program, "--sequential")

    def test_a_failure_ends_with_one_line_end(self):
        result = self.run_it(*self.training("--timeout", "0.001"))
        self.assertNotEqual(result.returncode, 0, result.stdout)
        self.assertTrue(result.stderr.endswith("\n"))
        self.assertFalse(result.stderr.endswith("\n\n"), result.stderr)

    def saving_into_a_pipe_without_reader(self, *arguments):
        pipe = self.path("pipe")
        os.mkfifo(pipe)
        return subprocess.Popen(
            [CHIMERA_RUN, *self.training("--save", pipe, *arguments)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=ENVIRONMENT, cwd=self.folder)

    def test_results_are_there_before_they_are_saved(self):
        for mode in ([], ["--sequential"]):
            run = self.saving_into_a_pipe_without_reader("--timeout", "1",
                                                         *mode)
            output, errors = run.communicate(timeout=60)
            self.assertEqual(run.returncode, 1, errors)
            self.assertIn("timed out after 1 s waiting for its saving and "
                          "evaluating to go on", errors)
            self.assertIn("final loss ", output)
            self.assertIn("digest of the weights ", output)
            os.remove(self.path("pipe"))

    def test_a_sequential_run_ended_while_it_saves(self):
        run = self.saving_into_a_pipe_without_reader("--sequential")
        for line in run.stdout:
            if line.startswith("digest"):
                break
        run.send_signal(signal.SIGTERM)
        _, errors = run.communicate(timeout=60)
        self.assertEqual(run.returncode, 128 + signal.SIGTERM)
        self.assertIn("ended by SIGTERM while saving and evaluating\n", errors)

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
            pass  # of a terminal that nobody has open
        self.assertEqual(run.wait(timeout=60), 1)
        self.assertRegex(text, rb"ETA \d+:\d\d")
        self.assertRegex(text, rb"\nchimera-run: cannot write the log")
        self.assertRegex(text, rb"\n200 steps in")

    def test_nobody_who_reads_keeps_ranks_waiting(self):
        reader, writer = os.pipe()
        log = self.path("log")
        run = subprocess.Popen(
            [CHIMERA_RUN, self.sample(), "--steps", "3", "--stages",
             "synthetic", "--unit-ns", "3e7", "--log", log], stdout=writer,
            stderr=subprocess.PIPE, env=ENVIRONMENT)
        self.assertIn(b"4 workers", os.read(reader, 4096))
        # Before the end of the first step, after 0.7 s.
        os.set_blocking(writer, False)
        try:
            while True:
                os.write(writer, b"." * 4096)
        except BlockingIOError:
            os.set_blocking(writer, True)
        os.close(writer)
        begin = time.monotonic()
        while True:
            with open(log + ".part") as lines:
                if len(lines.readlines()) == 3:
                    break
            self.assertLess(time.monotonic() - begin, 20, "no step went on")
            time.sleep(0.05)
        while os.read(reader, 65536):
            pass
        os.close(reader)
        run.communicate(timeout=60)
        self.assertEqual(run.returncode, 0)

    def test_data_without_an_end(self):
        self.expect_error("cannot read the text file '/dev/zero': expected a "
                          "file or a pipe, got a device",
                          self.sample("--model"), "--data", "/dev/zero")

    def test_no_llvm(self):
        libraries = subprocess.run(["ldd", CHIMERA_RUN], text=True, check=True,
                                   capture_output=True).stdout
        self.assertNotIn("LLVM", libraries)
        self.assertNotIn("MLIR", libraries)


unittest.main(argv=sys.argv[:1], verbosity=2)
