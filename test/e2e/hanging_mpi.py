#!/usr/bin/env python3
"""Makes a call of MPI hang at all ranks of a job. The job must then end by itself.

usage: hanging_mpi.py CHIMERA_RUN WRITE_SAMPLE HANGING_MPI

HANGING_MPI is the library of HangingMpi.cpp: its calls do not return while a file
exists. MPI itself works correctly. Every rank is inside a call of MPI. So no rank can
notice that its own wait, or another rank's, has timed out. If another wait of a job times
out first, because the machine is busy or because a rank waits in a call that does not
hang, the job is started again with a longer timeout.
"""
import os
import re
import signal
import subprocess
import sys
import tempfile

from job import PATIENCE, Job, check, lines_on, names_a_waiter, send

CHIMERA_RUN, WRITE_SAMPLE, HANGING_MPI = sys.argv[1:]
RANKS = 4
TIMEOUTS = (6, 12, 24, 48)  # seconds
MARGIN = 2  # seconds; a call counts as hung this much later (kCallMargin)
SLEEPING = ["--stages", "synthetic", "--unit-ns", "2e6"]  # actions of 2 and 4 ms
FOR_EVER = "1000000"  # steps


def hanging(call, file, ranks, timeout, *arguments):
    """A job in which `call` hangs while the file exists."""
    # Preload this library before the sanitizers' libraries. By default the sanitizers
    # refuse this order.
    options = os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"
    return Job("env", f"ASAN_OPTIONS={options}", ranks, f"LD_PRELOAD={HANGING_MPI}",
               f"CHIMERA_HOLD_CALL={call}", f"CHIMERA_HOLD_FILE={file}",
               CHIMERA_RUN, *arguments, "--timeout", str(timeout))


def touch(file):
    with open(file, "w"):
        pass


def patiently(attempt, *arguments, **options):
    """Calls `attempt` with longer and longer timeouts until it returns None: then the call
    hung. Otherwise it must return the errors of a job in which another wait timed out
    first."""
    for timeout in TIMEOUTS:
        errors = attempt(timeout, *arguments, **options)
        if errors is None:
            return
        check(re.search("timed out after |was silent for ", errors),
              "expected a rank to say that its wait has timed out", errors)
    check(False, "expected a rank to say that MPI does not return", errors)


def ended(job, call):
    """Waits until a job whose `call` hangs has ended. Returns its error output."""
    _, errors, took, _ = job.end()
    print(f"{call} held up: ended after {took:.2f} s with status "
          f"{job.process.returncode}\n{errors}")
    check(job.process.returncode != 0, "expected a status other than 0", errors)
    return errors


def in_training(timeout, program, folder, progress):
    """If the call hangs in the middle of a step, there is one report. It names the
    call, and says which rank waits for which."""
    call = "MPI_Test"
    file = os.path.join(folder, "hold")
    with hanging(call, file, RANKS, timeout, program, *SLEEPING, "--steps", FOR_EVER,
                 "--progress", progress) as job:
        if (errors := job.why_not_started()) is not None:
            return errors
        touch(file)
        errors = ended(job, call)
    os.remove(file)
    if not re.search(rf"^(?:chimera-run: )?rank \d \(worker \d\) failed: timed out "
                     rf"after {timeout + MARGIN} s waiting for {call} to return$",
                     errors, re.MULTILINE):
        return errors
    check(errors.count("the ranks at that moment:") == 1, "expected one report",
          errors)
    for rank in range(RANKS):
        check(len(lines_on(errors, rank)) == 1, f"expected one line on rank {rank}",
              errors)
    check(names_a_waiter(errors, RANKS), "expected some rank to wait for another",
          errors)
    return None


def at_an_edge(timeout, program, call, what, folder, *arguments, at_start=True):
    """The call hangs while the ranks start or end. There are no reports at these
    times."""
    file = os.path.join(folder, "hold")
    if at_start:
        touch(file)
    with hanging(call, file, RANKS, timeout, program, *SLEEPING, "--steps", FOR_EVER,
                 *arguments) as job:
        if at_start:
            job.find_ranks()
        else:
            if (errors := job.why_not_started()) is not None:
                return errors
            touch(file)
            send(job.ranks[0], signal.SIGUSR1)
        errors = ended(job, call)
    os.remove(file)
    as_expected = f"timed out after {timeout} s waiting for {what}" in errors
    return None if as_expected else errors


def in_calibration(timeout, folder):
    file = os.path.join(folder, "hold")
    touch(file)
    call = "MPI_Test"
    with hanging(call, file, 2, timeout, "--calibrate",
                 os.path.join(folder, "here.mlir")) as job:
        job.find_ranks()
        errors = ended(job, "MPI_Test, in a calibration,")
    os.remove(file)
    hung = f"timed out after {timeout + MARGIN} s waiting for {call} to return"
    return None if hung in errors else errors


def main():
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "sample.chimera")
        subprocess.run([WRITE_SAMPLE, program, "--bidirectional"], check=True,
                       timeout=PATIENCE)
        for progress in ("off", "on"):
            patiently(in_training, program, folder, progress)
        patiently(at_an_edge, program, "MPI_Comm_dup", "all ranks to start", folder)
        patiently(at_an_edge, program, "MPI_Comm_create_group",
                  "all ranks to create their communicators", folder, "--all-reduce",
                  "transport")
        patiently(at_an_edge, program, "MPI_Comm_free",
                  "all ranks to leave after their work", folder, at_start=False)
        patiently(in_calibration, folder)


main()
