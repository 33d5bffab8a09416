#!/usr/bin/env python3
# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs jobs over three hosts under each launcher. The hosts are network, UTS, PID and
mount namespaces of this machine. The weights must equal those of a run on one host.
Then causes failures: a rank dies, is stopped or is cut off, two hosts no longer reach
each other, or the launcher is told to end. After each failure, every rank on every host
must end with a status that is not 0, and a report must say why. Prints how long that
took. Needs root; without root, prints that it skips the test. Without --rounds, only
some launchers have some of the failures.

usage: hosts.py --tools BIN [--torchrun TORCHRUN] [--mpirun] [--rounds N]
                [--timeout SECONDS] [--only LAUNCHER]
"""

import argparse
import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import uuid

from job import PATIENCE, send
from many_hosts import FAR, FIRST_OF_MANY, HOSTS, MANY, NEAR, NEAR_FIRST, RANKS, Job
from many_hosts import children_of, digest, extra_address, missing, prepare, processes
from many_hosts import show_times, silent_port, three_hosts, with_timeout

ALL = ("kill", "kill-root", "stop", "cut", "separate", "terminate")
# The failures that are tried without --rounds.
PART = {
    "processes": ("kill-root", "cut", "separate"),
    "torchrun": ("kill",),
    "mpirun": ("kill", "stop", "separate", "terminate"),
}


class HostsJob(Job):
    """A job over all hosts, started by `launcher`. If `neighbours`, consecutive ranks
    are on one host. With torchrun they always are."""

    def __init__(
        self, launcher, hosts, options, folder, *arguments, neighbours=False,
        master="node0", port=None
    ):  # fmt: skip
        self.mark = uuid.uuid4().hex
        self.environment = dict(
            os.environ,
            CHIMERA_TEST_JOB=self.mark,
            OMPI_ALLOW_RUN_AS_ROOT="1",
            OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
            OMP_NUM_THREADS="1",
        )
        self.output = tempfile.TemporaryFile()
        run = [str(options.tools / "chimera-run"), *map(str, arguments)]
        self.launchers = []
        port = str(port or 29000 + int(self.mark[:3], 16) % 900)
        if launcher == "processes":
            for rank in range(RANKS):
                # fmt: off
                self.start(
                    hosts[rank * HOSTS // RANKS if neighbours else rank % HOSTS], run,
                    RANK=str(rank), WORLD_SIZE=str(RANKS), MASTER_ADDR=master,
                    MASTER_PORT=port)
                # fmt: on
        elif launcher == "torchrun":
            for host in hosts:
                # fmt: off
                self.start(host, [
                    options.torchrun, "--no-python", "--nnodes", str(HOSTS),
                    "--nproc-per-node", str(RANKS // HOSTS), "--node-rank",
                    str(host.number), "--master-addr", "node0", "--master-port",
                    port, "--", *run])
                # fmt: on
        else:
            agent = pathlib.Path(folder, "agent.sh")
            enter = "\n".join(
                f"  {h.address}) exec {' '.join(h.command('sh', '-c'))} \"$*\" ;;"
                for h in hosts
            )
            agent.write_text(
                '#!/bin/sh\nwhile [ "${1#-}" != "$1" ]; do shift; done\n'
                f'host=$1; shift\ncase $host in\n{enter}\nesac\n'
            )
            agent.chmod(0o755)
            hosts_list = ",".join(f"{h.address}:{RANKS // HOSTS}" for h in hosts)
            # mpirun runs outside the first host's PID namespace, because it must enter
            # the PID namespaces of the other hosts.
            first = ["nsenter", "-t", str(hosts[0].pid), "--net", "--uts"]
            # When mpirun ends ranks, it gives them 1 s by default to write their report.
            # The times of --rounds are with this default. Otherwise the ranks get longer,
            # because the machine may be busy.
            waits = ["--mca", "odls_base_sigkill_timeout", "6"]
            # fmt: off
            self.begin([*first,
                "mpirun", *([] if options.rounds else waits),
                "--mca", "plm_rsh_agent", str(agent), "--mca", "btl",
                "tcp,self", "--mca", "pml", "ob1", "--mca", "btl_tcp_if_include",
                "10.77.0.0/24", "--mca", "oob_tcp_if_include", "10.77.0.0/24",
                "--mca", "hwloc_base_binding_policy", "none", "--oversubscribe",
                "-x", "CHIMERA_TEST_JOB", "--map-by", "slot" if neighbours else "node",
                "-H", hosts_list,
                "-n", str(RANKS), *run])
            # fmt: on

    def start(self, host, command, **environment):
        self.begin(host.command(*command), **environment)

    def begin(self, command, **environment):
        self.launchers.append(
            subprocess.Popen(
                command,
                env={**self.environment, **environment},
                stdout=self.output,
                stderr=subprocess.STDOUT,
            )
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for launcher in self.launchers:
            launcher.kill()
        for pid in self.ranks().values():
            send(pid, signal.SIGKILL)
        for launcher in self.launchers:
            launcher.wait()

    def ranks(self):
        found = {}
        for pid, environment in processes("chimera-run"):
            rank = environment.get("OMPI_COMM_WORLD_RANK", environment.get("RANK"))
            if environment.get("CHIMERA_TEST_JOB") == self.mark and rank is not None:
                found[int(rank)] = pid
        return found

    def text(self):
        # The job's processes write at this file's offset, so reading must not move it.
        file = self.output.fileno()
        return os.pread(file, os.fstat(file).st_size, 0).decode(errors="replace")

    def is_over(self):
        return all(process.poll() is not None for process in self.launchers)

    def terminate(self):
        """Sends SIGTERM to the launchers. If a launcher is nsenter, sends SIGTERM to
        its child: nsenter does not forward signals to its command, which is in another
        PID namespace."""
        for process in self.launchers:
            is_nsenter = process.args[0] == "nsenter" and "--pid" in process.args
            with contextlib.suppress(OSError):
                for pid in children_of(process.pid) if is_nsenter else [process.pid]:
                    os.kill(pid, signal.SIGTERM)
        return "ended by SIGTERM"


def train(options, folder, *more):
    # fmt: off
    return [folder / "p.chimera", "--data", folder / "text", "--threads", "1",
            *more]
    # fmt: on


def same_weights(launcher, hosts, options, folder, **of_job):
    arguments = train(options, folder, "--steps", 3, "--save", folder / "there")
    with HostsJob(launcher, hosts, options, folder, *arguments, **of_job) as job:
        for process in job.launchers:
            job.check(process.wait(timeout=PATIENCE) == 0, "expected status 0")
        same = digest(folder / "there") == digest(folder / "alone")
        job.check(same, "other weights")


def many_addresses(hosts, options, folder):
    """The first address of MASTER_ADDR does not lead to rank 0. Connections to this
    address are refused, or never answered."""
    port = 28765
    for never_answers in (False, True):
        with contextlib.ExitStack() as stack:
            # Not on the first host: rank 0 itself needs the port there.
            for host in hosts[1:] if never_answers else ():
                stack.enter_context(silent_port(host, FIRST_OF_MANY, port))
            same_weights("processes", hosts, options, folder, master=MANY, port=port)
    with extra_address(hosts[0], FAR), extra_address(hosts[1], NEAR):
        with silent_port(hosts[1], NEAR, port):
            # fmt: off
            same_weights("processes", hosts, options, folder, master=NEAR_FIRST,
                         port=port)
            # fmt: on


def disturb(launcher, hosts, options, folder, how):
    """Causes the failure `how`. Returns for how many seconds the ranks lived after
    it."""
    apart = how == "separate"

    def use(timeout):
        arguments = train(options, folder, "--steps", 1000000)
        if apart:
            # fmt: off
            arguments = [folder / "slow", "--stages", "synthetic", "--unit-ns", "1",
                         "--steps", 1000000]
            # fmt: on
        if how in ("stop", "cut", "separate"):
            arguments += ["--timeout", timeout]
        with HostsJob(
            launcher, hosts, options, folder, *arguments, neighbours=apart
        ) as job:
            took = job.disturb(how, hosts, timeout)
            for process in job.launchers:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    job.check(process.wait(timeout=10) != 0, "expected another status")
            return took

    return with_timeout(options.timeout, use)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tools", type=pathlib.Path, required=True)
    parser.add_argument("--torchrun", help="its path, to try it too")
    parser.add_argument("--mpirun", action="store_true", help="try it too")
    parser.add_argument("--rounds", type=int, help="of each; without it, a part once")
    # fmt: off
    parser.add_argument("--timeout", type=float, default=3, help="seconds, of the "
                        "jobs in which a rank is stopped or cut off")
    # fmt: on
    parser.add_argument("--only", help="the launcher")
    options = parser.parse_args()
    options.tools = options.tools.resolve()
    if options.torchrun:  # hosts' processes start elsewhere
        options.torchrun = str(pathlib.Path(options.torchrun).absolute())
    if lack := missing():
        print("skipped: hosts of namespaces need", lack)
        return
    launchers = ["processes"]
    launchers += ["torchrun"] * bool(options.torchrun) + ["mpirun"] * options.mpirun
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        prepare(options.tools, folder)
        with contextlib.ExitStack() as stack:
            try:
                hosts = stack.enter_context(three_hosts(name))
            except (OSError, subprocess.CalledProcessError) as error:
                detail = getattr(error, "stderr", "") or error
                print(f"skipped: cannot make hosts of namespaces here: {detail}")
                return
            for launcher in launchers:
                if options.only in (None, launcher):
                    show(launcher, hosts, options, folder)


def show(launcher, hosts, options, folder):
    same_weights(launcher, hosts, options, folder)
    if launcher == "processes":
        many_addresses(hosts, options, folder)
    print(f"{launcher}: {RANKS} ranks on {HOSTS} hosts have the weights of one host")
    for how in ALL if options.rounds else PART[launcher]:
        times = [
            disturb(launcher, hosts, options, folder, how)
            for _ in range(options.rounds or 1)
        ]
        show_times(launcher, how, times)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except RuntimeError as error:
        sys.exit(f"hosts.py: {error}")
