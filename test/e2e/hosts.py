#!/usr/bin/env python3
# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs jobs over three hosts, which are network, UTS, PID and mount namespaces of
this machine, under each launcher: the same weights as on one host; and when a rank
dies, is stopped or is cut off, or the launcher is told to end, every rank on every
host ends in time, with a status that is not 0 and a report that says why. Prints how
long that took. Needs root and says so where it is not.

usage: hosts.py --tools BIN [--torchrun TORCHRUN] [--mpirun] [--rounds N]
                [--timeout SECONDS] [--only LAUNCHER]
"""

import argparse
import contextlib
import hashlib
import os
import pathlib
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import uuid

HOSTS = 3
RANKS = 6
LIMIT = 5  # seconds that the others may live on
MODEL = """chimera.model @m gpt2 layers(6) heads(2) width(32) context(32) vocabulary(256)
chimera.pipeline @train of @m stages(3) micro_batches(4) schedule("1f1b")
    micro_batch_size(2) data_parallel(2)
"""


class Host:
    """Namespaces that end, with all that runs in them, with a process."""

    def __init__(self, number, folder):
        self.number = number
        self.address = f"10.77.0.{number + 1}"
        # fmt: off
        self.keeper = subprocess.Popen(
            # They end with this script, however it ends.
            ["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "--uts", "--mount", "--pid", "--fork",
             "--kill-child", "--mount-proc", "--propagation", "private", "sh",
             "-c", f"hostname node{number} && mount -t tmpfs tmpfs /dev/shm && "
             f"mount --bind {folder}/hosts /etc/hosts && ip link set lo up && "
             "echo up && exec sleep 100000"],
            stdout=subprocess.PIPE, text=True)
        # fmt: on
        if self.keeper.stdout.readline() != "up\n":
            raise OSError("cannot make namespaces")
        children = pathlib.Path(
            f"/proc/{self.keeper.pid}/task/{self.keeper.pid}/children"
        )
        self.pid = int(children.read_text().split()[0])

    def command(self, *arguments):
        # fmt: off
        return ["nsenter", "-t", str(self.pid), "--net", "--uts", "--mount",
                "--pid", *arguments]
        # fmt: on

    def set_link(self, state):
        call(*self.command("ip", "link", "set", "eth0", state))


def call(*command):
    subprocess.run(command, check=True, capture_output=True, text=True)


@contextlib.contextmanager
def three_hosts(folder):
    lines = [f"10.77.0.{n + 1} node{n}" for n in range(HOSTS)]
    pathlib.Path(folder, "hosts").write_text(
        "127.0.0.1 localhost\n" + "\n".join(lines) + "\n"
    )
    with contextlib.ExitStack() as stack:
        hosts = []
        for number in range(HOSTS):
            hosts.append(Host(number, folder))
            stack.callback(hosts[-1].keeper.wait)
            stack.callback(hosts[-1].keeper.kill)
        # The bridge is on the first host.
        call(*hosts[0].command("ip", "link", "add", "br0", "type", "bridge"))
        for host in hosts:
            port = f"p{host.number}"
            # fmt: off
            call("ip", "link", "add", "eth0", "netns", str(host.pid), "type",
                 "veth", "peer", "name", port, "netns", str(hosts[0].pid))
            call(*hosts[0].command("ip", "link", "set", port, "master", "br0"))
            call(*hosts[0].command("ip", "link", "set", port, "up"))
            call(*host.command("ip", "address", "add", f"{host.address}/24",
                               "dev", "eth0"))
            # fmt: on
            host.set_link("up")
        call(*hosts[0].command("ip", "link", "set", "br0", "up"))
        yield hosts


class Job:
    """A job over all hosts, by `launcher`."""

    def __init__(self, launcher, hosts, options, folder, *arguments):
        self.mark = uuid.uuid4().hex
        self.environment = dict(
            os.environ,
            CHIMERA_TEST_JOB=self.mark,
            OMPI_ALLOW_RUN_AS_ROOT="1",
            OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
            OMP_NUM_THREADS="1",
        )
        self.output = tempfile.TemporaryFile("w+")
        run = [str(options.tools / "chimera-run"), *map(str, arguments)]
        self.launchers = []
        port = str(29000 + int(self.mark[:3], 16) % 900)
        if launcher == "processes":
            for rank in range(RANKS):
                # fmt: off
                self.start(hosts[rank % HOSTS], run, RANK=str(rank),
                           WORLD_SIZE=str(RANKS), MASTER_ADDR="node0",
                           MASTER_PORT=port)
                # fmt: on
        elif launcher == "torchrun":
            for host in hosts:
                # fmt: off
                self.start(host, [
                    options.torchrun, "--no-python", "--nnodes", str(HOSTS),
                    "--nproc-per-node", str(RANKS // HOSTS), "--node-rank",
                    str(host.number), "--master-addr", "node0", "--master-port",
                    port, *run])
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
            # Outside of the first host's PID namespace: it enters the others.
            first = ["nsenter", "-t", str(hosts[0].pid), "--net", "--uts"]
            # fmt: off
            self.begin([*first,
                "mpirun", "--mca", "plm_rsh_agent", str(agent), "--mca", "btl",
                "tcp,self", "--mca", "pml", "ob1", "--mca", "btl_tcp_if_include",
                "10.77.0.0/24", "--mca", "oob_tcp_if_include", "10.77.0.0/24",
                "--mca", "hwloc_base_binding_policy", "none", "--oversubscribe",
                "-x", "CHIMERA_TEST_JOB", "--map-by", "node", "-H", hosts_list,
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
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for launcher in self.launchers:
            launcher.wait()

    def ranks(self):
        """The processes of the ranks that live, by rank."""
        found = {}
        for entry in os.listdir("/proc"):
            try:
                if not entry.isdigit() or (
                    pathlib.Path("/proc", entry, "comm").read_text()
                    != "chimera-run\n"
                ):
                    continue
                stat = pathlib.Path("/proc", entry, "stat").read_text()
                pairs = pathlib.Path("/proc", entry, "environ").read_bytes()
            except OSError:
                continue
            environment = dict(
                pair.split("=", 1)
                for pair in pairs.decode(errors="replace").split("\0")
                if "=" in pair
            )
            if (
                environment.get("CHIMERA_TEST_JOB") != self.mark
                or stat.rsplit(")", 1)[1].split()[0] in "ZX"
            ):
                continue
            rank = environment.get("OMPI_COMM_WORLD_RANK", environment.get("RANK"))
            if rank is not None:
                found[int(rank)] = int(entry)
        return found

    def text(self):
        self.output.seek(0)
        return self.output.read()

    def check(self, condition, message):
        if not condition:
            raise RuntimeError(f"{message}\n{self.text()}")

    def wait_for_steps(self, seconds=60):
        end = time.monotonic() + seconds
        while "step " not in self.text():
            self.check(time.monotonic() < end, "the job did not start")
            self.check(self.launchers[0].poll() is None, "the job has ended")
            time.sleep(0.05)
        ranks = self.ranks()
        self.check(len(ranks) == RANKS, f"found only the ranks {sorted(ranks)}")
        return ranks

    def wait_until_gone(self, limit):
        """The seconds until no rank lives, and whether a status is not 0."""
        begin = time.monotonic()
        while left := self.ranks():
            took = time.monotonic() - begin
            self.check(took < limit, f"ranks {sorted(left)} live after {took:.1f} s")
            time.sleep(0.01)
        return time.monotonic() - begin


def train(options, folder, *more):
    # fmt: off
    return [folder / "p.chimera", "--data", folder / "text", "--threads", "1",
            *more]
    # fmt: on


def same_weights(launcher, hosts, options, folder):
    def weights(name):
        return hashlib.sha256(pathlib.Path(folder, name).read_bytes()).hexdigest()

    alone = train(options, folder, "--steps", 3, "--save", folder / "alone")
    call(options.tools / "chimera-run", *map(str, alone))
    arguments = train(options, folder, "--steps", 3, "--save", folder / "there")
    with Job(launcher, hosts, options, folder, *arguments) as job:
        for process in job.launchers:
            job.check(process.wait(timeout=120) == 0, "expected status 0")
        job.check(weights("there") == weights("alone"), "other weights")


def disturb(launcher, hosts, options, folder, how):
    """Returns the seconds that the ranks lived on."""
    arguments = train(options, folder, "--steps", 1000000)
    limit, told = LIMIT, r"rank 4 .*(died|has ended)|ended by SIGTERM|rank 4 is lost"
    if how in ("stop", "cut"):
        arguments += ["--timeout", options.timeout]
        limit, told = options.timeout + LIMIT, r"timed out|was silent|has ended|is lost"
    with Job(launcher, hosts, options, folder, *arguments) as job:
        ranks = job.wait_for_steps()
        try:
            if how == "kill":
                os.kill(ranks[4], signal.SIGKILL)
            elif how == "kill-root":
                told = told.replace("rank 4", "rank 0")
                os.kill(ranks[0], signal.SIGKILL)
            elif how == "stop":
                os.kill(ranks[4], signal.SIGSTOP)
            elif how == "cut":
                hosts[2].set_link("down")
            else:
                for process in job.launchers:
                    terminate(process)
                told = "ended by SIGTERM"
            took = job.wait_until_gone(limit)
        finally:
            if how == "cut":
                hosts[2].set_link("up")
        for process in job.launchers:
            with contextlib.suppress(subprocess.TimeoutExpired):
                job.check(process.wait(timeout=10) != 0, "expected another status")
        job.check(re.search(told, job.text()), f"expected a report of {told}")
        return took


def terminate(process):
    """nsenter waits for what it runs in another PID namespace, and passes no
    signal on."""
    children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children")
    is_nsenter = process.args[0] == "nsenter" and "--pid" in process.args
    with contextlib.suppress(OSError):
        for pid in children.read_text().split() if is_nsenter else [process.pid]:
            os.kill(int(pid), signal.SIGTERM)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tools", type=pathlib.Path, required=True)
    parser.add_argument("--torchrun", help="its path, to try it too")
    parser.add_argument("--mpirun", action="store_true", help="try it too")
    parser.add_argument("--rounds", type=int, default=1)
    # fmt: off
    parser.add_argument("--timeout", type=float, default=3, help="seconds, of the "
                        "jobs in which a rank is stopped or cut off")
    # fmt: on
    parser.add_argument("--only", help="the launcher")
    options = parser.parse_args()
    options.tools = options.tools.resolve()
    if os.geteuid() != 0 or not all(map(shutil.which, ("ip", "unshare", "nsenter", "setpriv"))):
        print("skipped: needs root, ip, unshare, setpriv and nsenter for hosts")
        return
    launchers = ["processes"]
    launchers += ["torchrun"] * bool(options.torchrun) + ["mpirun"] * options.mpirun
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "p.mlir").write_text(MODEL)
        (folder / "text").write_bytes(bytes(range(32, 127)) * 400)
        # fmt: off
        call(options.tools / "chimera-compile", folder / "p.mlir", "-o",
             folder / "p.chimera")
        # fmt: on
        try:
            with three_hosts(name) as hosts:
                for launcher in launchers:
                    if options.only in (None, launcher):
                        show(launcher, hosts, options, folder)
        except (OSError, subprocess.CalledProcessError) as error:
            detail = getattr(error, "stderr", "") or error
            print(f"skipped: cannot make hosts of namespaces here: {detail}")


def show(launcher, hosts, options, folder):
    same_weights(launcher, hosts, options, folder)
    print(f"{launcher}: {RANKS} ranks on {HOSTS} hosts have the weights of one host")
    for how in ("kill", "kill-root", "stop", "cut", "terminate"):
        times = [
            disturb(launcher, hosts, options, folder, how)
            for _ in range(options.rounds)
        ]
        print(
            f"{launcher}: {how}: all ranks ended after {statistics.median(times):.1f} s, "
            f"{max(times):.1f} s at most, {len(times)} times",
            flush=True,
        )


if __name__ == "__main__":
    try:
        sys.exit(main())
    except RuntimeError as error:
        sys.exit(f"hosts.py: {error}")
