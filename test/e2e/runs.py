"""chimera-run with samples in a folder of its own, for the tests that look at
what it prints, writes and refuses.

Such a test takes CHIMERA_RUN WRITE_SAMPLE [MPIRUN]. It needs no compiler:
WRITE_SAMPLE makes the programs. Without MPIRUN what runs over MPI is skipped.
"""
import os
import subprocess
import sys
import tempfile
import unittest

from job import ENVIRONMENT

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

    def shell(self, command, *arguments):
        return subprocess.run(["bash", "-c", command, CHIMERA_RUN, *arguments],
                              capture_output=True, text=True, timeout=60)

    def read(self, name):
        with open(self.path(name), "rb") as file:
            return file.read()
