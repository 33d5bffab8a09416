#!/usr/bin/env python3
"""Kills or stops one rank of a job over MPI, and checks how the other ranks end.

usage: kill.py CHIMERA_RUN PROGRAM [--kills N] [--seed S] [--data TEXT]
               [--progress on]
       kill.py CHIMERA_RUN PROGRAM --stop [--progress on]

Each time, a rank and a moment are chosen at random, and `kill -9` ends the rank. All
other ranks must end, the status must not be 0, and no half-written file may be left.
One report must name the dead rank with its last instruction, and every survivor with
its instruction and the rank that it waited for. With --data, the program repeatedly
trains on TEXT for a few steps, and there is a good file of weights that it replaces.
Then a kill may also come before the first step. With every third seed, the kill comes
when the weights are about to be gathered and saved.

With --stop the rank is stopped (SIGSTOP). Another rank's wait for it must time out, or
its watcher must notice, and the report must name the stopped rank. If a job cannot
start within the timeout of its waits, or another wait times out before, it is started
again with a longer timeout.
PROGRAM must have only one copy. Prints counts, seeds and times.
"""
import argparse
import collections
import json
import os
import random
import re
import signal
import tempfile
import time

from job import INSTRUCTION, Job, check, lines_on, send

# The actions take 2 and 4 ms. The run takes an hour, so every signal comes in the
# middle of a step.
SLEEPING = ["--stages", "synthetic", "--unit-ns", "2e6", "--steps", "1000000"]
STEPS = 40
ONE_REPORT = "the ranks at that moment:"
TIMED_OUT = "timed out after |was silent for "


def check_report(report, victim, pid, ranks):
    """Checks the report on a rank that died in a step, or in an evaluation after the
    last step. Returns the last opcode of the dead rank."""
    deaths = re.findall(
        rf"rank (\d+) \(worker \d+\), process {pid}, died; its last instruction was "
        rf"{INSTRUCTION}(\w+).*, from \S+:\d+:\d+$", report, re.MULTILINE)
    check(len(deaths) == 1 and deaths[0][0] == str(victim),
          f"expected one report on the death of rank {victim}", report)
    check(report.count(ONE_REPORT) == 1, "expected one report", report)
    for rank in range(ranks):
        lines = lines_on(report, rank) + re.findall(
            rf"^  rank {rank} \(worker {rank}\): (?:starting|past its last "
            r"step|saving) for [\d.]+ s$", report,
            re.MULTILINE)
        check(len(lines) == (rank != victim),
              f"expected one line on each survivor, got {lines} for {rank}",
              report)
    return deaths[0][1]


def check_files(folder, old):
    """Checks that the folder has only whole files, logs that are still being written,
    and logs of earlier runs, whole or not. A process that is killed while it replaces
    the weights may leave the new ones, whole, under a temporary name."""
    names = set(os.listdir(folder))
    logs = {name for name in names if re.fullmatch(r"log(\.part|\.\d+)?", name)}
    files = {name for name in names
             if re.fullmatch(r"weights(\.\d+\.\d+\.tmp)?", name)}
    check(names <= logs | files,
          f"expected nothing half-written, found {sorted(names)}")
    for name in logs:
        with open(os.path.join(folder, name)) as file:
            lines = file.read().split("\n")
        # The last line may still be being written, so ignore it if it has no end.
        steps = [json.loads(line) for line in lines[:-1]]
        check(name != "log" or (lines[-1] == "" and "summary" in steps[-1]),
              "expected a log without a summary to be called .part")
    if old is None:
        return
    for name in files | {"weights"}:
        with open(os.path.join(folder, name), "rb") as file:
            new = file.read()
        check(new == old or len(new) == len(old),
              f"expected {len(old)} bytes of {name}, got {len(new)}")
        head = int.from_bytes(new[:8], "little")
        json.loads(new[8:8 + head])


def training(options, folder):
    return ["--data", options.data, "--steps", str(STEPS), "--progress",
            options.progress, "--save", os.path.join(folder, "weights")]


def all_steps_in(log):
    """Whether the log of a running job has its last step."""
    try:
        with open(log + ".part") as file:
            return file.read().count("\n") >= STEPS
    except OSError:
        return False


def kill(options, ranks, seed, folder, old):
    """Kills one rank. Returns where the kill hit the rank, and for how many seconds the
    other ranks lived after it."""
    rng = random.Random(seed)
    victim = rng.randrange(ranks)
    log = os.path.join(folder, "log")
    arguments = [*SLEEPING, "--progress", options.progress]
    if options.data:
        arguments = training(options, folder)
    with Job(options.chimera_run, options.program, ranks, *arguments,
             "--log", log) as job:
        if options.data:
            job.find_ranks()
            if seed % 3 == 0:
                # Poll often: the time after the last step is short.
                while job.process.poll() is None and not all_steps_in(log):
                    time.sleep(0.001)
                time.sleep(rng.random() * 0.005)
            else:
                time.sleep(rng.random() * options.span)
        else:
            job.wait_for_steps()
            time.sleep(rng.random() * 0.2)
        if (victim not in job.ranks or not job.alive(victim)
                or not send(job.ranks[victim], signal.SIGKILL)):
            job.end()
            return "nothing: it had ended", 0
        _, report, took, _ = job.end()
    check_files(folder, old)
    ended = "ended" if job.process.returncode else "had saved and ended"
    pid = job.ranks[victim]
    if not options.data or "its last instruction was" in report:
        check(job.process.returncode != 0, "expected a status other than 0")
        return check_report(report, victim, pid, ranks), took
    check(report.count(ONE_REPORT) <= 1, "expected one report", report)
    for where in ("it was past its last step", "it had not begun"):
        if where in report:
            return where, took
    # mpirun ends the ranks without a report if a rank dies before the ranks are
    # connected, or after they no longer need each other.
    return f"outside the run, and the job {ended}", took


def stop_one(options, ranks, victim, seconds):
    """Stops rank `victim` in a job whose waits time out after `seconds`. Returns the
    job's report, or its errors if a wait timed out while the job started."""
    with Job(options.chimera_run, options.program, ranks, *SLEEPING,
             "--timeout", str(seconds), "--progress", options.progress) as job:
        if (errors := job.why_not_started()) is not None:
            check(re.search(TIMED_OUT, errors), "the job did not start", errors)
            return errors
        send(job.ranks[victim], signal.SIGSTOP)
        _, report, took, _ = job.end()
    print(f"{report}\nended {took:.2f} s after the stop with status "
          f"{job.process.returncode}")
    check(job.process.returncode != 0, "expected a status other than 0")
    return report


def shows_the_stop(report, victim, seconds):
    """Whether the report is on the stop: a wait has timed out, and another rank waits
    for the victim, which is stopped. On a busy machine, another wait may time out
    before."""
    own = lines_on(report, victim)
    # The first rank to report is either one that waits for the victim, or the victim's
    # watcher.
    return (len(own) == 1 and own[0].endswith("; its process is stopped")
            and re.search(rf"failed: timed out after {seconds} s waiting for |"
                          rf"aborted: rank {victim} was silent for ", report)
            and re.search(rf"; waiting for ranks? [^;]*\b{victim}\b", report))


def stop(options, ranks):
    victim = 2
    for seconds in (1.5, 6, 24, 96):
        report = stop_one(options, ranks, victim, seconds)
        if shows_the_stop(report, victim, seconds):
            break
        check(re.search(TIMED_OUT, report), "expected a wait to time out", report)
    else:
        check(False, f"expected a wait for rank {victim} to time out", report)
    check(report.count(ONE_REPORT) == 1, "expected one report", report)
    for rank in range(ranks):
        lines = lines_on(report, rank)
        check(len(lines) == 1, f"expected one line on rank {rank}", report)
        check(lines[0].endswith("; its process is stopped")
              == (rank == victim),
              f"expected rank {victim} to be called stopped", report)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("chimera_run")
    parser.add_argument("program")
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--stop", action="store_true")
    parser.add_argument("--kills", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--data")
    parser.add_argument("--progress", default="auto")
    options = parser.parse_args()
    if options.stop:
        return stop(options, options.ranks)

    hits = collections.Counter()
    times = []
    with tempfile.TemporaryDirectory() as folder:
        old = None
        if options.data:
            weights = os.path.join(folder, "weights")
            with Job(options.chimera_run, options.program, options.ranks,
                     *training(options, folder)) as job:
                begin = time.monotonic()
                if job.find_ranks():
                    begin = time.monotonic()
                job.end()
            options.span = time.monotonic() - begin
            with open(weights, "rb") as file:
                old = file.read()
        for seed in range(options.seed, options.seed + options.kills):
            where, took = kill(options, options.ranks, seed, folder, old)
            hits[where] += 1
            times.append(took)
            print(f"seed {seed}: {where}, {took:.3f} s", flush=True)
    print(f"{options.kills} kills, seeds {options.seed} to "
          f"{options.seed + options.kills - 1}: all ranks ended within "
          f"{max(times):.2f} s (median {sorted(times)[len(times) // 2]:.2f} s); "
          f"no half-written file")
    for where, count in hits.most_common():
        print(f"  {count:4d}  {where}")


main()
