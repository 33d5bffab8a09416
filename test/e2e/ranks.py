#!/usr/bin/env python3
"""Tests jobs with ranks that differ, that never start, or whose death nobody noticed.

usage: ranks.py CHIMERA_RUN WRITE_SAMPLE

Over MPI each job must end by itself, with one clear reason.
"""
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from job import ENVIRONMENT, PATIENCE, Job, tcp_environments

CHIMERA_RUN, WRITE_SAMPLE = map(os.path.abspath, sys.argv[1:])


class Test(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.program = self.sample("sample.chimera", "--bidirectional")

    def sample(self, name, *options):
        file = os.path.join(self.folder, name)
        subprocess.run([WRITE_SAMPLE, file, *options], check=True)
        return file

    def errors_of(self, at_rank_2, *arguments):
        """Runs a job. Its rank 2 first runs a shell command, which may change the
        arguments. Returns the error output."""
        script = (f'if [ "$OMPI_COMM_WORLD_RANK" = 2 ]; then {at_rank_2}; fi; '
                  f'exec {CHIMERA_RUN} "$@"')
        result = subprocess.run(
            ["mpirun", "-n", "4", "--oversubscribe", "sh", "-c", script, "sh",
             *arguments], capture_output=True, text=True, timeout=PATIENCE,
            env=ENVIRONMENT)
        self.assertNotEqual(result.returncode, 0, result.stdout)
        return result.stderr

    def expect_disagreement(self, name, at_rank_2, *arguments):
        errors = self.errors_of(at_rank_2, *(arguments or [self.program]))
        self.assertEqual(errors.count("rank 0 (worker 0) failed: expected the "
                                      f"same {name} at every rank, but rank 2 "
                                      "has a different one than rank 0"), 1, errors)
        self.assertNotIn("the ranks at that moment", errors)

    def test_another_program(self):
        other = self.sample("other.chimera", "--bidirectional",
                            "--boundary-bytes", "128")
        self.expect_disagreement("program", f"set {other}")

    def test_another_number_of_steps(self):
        self.expect_disagreement("number of steps", 'set "$@" --steps 3')

    def test_another_way_to_reduce(self):
        self.expect_disagreement("--all-reduce",
                                 'set "$@" --all-reduce transport')

    def test_an_option_by_its_name(self):
        for option in ("--check-replicas", "--timeout 9", "--seed 9"):
            self.expect_disagreement(option.split()[0], f'set "$@" {option}')
        file = os.path.join(self.folder, "profile")
        self.expect_disagreement("--profile", f'set "$@" --profile {file}')
        self.expect_disagreement("--trace", f'set "$@" --trace {file}')

    def test_a_file_that_only_one_rank_is_to_write(self):
        file = os.path.join(self.folder, "file")
        self.expect_disagreement("--log", f'set "$@" --log {file}')
        text = os.path.join(self.folder, "text")
        with open(text, "w") as output:
            output.write("x" * 1000)
        self.expect_disagreement("--save", f'set "$@" --save {file}',
                                 self.sample("model.chimera", "--model"),
                                 "--data", text)

    def test_a_file_of_names_that_differs(self):
        for name in ("a", "b"):
            with open(os.path.join(self.folder, name), "w") as output:
                output.write(f'{{"layers.0.token_embedding": "{name}"}}')
        text = os.path.join(self.folder, "text")
        with open(text, "w") as output:
            output.write("x" * 1000)
        program = self.sample("model.chimera", "--model")
        options = [program, "--data", text, "--save",
                   os.path.join(self.folder, "w"), "--names", "a"]
        self.expect_disagreement(
            "--names", f"cd {self.folder}; set {' '.join(options[:-1])} b",
            *options[:-1], os.path.join(self.folder, "a"))

    def test_a_wrong_option_at_one_rank(self):
        errors = self.errors_of('set "$@" --wrong', self.program)
        self.assertEqual(errors.count("chimera-run: unknown option '--wrong'"),
                         1, errors)

    def text_of(self, rank):
        with open(os.path.join(self.folder, f"output-{rank}")) as output:
            return output.read()

    def start(self, rank, change):
        """Starts a rank by a shell that first makes a change."""
        with open(os.path.join(self.folder, f"output-{rank}"), "w") as output:
            self.ranks[rank] = subprocess.Popen(
                ["sh", "-c", f'{change}; exec {CHIMERA_RUN} "$@"', "sh", self.program,
                 "--timeout", "60"], stdout=output, stderr=subprocess.STDOUT,
                env=self.environments[rank])
        self.addCleanup(self.ranks[rank].kill)

    def start_waiting(self, last, changes=(":",) * 4):
        """Starts four ranks over TCP, but not rank `last`. Returns when the others say
        that they wait for it, or have ended."""
        self.environments, self.ranks = tcp_environments(4, by_hand=True), {}
        for rank in range(4):
            if rank != last:
                self.start(rank, changes[rank])
        begin = time.monotonic()
        while any("still waiting" not in self.text_of(rank) and process.poll() is None
                  for rank, process in self.ranks.items()):
            self.assertLess(time.monotonic() - begin, PATIENCE)
            time.sleep(0.05)

    def ends(self):
        """Waits until all ranks have ended, with an error. Returns the output of each."""
        for rank, process in self.ranks.items():
            self.assertEqual(process.wait(timeout=PATIENCE), 1, self.text_of(rank))
        return [self.text_of(rank) for rank in range(4)]

    def start_by_hand(self, last, *changes):
        """Starts four ranks over TCP, rank `last` when the others wait for it. All must
        end with an error. Returns the output of each."""
        self.start_waiting(last, changes)
        self.start(last, changes[last])
        return self.ends()

    def told_by_hand(self, last, reason, *changes):
        """Calls start_by_hand, and expects `reason` in each output. Returns the outputs."""
        # A rank 0 that fails at its start waits for only 2 s for ranks to ask it. On a busy
        # machine a rank may be later, so this case is tried up to five times.
        for _ in range(5 if last == 0 else 1):
            texts = self.start_by_hand(last, *changes)
            if all(reason in text for text in texts):
                break
        for text in texts:
            self.assertIn(reason, text)
        return texts

    def test_a_rank_that_fails_before_the_meeting_says_so_to_all(self):
        for rank, change, reason in ((2, "set nothere", "cannot open"),
                                     (0, 'set "$@" --wrong', "--wrong")):
            changes = [":"] * 4
            changes[rank] = change
            texts = self.told_by_hand(rank, reason, *changes)
            for other, text in enumerate(texts):
                if other != rank:
                    self.assertIn(f"rank {rank} failed: ", text)

    def test_a_rank_that_hears_late_of_a_failure(self):
        """Rank 0 serves the store where ranks meet. It must not end before rank 1, which
        is stopped for some seconds, has read the reason there."""
        self.start_waiting(2)
        late = self.ranks[1]
        late.send_signal(signal.SIGSTOP)
        self.start(2, "set nothere")
        # Rank 0 says after 5 s that it waits, and ends after 30 s at the earliest.
        begin = time.monotonic()
        while ("still waiting until all other ranks have read this"
               not in self.text_of(0) and self.ranks[0].poll() is None):
            self.assertLess(time.monotonic() - begin, PATIENCE)
            time.sleep(0.05)
        late.send_signal(signal.SIGCONT)
        texts = self.ends()
        for rank, text in enumerate(texts):
            self.assertIn("cannot open", text, f"rank {rank}")
        self.assertIn("still waiting until all other ranks have read this", texts[0])

    def test_only_the_root_needs_the_folder_of_an_output(self):
        """The root of this program is rank 0, which computes the loss of the up
        pipeline."""
        file = os.path.join(self.folder, "only", "log")
        texts = self.told_by_hand(0, file, *[f'set "$@" --log {file}'] * 4)
        self.assertIn(f"chimera-run: {file}", texts[0])
        for text in texts[1:]:
            self.assertIn(f"chimera-run: rank 0 failed: {file}", text)

    def test_a_rank_that_never_starts(self):
        errors = self.errors_of("kill -STOP $$", self.program, "--timeout", "1")
        # mpirun ends the other ranks when the first rank times out.
        self.assertIn("chimera-run: timed out after 1 s waiting for all ranks "
                      "to start", errors)

    def test_a_rank_that_is_stopped_while_all_start(self):
        """Over TCP, a rank is stopped after the ranks have met and before the first
        step. Another rank must name the stopped rank."""
        def start(*arguments):
            ranks = [subprocess.Popen(
                [CHIMERA_RUN, self.program, *arguments],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                env=environment) for environment in tcp_environments(4)]
            for rank in ranks:
                self.addCleanup(rank.kill)
            return ranks

        def start_all(timeout):
            """Starts all ranks, and waits until they have met. On a busy machine, they
            may need more time than the timeout. Then takes a longer one."""
            for _ in range(4):
                timeout = min(timeout, PATIENCE / 3)
                ranks = start("--timeout", f"{timeout:.0f}", "--steps", "1000000")
                # The root prints this line after it has met the other ranks.
                if "over TCP" in ranks[0].stdout.readline():
                    return ranks
                for rank in ranks:
                    rank.communicate(timeout=PATIENCE)
                timeout *= 3
            return self.fail("expected all ranks to start")

        # On a busy machine, ranks need more time to start.
        begin = time.monotonic()
        for rank in start("--steps", "1"):
            rank.communicate(timeout=PATIENCE)
        timeout = 3 + 5 * (time.monotonic() - begin)
        victim = 2
        for _ in range(3):
            ranks = start_all(timeout)
            ranks[victim].send_signal(signal.SIGSTOP)
            texts = [rank.communicate(timeout=PATIENCE)[1] for rank in ranks]
            # A rank that waits for long until all others have started says so.
            texts = [re.sub(r"\nchimera-run: still waiting .*\n", "", text)
                     for text in texts]
            self.assertEqual([rank.returncode for rank in ranks], [1] * 4, texts)
            named = re.compile(rf"chimera-run: rank {victim} (\(worker {victim}\) )?"
                               "is stopped")
            told = [text for text in texts if named.search(text)]
            # Two ranks may time out at the same moment.
            self.assertTrue(told, texts)
            # Another rank may learn of the failure while it starts, and may then say
            # so.
            for text in texts:
                if text not in told and text.strip():
                    self.assertRegex(text, r"^chimera-run: aborted: rank \d failed: ")

    def test_a_rank_in_a_container(self):
        """A rank in a PID namespace of its own cannot be watched, but it must train."""
        own = ["unshare", "--pid", "--fork", "--mount-proc"]
        if subprocess.run([*own, "true"], capture_output=True).returncode:
            self.skipTest("needs the right to make a PID namespace")
        script = (f'if [ "$OMPI_COMM_WORLD_RANK" = 2 ]; then '
                  f'exec {" ".join(own)} {CHIMERA_RUN} "$@"; fi; '
                  f'exec {CHIMERA_RUN} "$@"')
        # Open MPI's shared memory does not work between PID namespaces.
        result = subprocess.run(
            ["mpirun", "--mca", "btl", "tcp,self", "-n", "4", "--oversubscribe",
             "sh", "-c", script, "sh", self.program], capture_output=True,
            text=True, timeout=PATIENCE, env=ENVIRONMENT)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stderr.count(
            "cannot watch these ranks on the host of rank 0: 2 "), 1,
            result.stderr)

    def test_a_dead_rank_that_no_rank_waits_for(self):
        with Job(CHIMERA_RUN, self.program, 4, "--stages", "synthetic",
                 "--unit-ns", "2e6", "--steps", "1000000") as job:
            job.wait_for_steps()
            # Stop mpirun, so that the dead rank stays in the process table.
            os.kill(job.process.pid, signal.SIGSTOP)
            self.addCleanup(job.process.send_signal, signal.SIGCONT)
            os.kill(job.ranks[1], signal.SIGKILL)
            begin = time.monotonic()
            while any(job.alive(rank) for rank in job.ranks):
                self.assertLess(time.monotonic() - begin, PATIENCE)
                time.sleep(0.01)
            job.process.send_signal(signal.SIGCONT)
            _, errors = job.process.communicate(timeout=PATIENCE)
        self.assertEqual(errors.count("rank 1 (worker 1), process "
                                      f"{job.ranks[1]}, died; its last "
                                      "instruction was step"), 1, errors)


unittest.main(argv=sys.argv[:1], verbosity=2)
