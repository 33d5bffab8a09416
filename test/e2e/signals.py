#!/usr/bin/env python3
"""Sends signals to chimera-run, as threads and over MPI.

usage: signals.py CHIMERA_RUN WRITE_SAMPLE [MPIRUN]

After SIGINT or SIGTERM there must be one report, and the status must be 128 + signal.
The report has every rank in the middle of its step, which would take long to end by
itself. For both signals, mpirun sends ranks a SIGTERM, after 1 s.
After SIGUSR1 the status must be 0, and the log and the weights must be those of a run of
exactly as many steps.
"""
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

from job import PATIENCE, Job, check, fill, lines_on, names_a_waiter, send

CHIMERA_RUN, WRITE_SAMPLE, *MPIRUN = sys.argv[1:]
RANKS = 4
# The actions take 2 and 4 ms. The run takes an hour, so every signal comes in the
# middle of a step.
SLEEPING = ["--stages", "synthetic", "--unit-ns", "2e6", "--steps", "1000000"]


def check_report(errors, headline):
    """Checks the report. Returns whether it names a rank that waits for another."""
    check(errors.count("the ranks at that moment:") == 1,
          "expected one report", errors)
    check(re.search(rf"^chimera-run: {headline}$", errors, re.MULTILINE),
          f"expected the report to open with {headline!r}", errors)
    for rank in range(RANKS):
        lines = lines_on(errors, rank)
        check(len(lines) == 1, f"expected one line on rank {rank}", errors)
        check(", from sample.mlir:" in lines[0],
              f"expected the source of rank {rank}'s action", errors)
    return names_a_waiter(errors, RANKS)


def end(program, number, ranks, to_ranks):
    """Sends the signal to the first `to_ranks` ranks. If `to_ranks` is 0, sends it to
    mpirun or to the single process."""
    for _ in range(5):
        # Between two steps, no rank may wait for another for a moment. This moment may
        # be long on a busy machine.
        if end_once(program, number, ranks, to_ranks):
            return
    check(False, "expected some rank to wait for another in some report")


def end_once(program, number, ranks, to_ranks):
    """Starts a job and sends it the signal. Returns whether the report names a rank that
    waits for another."""
    with Job(CHIMERA_RUN, program, ranks, *SLEEPING) as job:
        job.wait_for_steps()
        pids = list(job.ranks.values())[:to_ranks] or [job.process.pid]
        for pid in pids:
            send(pid, number)
        _, errors, took, _ = job.end()
    received = signal.SIGTERM if ranks and not to_ranks else number
    told = f"{to_ranks} of them" if to_ranks else "the job"
    print(f"{number.name} to {told}, "
          f"{ranks or 'no'} processes: ended after {took:.3f} s with status "
          f"{job.process.returncode}")
    waits = check_report(errors, f"ended by {received.name}"
                         + (r", which rank \d received" if ranks else ""))
    direct = to_ranks or not ranks
    check(job.process.returncode == 128 + number if direct
          else job.process.returncode != 0,
          f"got status {job.process.returncode}", errors)
    return waits


def end_unheard(program):
    """The pipe for standard error is full, and nobody reads it. The run must still
    end."""
    reader, writer = os.pipe()
    fill(writer)
    with subprocess.Popen([CHIMERA_RUN, program, *SLEEPING], stderr=writer,
                          stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            if line.startswith("step "):
                break
        process.send_signal(signal.SIGINT)
        try:
            status = process.wait(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            status = f"none within {PATIENCE} s"
    os.close(reader)
    os.close(writer)
    check(status == 128 + signal.SIGINT,
          f"expected SIGINT to end a run that nobody reads, got {status}")
    print("SIGINT with a full pipe for errors: ended")


def summary_of(log):
    with open(log) as lines:
        *steps, last = [json.loads(line) for line in lines]
    return steps, last["summary"]


def stop(program, folder, ranks, one_only=False, sequential=False):
    log = os.path.join(folder, "log")
    options = ["--sequential"] if sequential else []
    with Job(CHIMERA_RUN, program, ranks, "--steps", "100000000", "--log", log,
             *options) as job:
        job.wait_for_steps()
        time.sleep(0.2)
        os.kill(job.ranks[2] if one_only else job.process.pid, signal.SIGUSR1)
        output, errors, took, _ = job.end()
    check(job.process.returncode == 0,
          f"expected status 0, got {job.process.returncode}", errors)
    check("the ranks at that moment" not in errors, "expected no report",
          errors)
    steps, summary = summary_of(log)
    check(0 < len(steps) == summary["steps"] < 100000000,
          f"{len(steps)} steps in the log, {summary['steps']} in its summary")
    check(f"stopped by SIGUSR1 after step {len(steps)} of" in output,
          "expected to be told of the stop", output)
    subprocess.run([CHIMERA_RUN, program, "--steps", str(len(steps)), "--log",
                    log, "--quiet", *options], check=True,
                   capture_output=True)
    whole, whole_summary = summary_of(log)
    check([step["loss"] for step in steps] == [step["loss"] for step in whole],
          "expected the losses of an undisturbed run")
    check(summary["weights_digest"] == whole_summary["weights_digest"],
          "expected the weights of an undisturbed run")
    print(f"SIGUSR1, {ranks or 'no'} processes{', one told' * one_only}"
          f"{', sequential' * sequential}: stopped within {took:.3f} s after "
          f"step {len(steps)}")


def main():
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "sample.chimera")
        subprocess.run([WRITE_SAMPLE, program, "--bidirectional"], check=True)
        for number in (signal.SIGINT, signal.SIGTERM):
            end(program, number, 0, 0)
            if MPIRUN:
                end(program, number, RANKS, 0)
        if MPIRUN:
            for to_ranks in (RANKS, 1):
                end(program, signal.SIGTERM, RANKS, to_ranks)
        end_unheard(program)
        stop(program, folder, 0)
        stop(program, folder, 0, sequential=True)
        if MPIRUN:
            stop(program, folder, RANKS)
            stop(program, folder, RANKS, one_only=True)


main()
