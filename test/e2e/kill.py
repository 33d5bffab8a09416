#!/usr/bin/env python3
"""Kills one rank of an mpirun job and looks at how the others end.

usage: kill.py CHIMERA_RUN PROGRAM [stop] (a program of 4 ranks)

Passes if every other rank is gone within 5 s, the status is not 0, and one
report names the dead rank with its last instruction, and every survivor with
the instruction it was in. With `stop` the rank is stopped, not killed, and a
wait for it must time out and name it.
"""
import os
import re
import signal
import subprocess
import sys
import time

RANKS = 4


def children(pid):
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat") as stat:
                    fields = stat.read().rsplit(")", 1)[1].split()
            except OSError:
                continue
            if int(fields[1]) == pid and fields[0] != "Z":
                found.append(int(entry))
    return found


def rank_of(pid):
    with open(f"/proc/{pid}/environ", "rb") as environment:
        for entry in environment.read().split(b"\0"):
            name, _, value = entry.partition(b"=")
            if name == b"OMPI_COMM_WORLD_RANK":
                return int(value)
    return None


def running(pid):
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def check(condition, message, report=""):
    if not condition:
        sys.exit(f"kill.py: {message}\n{report}")


def main():
    chimera_run, program, *mode = sys.argv[1:]
    stop = mode == ["stop"]
    victim = 2
    # Actions of 2 and 4 ms for an hour: the job is in the middle of something.
    job = subprocess.Popen(
        ["mpirun", "-n", str(RANKS), "--oversubscribe", chimera_run, program,
         "--stages", "synthetic", "--unit-ns", "2e6", "--steps", "1000000",
         "--timeout", "1" if stop else "100"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1",
                 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1"))
    try:
        # The first progress line says that all ranks train.
        line = ""
        for line in job.stdout:
            if line.startswith("step "):
                break
        check(line.startswith("step "), "the job did not start",
              line if job.poll() is None else job.stderr.read())
        ranks = {rank_of(pid): pid for pid in children(job.pid)}
        check(set(ranks) == set(range(RANKS)), f"found ranks {ranks}")

        killed = time.monotonic()
        os.kill(ranks[victim], signal.SIGSTOP if stop else signal.SIGKILL)
        _, report = job.communicate(timeout=30)
        took = time.monotonic() - killed
    finally:
        job.kill()
    print(report)
    print(f"ended {took:.2f} s after the kill with status {job.returncode}")

    check(took < 5, f"expected the job to end within 5 s, took {took:.1f} s")
    check(job.returncode != 0, "expected a status other than 0")
    while (any(running(pid) for pid in ranks.values())
           and time.monotonic() - killed < 5):
        time.sleep(0.01)
    check(not any(running(pid) for pid in ranks.values()),
          "expected no rank to be left after 5 s", report)
    if stop:
        failures = re.findall(r"failed: timed out after 1 s waiting for .*",
                              report)
        check(failures, "expected a wait to time out", report)
        check(report.count("the ranks at that moment:") == 1,
              "expected one report", report)
    else:
        deaths = re.findall(
            rf"rank (\d+) \(worker \d+\), process {ranks[victim]}, died; its last "
            r"instruction was step \d+, instruction \d+: \w+.*, from "
            r"sample\.mlir:\d+:\d+", report)
        check(deaths == [str(victim)],
              f"expected one report on the death of rank {victim}", report)
    for rank in range(RANKS):
        lines = re.findall(
            rf"^  rank {rank} \(worker {rank}\): step \d+, instruction \d+: "
            r"\w+.* since [\d.]+ s$", report, re.MULTILINE)
        check(len(lines) == (0 if rank == victim and not stop else 1),
              f"expected one line on each survivor, got {lines} for {rank}",
              report)
    check(re.search(rf"; waits for ranks? [^;]*\b{victim}\b", report),
          f"expected a survivor to wait for rank {victim}", report)


main()
