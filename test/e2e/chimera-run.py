#!/usr/bin/env python3
"""Runs chimera-run as a user does: results, command lines and errors.

usage: chimera-run.py CHIMERA_RUN WRITE_SAMPLE [MPIRUN]
"""
import fcntl
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import unittest

from job import ENVIRONMENT, PATIENCE
from runs import CHIMERA_RUN, MPIRUN, Runs


class Test(Runs):
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

    def test_simulated_devices_equal_sequential(self):
        for options in ([], ["--bidirectional", "--split"],
                        ["--data-parallel", "2", "--micro-batches", "4"]):
            program = self.sample(*options)
            expected, alone = self.log_of(program, "--steps", "3",
                                          "--sequential")
            for seed in ("0", "1", "2"):
                losses, summary = self.log_of(
                    program, "--steps", "3", "--check-replicas", "--device",
                    "simulated", "--device-seed", seed)
                self.assertEqual(losses, expected)
                self.assertEqual(summary["weights_digest"],
                                 alone["weights_digest"])
                for rank in summary["ranks"]:
                    self.assertEqual(rank["host_blocks_in_steps"], 0)

    def test_tcp_equals_sequential(self):
        for options in (["--bidirectional"],
                        ["--workers", "2", "--data-parallel", "2",
                         "--boundary-bytes", "262144"]):
            program = self.sample(*options)
            expected, alone = self.log_of(program, "--steps", "3",
                                          "--sequential")
            log = self.path("tcp.jsonl")
            for status, output in self.over_tcp(4, program, "--steps", "3",
                                                "--check-replicas", "--log",
                                                log):
                self.assertEqual(status, 0, output)
            with open(log) as lines:
                *steps, last = [json.loads(line) for line in lines]
            self.assertEqual([step["loss"] for step in steps], expected)
            self.assertEqual(last["summary"]["weights_digest"],
                             alone["weights_digest"])

    def test_tcp_reports_missing_settings(self):
        program = self.sample("--workers", "2")
        self.expect_error("--transport tcp needs a rank and the address of rank 0",
                          program, "--transport", "tcp")
        # Rank 1 never starts. On a busy machine, rank 0 may need longer than a short
        # timeout to serve the address.
        for seconds in ("1", "4", "16", "64"):
            [(status, output)] = self.over_tcp(2, program, "--timeout", seconds,
                                               only=[0])
            self.assertEqual(status, 1)
            if "cannot meet the other ranks" not in output:
                break
        self.assertRegex(output, r"these ranks did not connect to 127.0.0.1 port "
                                 r"\d+: 1|timed out .* all ranks to start")
        # Rank 0, which listens, never starts.
        [(status, output)] = self.over_tcp(2, program, "--timeout", "1",
                                           only=[1])
        self.assertEqual(status, 1)
        self.assertRegex(output, r"cannot meet the other ranks at 127.0.0.1|"
                                 r"timed out .* all ranks to start")

    def test_options_that_simulated_devices_refuse(self):
        for options, needle in (
                (["--sequential"], "leave out --sequential"),
                (["--transport", "mpi"], "leave out --transport mpi"),
                (["--profile", "p.json"], "--profile needs real durations"),
                (["--trace", "t.json"], "--trace needs real durations"),
        ):
            self.expect_error(needle, self.sample(), "--device", "simulated",
                              *options)
        self.expect_error("--device-seed is for --device simulated", self.sample(),
                          "--device-seed", "7")

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
        for progress, how in (("on", "over MPI with a progress thread each"),
                              ("off", "over MPI")):
            result = self.run_it(program, "--steps", "1", "--progress",
                                 progress, ranks=2)
            self.assertIn(f", 2 processes {how}, ", result.stdout)

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

    def test_graphs_are_for_gpus(self):
        self.expect_error("--cuda-graphs is for --device cuda", self.sample(),
                          "--cuda-graphs")

    def test_options_that_gpus_refuse(self):
        program = self.sample()
        for text, *options in (
                ("--device cuda is for pipelines", "--sequential"),
                ("--cuda-graphs is for model stages", "--cuda-graphs"),
                ("GPUs move messages while they compute", "--progress", "on")):
            self.expect_error(text, program, "--device", "cuda", *options)

    @unittest.skipIf(shutil.which("nvidia-smi"), "there may be a GPU")
    def test_a_missing_gpu(self):
        result = self.run_it(self.sample(), "--device", "cuda")
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr,
                         "expected a GPU that CUDA can use, got none|"
                         "this chimera was built without CUDA|cannot load ")
        self.assertEqual(result.stderr.count("\n"), 1)

    def test_synthetic(self):
        losses, summary = self.log_of(self.sample(), "--stages", "synthetic",
                                      "--unit-ns", "1e6", "--steps", "2e0")
        self.assertEqual(losses, [0, 0])
        # There are two steps. In each step a worker runs 8 micro-batches, and each
        # micro-batch takes 1 + 2 ms.
        self.assertGreater(summary["seconds"], 0.048)
        self.assertGreater(summary["instructions"], 0)

    def test_log_of_memory_and_waiting(self):
        """The mean share of waiting in the log is that in the profile."""
        for ranks in (0, 4) if MPIRUN else (0,):
            # On a busy machine, one step may take as long as all others, and the mean
            # over the steps is another one than that over the time. Then try again.
            for _ in range(5):
                steps, logged, expected = self.waiting(ranks)
                self.assertGreater(expected, 0.05)
                if abs(logged - expected) < 0.1:
                    break
            self.assertAlmostEqual(logged, expected, delta=0.1)
            for step in steps:
                self.assertGreater(step["resident_bytes"], 10**6)
                # It is the memory of a process, not of the machine.
                self.assertLess(step["resident_bytes"], 2 * 10**9)
                for name in ("device_bytes", "tokens_per_s", "samples_per_s"):
                    self.assertNotIn(name, step)

    def waiting(self, ranks):
        """Runs 20 steps. Returns their lines in the log, and the mean share of waiting
        in the log and in the profile."""
        log, profile = self.path("log.jsonl"), self.path("profile")
        self.log_of(self.sample(), "--stages", "synthetic", "--unit-ns", "1e6",
                    "--steps", "20", "--profile", profile, ranks=ranks)
        with open(log) as lines:
            steps = [json.loads(line) for line in lines][:-1]
        with open(profile) as text:
            measured = json.load(text)
        os.remove(log)
        os.remove(profile)
        waits = statistics.mean(
            sum(wait["total"] for wait in rank["waits"].values())
            for rank in measured["ranks"])
        return (steps, statistics.mean(step["waiting"] for step in steps[1:]),
                waits / measured["steps"]["later"]["total"])

    def test_log_of_a_training(self):
        log = self.path("log.jsonl")
        for more in ([], ["--sequential"]):
            self.log_of(*self.training("--evaluate-samples", "0", *more))
            with open(log) as lines:
                steps = [json.loads(line) for line in lines if '"loss"' in line][:2]
            for step in steps:
                names = ["step", "loss", "learning_rate", "tokens_per_s",
                         "resident_bytes", "waiting", "seconds"]
                if more:  # One rank waits for nobody.
                    names.remove("waiting")
                self.assertEqual(list(step), names)
                self.assertGreater(step["tokens_per_s"], 0)
            os.remove(log)

    def test_prints_progress_and_result(self):
        ranks = os.cpu_count() + 1
        program = self.sample("--workers", str(ranks), "--time-unit", "us")
        result = self.run_it(program, "--steps", "2")
        self.assertRegex(result.stdout, rf"^\S+ \(\S+\): {ranks} workers x 1 "
                         rf"copy, {ranks} threads of this process, ")
        self.assertRegex(result.stdout, rf"\n{ranks} ranks share \d+ cores?: "
                         "steps take longer than predicted, unless "
                         rf"chimera.machine has node_devices\({ranks}\) "
                         r"node_cores\(\d+\)\n")
        self.assertRegex(result.stdout, r"step 2/2  .* steps/s  ETA 0:00")
        self.assertIn("digest of the weights ", result.stdout)
        untimed = self.sample("--workers", str(ranks))
        self.assertRegex(self.run_it(untimed, "--steps", "2").stdout,
                         rf"\n{ranks} ranks share \d+ cores?, so a step takes "
                         "longer than with a core for each rank\n")
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
            "program expects 4 ranks (4 workers x 1 copy), got 3 from "
            "mpirun: run mpirun -n 4 chimera-run", self.sample(), ranks=3)
        self.expect_error("got 1: run mpirun -n 4", self.sample(),
                          "--transport", "mpi")

    @unittest.skipUnless(MPIRUN, "MPI was not found")
    def test_one_process_only(self):
        self.expect_error("--sequential needs one process, got 2 from mpirun",
                          self.sample(), "--sequential", ranks=2)
        self.expect_error("--transport in-process needs one process, got 4",
                          self.sample(), "--transport", "in-process", ranks=4)

    def test_a_launcher_of_one_process_runs_all_ranks(self):
        """The environment is that of a shell that `srun --pty bash` started."""
        slurm = {"SLURM_JOB_ID": "1", "SLURM_PROCID": "0",
                 "SLURM_STEP_NUM_TASKS": "1", "SLURM_NTASKS": "1",
                 "SLURM_NTASKS_PER_NODE": "1", "SLURM_LOCALID": "0",
                 "SLURM_STEP_ID": "0", "SLURM_PTY_PORT": "40000"}
        by_hand = {"RANK": "0", "WORLD_SIZE": "1"}
        program = self.sample()
        _, alone = self.log_of(program, "--steps", "2", "--sequential")
        for environment in (slurm, {"PMI_RANK": "0", "PMI_SIZE": "1"}, by_hand,
                            {**by_hand, "TORCHELASTIC_RUN_ID": "7"}):
            for more in ([], ["--transport", "in-process"], ["--sequential"],
                         ["--device", "simulated"]):
                log = self.path("log.jsonl")
                result = self.run_it(program, "--steps", "2", "--log", log,
                                     *more, environment=environment)
                self.assertEqual(result.returncode, 0, result.stderr)
                with open(log) as lines:
                    summary = json.loads(lines.readlines()[-1])["summary"]
                self.assertEqual(summary["weights_digest"],
                                 alone["weights_digest"])
        # A calibration runs its ranks as threads, too.
        result = self.run_it("--calibrate", "here.mlir", "--ranks", "2",
                             "--stages", "synthetic", "--unit-ns", "1",
                             environment=slurm)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("2 ranks, threads of one process", result.stdout)
        # A transport between processes is refused. So is a job with another number of
        # ranks than the program.
        result = self.run_it(program, "--transport", "mpi", environment=slurm)
        self.assertIn("program expects 4 ranks (4 workers x 1 copy), got 1 "
                      "from srun", result.stderr)
        result = self.run_it(program,
                             environment={**slurm, "SLURM_STEP_NUM_TASKS": "3"})
        self.assertIn("got 3 from srun", result.stderr)

    def test_options_that_others_have(self):
        for option, needle in (
                ("--warmup-steps=7", "did you mean '--warmup'?"),
                ("--lr-warmup-iters", "did you mean '--warmup'?"),
                ("--warmup-ratio", "give a number of steps to --warmup"),
                ("--lr-scheduler", "did you mean '--lr-schedule'?"),
                ("--lr-decay-style", "did you mean '--lr-schedule'?"),
                ("--lr-decay-iters", "did you mean '--lr-steps'?"),
                ("--lr-wsd-decay-iters", "did you mean '--decay-steps'?"),
                ("--nesterov", "set nesterov of chimera.training"),
                ("--clip", "did you mean '--clip-norm'?"),
                ("--max-grad-norm", "did you mean '--clip-norm'?"),
                ("--resume-from", "--resume FOLDER continues from a checkpoint"),
                ("--checkpoint-interval", "with --checkpoint-every and --keep"),
                ("--lr", "did you mean '--learning-rate'?"),
                ("--random-seed", "did you mean '--seed'?"),
                ("--bf16", "set activation_type(bf16) of chimera.pipeline"),
                ("--dtype=bfloat16", "set weight_type(…) and activation_type(…)"),
                ("--optimizer", "set optimizer(…) of chimera.training to adamw, muon "
                                "or sgd"),
                ("--tp", "tensor parallelism is not supported yet: a stage is "
                         "on one worker"),
                ("--tensor-model-parallel-size", "tensor parallelism is not "
                                                 "supported yet"),
                ("--sequence-parallel", "sequence parallelism is not supported "
                                        "yet"),
                ("--expert-parallel", "expert parallelism is not supported "
                                      "yet"),
                ("--zero-stage", "ZeRO is not supported yet: a stage is on one "
                                 "worker, with all of its state"),
                ("--max-epochs", "set the length of a run with --steps or "
                                 "--epochs")):
            self.expect_error(f"unknown option '{option.split('=')[0]}': ",
                              self.sample(), option, "7")
            self.expect_error(needle, self.sample(), option, "7")
        for option, word, meant in (("--device", "gpu", "cuda"),
                                    ("--device", "cpu", "host"),
                                    ("--tokens", "text", "bytes"),
                                    ("--tokens", "int32", "uint32"),
                                    ("--stages", "syntetic", "synthetic")):
            self.expect_error(f"got {word}: did you mean {meant}?",
                              self.sample(), option, word)

    def test_model_stages_need_a_model_and_data(self):
        program = self.sample()
        self.expect_error("model stages need a program with a model",
                          program, "--stages", "model")
        self.expect_error("give --data FILE", self.sample("--model"))
        program = self.sample()
        text = self.path("text")
        with open(text, "w") as file:
            file.write("x" * 100000)
        self.expect_error("got one of bare stages", program,
                          "--stages", "model", "--data", text)

    def test_options_without_effect(self):
        program = self.sample()
        for option, value in (("--data", "file"), ("--save", "file"),
                              ("--save-gradients", "file"),
                              ("--hold-out", "0.5"),
                              ("--evaluate-samples", "3")):
            self.expect_error(f"{option} is for model stages, "
                              "and the program has no model", program, option,
                              value)
        self.expect_error("--unit-ns is for synthetic stages, and --stages is "
                          "exact", program, "--stages", "exact", "--unit-ns",
                          "5")
        self.expect_error("--check-replicas is for model and "
                          "exact stages, and --stages is synthetic", program,
                          "--stages", "synthetic", "--check-replicas")
        self.expect_error("--check-replicas is for pipelines", program,
                          "--sequential", "--check-replicas")

    def test_files_have_names(self):
        program = self.sample()
        for option in ("--data", "--save", "--save-gradients", "--log",
                       "--profile", "--trace"):
            self.expect_error(f"{option}: expected a file, got an empty name",
                              program, option, "")
            self.expect_error(f"{option}: expected a file, got -: write ./-",
                              program, option, "-")
        for option in ("--checkpoint", "--resume", "--tensorboard"):
            self.expect_error(f"{option}: expected a folder, got an empty name",
                              program, option, "")
        self.expect_error("PROGRAM: expected a file, got an empty name", "")

    def test_no_steps(self):
        losses, summary = self.log_of(self.sample(), "--steps", "0")
        _, alone = self.log_of(self.sample(), "--steps", "0", "--sequential")
        self.assertEqual(losses, [])
        self.assertEqual(summary["weights_digest"], alone["weights_digest"])
        self.expect_error("--save-gradients needs at least one step",
                          self.sample(), "--steps", "0", "--save-gradients",
                          self.path("gradients"))

    def openmp_policy(self, *arguments, **environment):
        """The wait policy with which OpenMP was loaded, or None if it was not loaded."""
        inherited = {name: value for name, value in ENVIRONMENT.items()
                     if name != "OMP_WAIT_POLICY"}
        result = subprocess.run(
            [CHIMERA_RUN, *arguments], capture_output=True, text=True, check=True,
            timeout=PATIENCE, env=inherited | {"OMP_DISPLAY_ENV": "true"} | environment)
        found = re.search("OMP_WAIT_POLICY = '(.*)'", result.stderr)
        return found and found[1]

    def test_libtorch_is_loaded_on_demand(self):
        trains = self.training()
        self.assertIsNone(self.openmp_policy("--help"))
        self.assertIsNone(self.openmp_policy(self.sample()))
        self.assertEqual(self.openmp_policy(*trains), "PASSIVE")
        self.assertEqual(self.openmp_policy(*trains, OMP_WAIT_POLICY="active"), "ACTIVE")

    def test_without_the_module_for_libtorch(self):
        alone = self.path("chimera-run")
        shutil.copy(CHIMERA_RUN, alone)
        for arguments, status, error in (
                ([self.sample()], 0, ""),
                (self.training(), 1,
                 "this chimera is not complete: expected chimera_torch.so in ")):
            result = subprocess.run([alone, *arguments], capture_output=True,
                                    text=True, timeout=PATIENCE, env=ENVIRONMENT)
            self.assertEqual(result.returncode, status, result.stderr)
            self.assertIn(error, result.stderr)

    def test_without_the_module_for_mpi(self):
        alone = self.path("chimera-run")
        shutil.copy(CHIMERA_RUN, alone)
        of_mpirun = {f"OMPI_COMM_WORLD_{name}": value for name, value in (
            ("SIZE", "4"), ("RANK", "0"), ("LOCAL_SIZE", "4"), ("LOCAL_RANK", "0"))}
        result = subprocess.run(
            [alone, self.sample()], capture_output=True, text=True, timeout=PATIENCE,
            env=ENVIRONMENT | of_mpirun)
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn("this chimera was built without MPI: expected chimera_mpi.so in ",
                      result.stderr)

    @unittest.skipUnless(MPIRUN, "MPI was not found")
    def test_mpi_is_loaded_on_demand(self):
        linked = subprocess.run(["ldd", CHIMERA_RUN], capture_output=True, text=True,
                                check=True).stdout
        self.assertNotIn("libmpi", linked)

    @unittest.skipUnless(MPIRUN, "MPI was not found")
    def test_an_error_of_the_root_ends_a_job(self):
        # The root of this program is rank 3. Only the root writes a log.
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
                (["--hold-out", "1"], "--hold-out: expected a number in [0 - "
                 "0.99], got 1\n"),
                (["--stages", "magic"], "--stages: expected one of auto, "
                 "model, exact, synthetic, got magic\n"),
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

    def test_a_program_too_large_for_the_host(self):
        program = self.sample("--boundary-bytes", str(1 << 40))
        for ranks in (0, 4) if MPIRUN else (0,):
            result = self.run_it(program, "--log", "log", ranks=ranks, fails=True)
            self.assertNotEqual(result.returncode, 0)
            self.assertEqual(result.stderr.count("expected arenas that fit"), 1,
                             result.stderr)
            self.assertEqual(result.stdout, "")
            self.assertFalse(os.path.exists(self.path("log.part")))
        self.expect_error("expected weights, gradients and optimizer state "
                          "that fit into", program, "--sequential")

    def test_a_failure_ends_with_one_line_end(self):
        # The second stage waits some 10 ms for the first one's forward.
        result = self.run_it(self.sample(), "--stages", "synthetic", "--unit-ns",
                             "1e7", "--timeout", "0.001")
        self.assertNotEqual(result.returncode, 0, result.stdout)
        self.assertTrue(result.stderr.endswith("\n"))
        self.assertFalse(result.stderr.endswith("\n\n"), result.stderr)

    def test_data_without_an_end(self):
        self.expect_error("cannot read the text file '/dev/zero': expected a "
                          "file or a pipe, got a device",
                          self.sample("--model"), "--data", "/dev/zero")

    def test_linked_libraries(self):
        libraries = subprocess.run(["ldd", CHIMERA_RUN], text=True, check=True,
                                   capture_output=True).stdout
        self.assertIn("libstdc++", libraries)
        for name in ("libLLVM", "libMLIR", "libtorch", "libc10", "libgomp"):
            self.assertNotIn(name, libraries)

unittest.main(argv=sys.argv[:1], verbosity=2)
