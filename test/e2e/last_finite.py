#!/usr/bin/env python3
"""Ends runs with --save early: by a loss that is not finite, by SIGTERM or by SIGINT.
FILE.last-finite must have the last finite weights, which equal those of a run of as
many steps bit by bit. FILE must not be written.

usage: last_finite.py CHIMERA_RUN WRITE_SAMPLE [MPIRUN]
"""
import array
import fcntl
import json
import os
import re
import select
import signal
import struct
import subprocess
import sys
import time
import unittest

from job import ENVIRONMENT, PATIENCE, Job, free_port, send
from runs import CHIMERA_RUN, MPIRUN, Runs

RANKS = 4
# On a busy machine the last step may take some seconds. If mpirun gets the signal, it
# must wait for more seconds before it kills.
MPIRUN_WAITS = 20
PATIENT = ["--grace", "19"]
ENDLESS = "100000000"


class LastFinite(Runs):
    def setUp(self):
        super().setUp()
        program, _, text, *_ = self.training()
        self.program, self.text = program, text
        self.weights = self.path("weights")
        self.rescued = self.weights + ".last-finite"
        self.log = self.path("log")

    def arguments(self, steps, *more):
        return [self.program, "--data", self.text, "--steps", str(steps),
                "--threads", "1", "--save", self.weights, "--log", self.log,
                *more]

    def of_steps(self, steps, *more):
        """The weights of a run of `steps` steps."""
        file = self.path("expected")
        result = self.run_it(self.program, "--data", self.text, "--steps",
                             str(steps), "--threads", "1", "--save", file,
                             "--evaluate-samples", "0", *more)
        self.assertEqual(result.returncode, 0, result.stderr)
        return self.read("expected")

    def huge(self):
        """Finite weights with which the loss is not finite."""
        whole = self.of_steps(0)
        (length,) = struct.unpack_from("<Q", whole)
        kind = next(entry["dtype"]
                    for name, entry in json.loads(whole[8:8 + length]).items()
                    if name != "__metadata__")
        values = array.array({"F64": "d", "F32": "f"}[kind], whole[8 + length:])
        largest = {"F64": 1e300, "F32": 1e30}[kind]
        for i, value in enumerate(values):
            values[i] = largest if value >= 0 else -largest
        with open(self.path("huge"), "wb") as file:
            file.write(whole[:8 + length] + values.tobytes())
        return self.path("huge")

    def over_tcp(self, *arguments):
        port = str(free_port())
        ranks = [subprocess.Popen(
            [CHIMERA_RUN, *arguments], stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, cwd=self.folder,
            env=dict(ENVIRONMENT, RANK=str(rank), WORLD_SIZE=str(RANKS),
                     MASTER_ADDR="localhost", MASTER_PORT=port))
            for rank in range(RANKS)]
        ended = [rank.communicate(timeout=PATIENCE) for rank in ranks]
        return (max(rank.returncode for rank in ranks),
                "".join(errors for _, errors in ended))

    def test_a_loss_that_is_not_finite(self):
        huge = self.huge()
        arguments = self.arguments(20, "--load", huge)
        told = re.compile(
            r"^chimera-run: the loss of step 1 is (not a number|infinite): no update "
            r"came before it, so the initial weights or the data are the reason; the "
            r"last finite weights, before "
            rf"the first step, are in {re.escape(self.rescued)}$", re.MULTILINE)
        for where in ("threads", "simulated", "sequential", "mpi", "tcp"):
            if where == "mpi" and not MPIRUN:
                continue
            with self.subTest(where):
                if where == "tcp":
                    status, errors = self.over_tcp(*arguments)
                else:
                    more = {"simulated": ["--device", "simulated"],
                            "sequential": ["--sequential"]}.get(where, [])
                    result = self.run_it(*arguments, *more,
                                         ranks=RANKS if where == "mpi" else 0)
                    status, errors = result.returncode, result.stderr
                self.assertEqual(status, 1, errors)
                self.assertEqual(len(told.findall(errors)), 1, errors)
                self.assertFalse(os.path.exists(self.weights))
                with open(huge, "rb") as file:
                    self.assertEqual(self.read("weights.last-finite"), file.read())
                with open(self.log) as lines:
                    *steps, last = map(json.loads, lines)
                self.assertLessEqual(len(steps), 4, "expected it to stop soon")
                self.assertEqual(last["summary"]["diverged_in_step"], 1)
                os.remove(self.rescued)

    def test_without_save_it_ends_at_once(self):
        huge = self.huge()
        result = self.run_it(self.program, "--data", self.text, "--steps", "20",
                             "--load", huge)
        self.assertEqual(result.returncode, 1)
        self.assertIn("with --save the last finite weights are kept",
                      result.stderr)

    def stopped(self, ranks, number, receivers, *more):
        """Ends a run by a signal to its first `receivers` ranks. If `receivers` is 0,
        the signal goes to the process that started the ranks. Returns the run's status
        and output."""
        with Job(CHIMERA_RUN, self.program, ranks,
                 *self.arguments(ENDLESS, *more)[1:],
                 mpirun_waits=6 if receivers else MPIRUN_WAITS) as job:
            job.wait_for_steps()
            pids = list(job.ranks.values())[:receivers] or [job.process.pid]
            for pid in pids:
                send(pid, number)
            output, errors, *_ = job.end()
            return job.process.returncode, output, errors

    def check_stopped(self, number, status, output, errors, *more):
        found = re.search(rf"^stopped by {number.name} after step (\d+) of "
                          rf"{ENDLESS}$", output, re.MULTILINE)
        self.assertTrue(found, output + errors)
        steps = int(found[1])
        self.assertIn(f"ended by {number.name}; the last finite weights, after "
                      f"step {steps}, are in {self.rescued}\n", errors)
        self.assertNotIn("the ranks at that moment", errors)
        self.assertFalse(os.path.exists(self.weights))
        self.assertEqual(self.read("weights.last-finite"),
                         self.of_steps(steps, *more))
        with open(self.log) as lines:
            *each, last = map(json.loads, lines)
        self.assertEqual(len(each), steps)
        self.assertEqual(last["summary"]["stopped_by"], number.name)
        os.remove(self.rescued)

    def test_signals_leave_the_weights(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            for more in ([], ["--sequential"]):
                status, *said = self.stopped(0, number, 0, *more)
                self.assertEqual(status, 128 + number, said)
                self.check_stopped(number, status, *said, *more)
                self.assertEqual(
                    "SIGINT: within 25 s, the run ends after this step and saves the weights to "
                    f"{self.rescued}; a second SIGINT ends it at once; to stop a "
                    in said[1], number == signal.SIGINT)

    @unittest.skipUnless(MPIRUN, "needs MPI")
    def test_signals_of_a_job_leave_the_weights(self):
        # mpirun forwards both SIGINT and SIGTERM as SIGTERM.
        for number, receivers in ((signal.SIGTERM, 1), (signal.SIGTERM, RANKS),
                                  (signal.SIGTERM, 0), (signal.SIGINT, 0)):
            with self.subTest(number=number, receivers=receivers):
                status, *said = self.stopped(RANKS, number, receivers, *PATIENT)
                self.assertNotEqual(status, 0, said)
                self.check_stopped(signal.SIGTERM, status, *said)

    @unittest.skipUnless(MPIRUN, "needs MPI")
    def test_a_step_that_does_not_end(self):
        """One rank is stopped, so the step cannot end."""
        for again in (True, False):
            # Under mpirun, when one rank ends, all other ranks are ended too.
            grace = ["--grace", "60" if again else "1.5"]
            with Job(CHIMERA_RUN, self.program, RANKS,
                     *self.arguments(ENDLESS, *grace)[1:]) as job:
                job.wait_for_steps()
                os.kill(job.ranks[3], signal.SIGSTOP)
                time.sleep(0.3)
                begin = time.monotonic()
                os.kill(job.ranks[0], signal.SIGTERM)
                if again:
                    time.sleep(1)
                    self.assertTrue(job.alive(0))
                    os.kill(job.ranks[0], signal.SIGTERM)
                _, errors, *_ = job.end()
                took = time.monotonic() - begin
            self.assertGreater(took, 1 if again else 1.5)
            self.assertEqual(errors.count("the ranks at that moment:"), 1, errors)
            why = "at a second signal" if again else "1.5 s after the first signal"
            self.assertIn(f"ended by SIGTERM, which rank 0 received, {why}: the weights "
                          "are not saved\n", errors)
            self.assertFalse(os.path.exists(self.rescued))

    def test_no_grace(self):
        status, _, errors = self.stopped(0, signal.SIGTERM, 0, "--grace", "0")
        self.assertEqual(status, 128 + signal.SIGTERM)
        self.assertIn("ended by SIGTERM\n", errors)
        self.assertIn("to stop a run after its step, with its results, send "
                      "SIGUSR1", errors)
        self.assertFalse(os.path.exists(self.rescued))
        self.expect_error("--grace is time to save the weights: give --save or "
                          "--checkpoint too",
                          self.program, "--data", self.text, "--grace", "3")

    def into_a_pipe(self, steps, ranks, wait):
        """Saves into a pipe of 4 KiB. Sends SIGTERM after `wait` has returned. Returns
        the run's status, its output and errors, and all bytes that were read from the
        pipe."""
        os.mkfifo(self.weights)
        reader = os.open(self.weights, os.O_RDONLY | os.O_NONBLOCK)
        fcntl.fcntl(reader, fcntl.F_SETPIPE_SZ, 4096)
        os.set_blocking(reader, True)
        with Job(CHIMERA_RUN, self.program, ranks,
                 *self.arguments(steps, *PATIENT)[1:]) as job:
            job.wait_for_ranks()
            wait(job, reader)
            os.kill(job.ranks[0] if ranks else job.process.pid, signal.SIGTERM)
            time.sleep(0.3)
            # The process opens the pipe for writing only while it saves.
            self.assertTrue(select.select([reader], [], [], PATIENCE)[0])
            got = b"".join(iter(lambda: os.read(reader, 4096), b""))
            output, errors, *_ = job.end()
        os.close(reader)
        os.remove(self.weights)
        return job.process.returncode, output, errors, got

    def test_a_pipe_gets_all_weights(self):
        """--save is a pipe. There is no temporary file beside a pipe."""
        for ranks in (0, RANKS) if MPIRUN else (0,):
            with self.subTest(ranks=ranks):
                status, output, errors, got = self.into_a_pipe(
                    ENDLESS, ranks, lambda job, _: job.wait_for_steps())
                self.assertNotEqual(status, 0, errors)
                steps = int(re.search(r"^stopped by SIGTERM after step (\d+) of",
                                      output, re.MULTILINE)[1])
                self.assertIn("ended by SIGTERM; the last finite weights, after "
                              f"step {steps}, are in {self.weights}\n", errors)
                self.assertEqual(got, self.of_steps(steps))

    def test_a_signal_while_a_pipe_is_read(self):
        for ranks in (0, RANKS) if MPIRUN else (0,):
            with self.subTest(ranks=ranks):
                status, output, errors, got = self.into_a_pipe(
                    2, ranks,
                    lambda _, reader: select.select([reader], [], [], PATIENCE))
                self.assertEqual(status, 0, output + errors)
                self.assertEqual(got, self.of_steps(2))

    def test_the_next_run_starts_from_its_weights(self):
        with open(self.rescued, "wb") as file:
            file.write(self.of_steps(3))
        result = self.run_it(*self.arguments(0, "--load", self.rescued))
        self.assertEqual(result.returncode, 0, result.stderr)
        told = f"{self.rescued} is of an earlier run: this run replaces it if it"
        self.assertNotIn(told, result.stdout)
        self.assertIn(told, self.run_it(*self.arguments(0)).stdout)
        result = self.run_it(*self.arguments(0, "--load", self.rescued))
        self.assertEqual(self.read("weights"), self.read("weights.last-finite"))

    def test_the_file_is_checked_as_an_output(self):
        self.expect_error("expected different files",
                          *self.arguments(1)[:-1], self.rescued)

    def test_logs_of_all_runs_stay(self):
        """The logs of earlier runs are kept, also the log of a run that was killed."""
        with Job(CHIMERA_RUN, self.program, 0,
                 *self.arguments(ENDLESS)[1:]) as job:
            job.wait_for_steps()
            # A step is shown before it is logged.
            until = time.monotonic() + PATIENCE
            while b"\n" not in self.read("log.part"):
                self.assertLess(time.monotonic(), until, "expected a logged step")
                time.sleep(0.01)
            job.process.kill()
            job.process.communicate()
        killed = self.read("log.part")
        for run in range(2):
            self.assertEqual(self.run_it(*self.arguments(2 + run)).returncode, 0)
        self.assertEqual(self.read("log.1"), killed)
        # Count the lines of steps: the log also has lines about evaluations and the
        # summary.
        self.assertEqual(self.read("log.2").count(b'{"step":1,"loss"'), 1)
        self.assertEqual(self.read("log.2").count(b'"loss":'), 3)
        self.assertEqual(self.read("log").count(b'"loss":'), 4)


unittest.main(argv=sys.argv[:1], verbosity=2)
