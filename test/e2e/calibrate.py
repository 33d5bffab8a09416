#!/usr/bin/env python3
# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calibrates (`chimera-run --calibrate`) over TCP, or over the transports that --over
names. The compiler must be able to time a pipeline for the machine that was written.
The times must be plausible for any host. Does the same with four threads that share two
cores. Then checks which options --calibrate refuses.

Several of these scripts run at once on the same cores. So the times are only compared
with wide limits."""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

import grid
from job import ENVIRONMENT, PATIENCE, tcp_environments

PIPELINE = """
chimera.model @m gpt2 layers(2) heads(2) width(64) context(32) vocabulary(256)
chimera.pipeline @p of @m on @here stages(2) micro_batches(4) schedule("1f1b")
"""
RANKS = 2
SHARERS = 4  # ranks that share cores


def calibrate(args, over, file):
    """Calibrates over the transport `over` and returns the output."""
    command = [args.tools / "chimera-run", "--calibrate", file]
    if over == "mpi":
        return grid.run(args.mpirun, "-n", RANKS, "--oversubscribe", *command)
    if over == "threads":
        return grid.run(*command, "--ranks", RANKS)
    processes = [
        subprocess.Popen(
            list(map(str, command)), env=place, stdout=subprocess.PIPE, text=True
        )
        for place in tcp_environments(RANKS, by_hand=True)
    ]
    outputs = [process.communicate(timeout=PATIENCE)[0] for process in processes]
    assert all(process.returncode == 0 for process in processes), outputs
    assert not outputs[1], outputs
    return outputs[0]


def check(args, folder, over):
    file = folder / f"{over}.mlir"
    output = calibrate(args, over, file)
    check_machine(args, file, output, RANKS)


def check_sharing(args, folder):
    """If ranks share cores, the written machine has the speed of a rank with a core of
    its own."""
    cores = sorted(os.sched_getaffinity(0))[:2]
    file = folder / "shared.mlir"
    output = grid.run(
        "taskset", "-c", ",".join(map(str, cores)), args.tools / "chimera-run",
        "--calibrate", file, "--ranks", SHARERS, "--threads", 1,
    )  # fmt: skip
    text = check_machine(args, file, output, SHARERS)
    assert f"node_devices({SHARERS}) node_cores({len(cores)})" in text, text
    measured = float(re.search(r"layers reach +([\d.]+) GFLOP/s", output)[1])
    alone = float(re.search(r'speed\("([\d.]+) GFLOP/s"\)', text)[1])
    times = SHARERS / len(cores)
    assert abs(alone - times * measured) < 0.01 * alone + 0.2, (alone, measured)


def check_machine(args, file, output, ranks):
    """Checks that the compiler can use the machine in `file`. Returns its text."""
    text = file.read_text()
    print(output, text, sep="\n", flush=True)
    for row in ("message: sender", "message: way", "message: receiver",
                "all-reduce's message", "layers reach", "updates move"):  # fmt: skip
        assert row in output, row
    assert f"@here devices({ranks})" in text
    speed = float(re.search(r'speed\("([\d.]+) GFLOP/s"\)', text)[1])
    bandwidth = float(re.search(r'memory_bandwidth\("([\d.]+) GB/s"\)', text)[1])
    assert 0.1 < speed < 10000 and 0.1 < bandwidth < 10000, text
    assert "all_reduce <" in text, text
    source, report = file.with_suffix(".pipeline"), file.with_suffix(".report")
    source.write_text(text + PIPELINE)
    grid.run(
        args.tools / "chimera-opt", source, "--chimera-to-scheduled",
        f"--chimera-report=format=json costs=stages output={report}", "-o", "/dev/null",
    )  # fmt: skip
    (entry,) = json.loads(report.read_text())
    # The time of 4 forwards and 4 backwards, in ns.
    assert entry["step"] > 1000, entry
    # A whole program compiles for the machine, too.
    grid.run(
        args.tools / "chimera-compile", source, "-o", file.with_suffix(".program")
    )
    return text


def refuse(args, needle, *arguments, environment=ENVIRONMENT):
    result = subprocess.run(
        [args.tools / "chimera-run", *map(str, arguments)],
        capture_output=True, text=True, env=environment, timeout=PATIENCE,
    )  # fmt: skip
    assert result.returncode == 1, (needle, result)
    assert needle in result.stderr, (needle, result.stderr)


def check_errors(args, folder):
    file = folder / "refused.mlir"
    calibrate = ["--calibrate", file]
    refuse(args, "--calibrate needs ranks: give --ranks N", *calibrate)
    refuse(args, "--ranks: expected a whole number in [2 - ", *calibrate, "--ranks", 1)
    refuse(args, "--calibrate measures without a program: leave out 'p.chimera'",
           "p.chimera", *calibrate, "--ranks", 2)  # fmt: skip
    refuse(args, "--steps is for running a program: leave it out with --calibrate",
           *calibrate, "--ranks", 2, "--steps", 3)  # fmt: skip
    refuse(args, "--calibrate measures times, and simulated devices have none",
           *calibrate, "--ranks", 2, "--device", "simulated")  # fmt: skip
    refuse(args, "--cuda-graphs is for running a program", *calibrate, "--ranks", 2,
           "--device", "cuda", "--cuda-graphs")  # fmt: skip
    refuse(args, "--calibrate measures model or synthetic stages: leave out "
           "--stages exact",
           *calibrate, "--ranks", 2, "--stages", "exact")  # fmt: skip
    refuse(args, "--unit-ns is for synthetic stages", *calibrate, "--ranks", 2,
           "--unit-ns", 1)  # fmt: skip
    refuse(args, "synthetic layers that take no time have none",
           *calibrate, "--ranks", 2, "--stages", "synthetic")  # fmt: skip
    refuse(args, "--all-reduce transport is for runs over MPI and on GPUs",
           *calibrate, "--ranks", 2, "--all-reduce", "transport")  # fmt: skip
    refuse(args, "--ranks is for --calibrate", "p.chimera", "--ranks", 2)
    refuse(args, "PROGRAM is required")
    refuse(args, "cannot write", "--calibrate", "/nowhere/here.mlir", "--ranks", 2)
    (alone,) = tcp_environments(1, by_hand=True)
    refuse(args, "--calibrate needs ranks: give --ranks N", *calibrate, environment=alone)
    refuse(args, "leave out --ranks: the launcher started one process",
           *calibrate, "--ranks", 2, environment=tcp_environments(2, by_hand=True)[0])  # fmt: skip
    assert not file.exists()


def seconds_computed(pid):
    """Processor time that a process has used, on all cores."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def kill_one(args, file, seconds):
    """Kills a rank of a calibration after it has used so much processor time. Returns
    the process of the other rank and its error output. Returns None if the calibration
    was done before, or had written its machine: then the ranks only wait for each other's
    end."""
    processes = [
        subprocess.Popen(
            [args.tools / "chimera-run", "--calibrate", file],
            env=place, stderr=subprocess.PIPE, text=True,
        )
        for place in tcp_environments(RANKS, by_hand=True)
    ]  # fmt: skip
    while processes[1].poll() is None and seconds_computed(processes[1].pid) < seconds:
        time.sleep(0.1)
    # First stop the rank, for a moment. If it had sent its last measurement, the other
    # rank now writes the machine.
    processes[1].send_signal(signal.SIGSTOP)
    time.sleep(2)
    done = processes[1].poll() is not None or file.exists()
    processes[1].kill()
    _, errors = processes[0].communicate(timeout=PATIENCE)
    processes[1].communicate()
    return None if done else (processes[0], errors)


def check_death(args, folder):
    """If a rank dies, the other rank ends and writes no machine."""
    file = folder / "dead.mlir"
    # After 2.5 s of processor time, a rank has certainly met the other one, because
    # loading takes only a small part of this time. On a busy machine a calibration may
    # use less than 2.5 s in all. Then shorter times are tried.
    for seconds in (2.5, 2, 1.6, 1.3):
        if left := kill_one(args, file, seconds):
            break
        file.unlink(missing_ok=True)
    assert left, "each calibration was done before a rank had computed for 1.3 s"
    process, errors = left
    assert process.returncode == 1, errors
    assert "rank 1 has ended" in errors, errors
    assert not file.exists()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tools", type=pathlib.Path, required=True)
    parser.add_argument("--mpirun")
    parser.add_argument(
        "--over", nargs="+", choices=["threads", "mpi", "tcp"], default=["tcp"]
    )
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        with concurrent.futures.ThreadPoolExecutor() as pool:
            started = [
                pool.submit(check_sharing, args, folder),
                pool.submit(check_errors, args, folder),
                pool.submit(check_death, args, folder),
            ]
            for over in args.over:
                check(args, folder, over)
            for each in started:
                each.result()


if __name__ == "__main__":
    os.environ.update(ENVIRONMENT)
    sys.exit(main())
