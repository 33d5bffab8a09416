#!/usr/bin/env python3
"""Training data that chimera-run accepts, and its messages about files that are
not data.

usage: data.py CHIMERA_RUN WRITE_SAMPLE [MPIRUN]
"""
import gzip
import struct
import sys
import unittest

from runs import CHIMERA_RUN, MPIRUN, Runs


class Test(Runs):
    def write(self, name, content):
        with open(self.path(name), "wb") as file:
            file.write(content)
        return self.path(name)

    def test_data_of_another_kind(self):
        program = self.sample("--model")
        words = b"What is trained on. " * 60
        # Tokens in the format of numpy.save.
        header = b"{'descr': '<u2', 'fortran_order': False, 'shape': (600,), }"
        header = header.ljust(117) + b"\n"
        numbers = bytes(2 * 600)
        npy = b"\x93NUMPY\x01\x00" + bytes([118, 0]) + header + numbers
        for content, needle in (
                (npy, "expected text, got a NumPy array (.npy): write its "
                      "numbers alone"),
                (gzip.compress(words), "got compressed by gzip: decompress it"),
                (bytes(300_000), "got bytes of which 300000 of 300000 are 0: "
                 "give --tokens uint16 or uint32 if they are tokens, or "
                 "--tokens bytes"),
                (bytes.fromhex("0700ff01") * 400, "are 0: give --tokens uint16"),
                (words.decode().encode("utf-16"), "got text in UTF-16")):
            self.expect_error(needle, program, "--data",
                              self.write("data", content), "--steps", "2")
        with open(CHIMERA_RUN, "rb") as binary:
            self.write("data", binary.read(100_000))
        self.expect_error("got a program for processors (ELF)", program,
                          "--data", self.path("data"))
        self.expect_error("got a compiled program", program, "--data", program)
        self.expect_error("expected plain numbers, got a NumPy array", program,
                          "--data", self.write("data", npy), "--tokens",
                          "uint16")
        self.expect_error("expected a whole number of tokens of 2 bytes, got "
                          "601 bytes", program, "--data",
                          self.write("data", bytes(601)), "--tokens", "uint16")
        # If the user asks for bytes, an .npy file is read as bytes.
        result = self.run_it(program, "--data", self.write("data", npy),
                             "--tokens", "bytes", "--steps", "1", "--threads",
                             "1")
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_megatrons_data(self):
        program = self.sample("--model")
        text = b"What is trained on. " * 60
        data = self.write("text_document.bin",
                          b"".join(bytes([byte, 0, 0, 0]) for byte in text))
        steps = ["--data", data, "--steps", "2", "--threads", "1",
                 "--evaluate-samples", "0"]
        self.expect_error("every second number is as small as the upper half of "
                          "one of 32 bits: give --tokens uint32",
                          program, *steps, "--tokens", "uint16")
        plain = self.log_of(program, *steps, "--tokens", "uint32")[0]
        self.write("text_document.idx",
                   b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 4, 1, 2)
                   + struct.pack("<iqqq", len(text), 0, 0, 1))
        self.assertEqual(self.log_of(program, *steps)[0], plain)
        self.assertEqual(self.log_of(program, *steps, "--tokens", "uint32")[0],
                         plain)
        self.expect_error("text_document.idx' says int32: leave out --tokens",
                          program, *steps, "--tokens", "uint16")
        self.expect_error("got the index of a Megatron data set (.idx): give "
                          "the .bin file beside it", program, "--data",
                          self.path("text_document.idx"))
        with open(data, "ab") as file:
            file.write(bytes(4))
        self.expect_error("expected the 1200 tokens that its index", program,
                          *steps)

    def test_tokens_are_checked_before_the_first_step(self):
        program = self.sample("--model")
        numbers = [7, 9] * 50_000
        numbers[60_001] = 999
        data = self.write("tokens", struct.pack(f"<{len(numbers)}H", *numbers))
        arguments = [program, "--data", data, "--tokens", "uint16", "--steps",
                     "3", "--threads", "1", "--timeout", "300"]
        fault = ("expected tokens of the model's vocabulary of 256, got 999 as "
                 f"token 60001 of '{data}'")
        for more in ([], ["--sequential"], ["--device", "simulated"]):
            result = self.run_it(*arguments, *more)
            self.assertEqual(result.returncode, 1)
            self.assertEqual(result.stderr, f"chimera-run: {fault}\n")
            self.assertEqual(result.stdout, "")
        # Each rank of a job checks a part of the tokens. If one rank finds a fault, all
        # ranks end, and each host reports the fault once.
        statuses, outputs = zip(*self.over_tcp(4, *arguments))
        self.assertEqual(statuses, (1,) * 4)
        told = "".join(outputs)
        self.assertEqual(told.count(f"rank 0 (worker 0) failed: {fault}"), 1,
                         told)
        self.assertEqual(told.count("expected tokens"), 1, told)
        self.assertNotIn("step 1/", told)
        if MPIRUN:
            self.expect_error(f"failed: {fault}", *arguments, ranks=4)
        # With --trust-data, the run ends in the step that draws the wrong token. If no
        # step draws this token, the run completes.
        result = self.run_it(*arguments, "--trust-data")
        if result.returncode == 0:
            self.assertIn("final loss", result.stdout)
            self.assertEqual(result.stderr, "")
            self.assertIn(f"no unigram model: {fault}", result.stdout)
        else:
            self.assertIn("step ", result.stderr)

    def test_reports_a_long_token_check(self):
        tokens = 2**29 + 3
        data = self.path("tokens")
        with open(data, "wb") as file:
            file.truncate(2 * tokens)
            file.seek(2 * tokens - 2)
            file.write(b"\0\1")
        result = self.run_it(self.sample("--model"), "--data", data, "--tokens",
                             "uint16")
        self.assertEqual(result.stdout,
                         f"checking all {tokens} tokens before the first step "
                         "(--trust-data skips this)\n")
        self.assertIn(f"got 256 as token {tokens - 1} of '{data}'",
                      result.stderr)


unittest.main(argv=sys.argv[:1], verbosity=2)
