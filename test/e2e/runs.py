"""Runs chimera-run with sample programs in a temporary folder, for the tests of its
output, its files and its errors.

The arguments of such a test are CHIMERA_RUN WRITE_SAMPLE [MPIRUN]. The test needs no
compiler, because WRITE_SAMPLE makes the programs. Without MPIRUN, tests over MPI are
skipped.
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest

from job import ENVIRONMENT, PATIENCE, tcp_environments

CHIMERA_RUN, WRITE_SAMPLE, *REST = sys.argv[1:]
MPIRUN = REST[0] if REST else None


class Runs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def sample(self, *options):
        """A program with these options. Each has a file of its own."""
        file = self.path("sample" + "".join(options).replace("/", "-") + ".chimera")
        subprocess.run([WRITE_SAMPLE, file, *options], check=True)
        return file

    def training(self, *arguments):
        """Arguments of chimera-run that train a model on a text."""
        text = self.path("text")
        with open(text, "w") as file:
            file.write("What is trained on. " * 20)
        return [self.sample("--model"), "--data", text, "--steps", "2",
                "--threads", "1", *arguments]

    def run_it(self, *arguments, ranks=0, environment={}, fails=False):
        command = [CHIMERA_RUN, *arguments]
        if ranks and fails:
            # Rank 0 reports an error of all ranks. The others wait for it four times as
            # long as they took to start, and then report it too. So each rank first
            # sleeps: they then wait for 20 s.
            command = ["sh", "-c", 'sleep 5; exec "$0" "$@"', *command]
        if ranks:
            command = [MPIRUN, "-n", str(ranks), "--oversubscribe", *command]
        return subprocess.run(command, capture_output=True, text=True,
                              timeout=PATIENCE, env=ENVIRONMENT | environment,
                              cwd=self.folder)

    def expect_error(self, text, *arguments, ranks=0):
        result = self.run_it(*arguments, ranks=ranks)
        if ranks and result.stderr.count(text) > 1:
            # On a busy machine rank 0 may be late.
            result = self.run_it(*arguments, ranks=ranks, fails=True)
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

    def over_tcp(self, ranks, *arguments, only=None):
        """Runs a job of `ranks` ranks over TCP. Returns the status and the output of
        each process. If `only` is given, starts only these ranks."""
        processes = [
            subprocess.Popen([CHIMERA_RUN, *arguments], text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             env=environment)
            for rank, environment in enumerate(tcp_environments(ranks, by_hand=True))
            if not only or rank in only]
        outputs = [process.communicate(timeout=PATIENCE)[0] for process in processes]
        return [(process.returncode, output)
                for process, output in zip(processes, outputs)]

    def shell(self, command, *arguments):
        return subprocess.run(["bash", "-c", command, CHIMERA_RUN, *arguments],
                              capture_output=True, text=True, timeout=PATIENCE)

    def read(self, name):
        with open(self.path(name), "rb") as file:
            return file.read()
