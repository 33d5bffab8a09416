# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Code that tests of jobs over several hosts share: hosts, which are network, UTS, PID
and mount namespaces of this machine, and failures of a job's ranks."""

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
import time

from job import PATIENCE, running, send

HOSTS = 3
RANKS = 6
MODEL = """chimera.model @m gpt2 layers(6) heads(2) width(32) context(32) vocabulary(256)
chimera.pipeline @train of @m stages(3) micro_batches(4) schedule("1f1b")
    micro_batch_size(2) data_parallel(2)
"""
# Each host has one copy of a pipeline of two sleeping stages. Hosts communicate only to
# sum gradients at the end of a step, which takes 10.5 s. Within a host, no rank waits
# as long as 3 s.
SLOW = """chimera.pipeline @slow stages(2) micro_batches(6) schedule("1f1b")
    data_parallel(3) time_unit(ns) {
  chimera.stage 0 cost <forward = 500000000, backward = 1000000000>
    bytes <weights = 4096, optimizer = 8192, stash = 8, boundary = 4096>
  chimera.stage 1 cost <forward = 500000000, backward = 1000000000>
    bytes <weights = 4096, optimizer = 8192, stash = 8, boundary = 4096>
}
"""
# A name with several addresses. The first one is a loopback address, so it leads to the
# host that looks the name up. The second one leads to the first host.
MANY = "several-addresses"
FIRST_OF_MANY = "127.0.0.9"
# A name with an address of the second host and an address of the first host (extra).
# The address of the second host has more leading bits in common with the addresses of
# all hosts. So the address of the second host is tried first.
NEAR_FIRST = "near-address-first"
NEAR = "10.77.0.6"
FAR = "10.77.0.129"
# A script that listens on an address and never accepts a connection. It fills the queue
# of its own listener, so the kernel drops all further requests for connections.
SILENT = """
import socket, sys, time
address = sys.argv[1], int(sys.argv[2])
listener = socket.create_server(address, backlog=0)
queued = [socket.socket() for _ in range(4)]
for each in queued:
    each.setblocking(False)
    each.connect_ex(address)
print("full", flush=True)
time.sleep(100000)
"""


# A wait was longer than --timeout, or a rank sent nothing for as long.
TIMED_OUT = re.compile("timed out after|was silent for")


class Delayed(RuntimeError):
    """A busy machine may have delayed the job so much that it shows nothing."""


def tell_retry(error):
    """Prints why a job is tried again."""
    reason = str(error).partition("\n")[0]
    print(f"tried again after a delay: {reason}", flush=True)


def with_timeout(timeout, use):
    """Returns use(timeout), where `timeout` is the timeout of a job's waits. On a busy
    machine no job starts within a short timeout, a host may be too late for the report of
    all hosts, and a launcher may kill ranks before they report. So if a job was delayed
    and the machine is busy, tries again, with longer timeouts."""
    last = 16 * timeout
    for seconds in (timeout, 4 * timeout, last):
        try:
            return use(seconds)
        except Delayed as error:
            is_busy = os.getloadavg()[0] > os.cpu_count()
            if seconds == last or not is_busy:
                raise
            tell_retry(error)


def missing(*commands):
    """The names of the commands that hosts of namespaces need and that are missing. If
    none is missing, "root" if the user is not root, else None."""
    needed = ("ip", "unshare", "nsenter", "setpriv", *commands)
    absent = [command for command in needed if not shutil.which(command)]
    return ", ".join(absent) or (None if os.geteuid() == 0 else "root")


def prepare(tools, folder):
    """Makes two programs, a text, and the weights of a run in one process (`alone`)."""
    (folder / "p.mlir").write_text(MODEL)
    (folder / "slow.mlir").write_text(SLOW)
    (folder / "text").write_bytes(bytes(range(32, 127)) * 400)
    # fmt: off
    call(tools / "chimera-compile", folder / "p.mlir", "-o", folder / "p.chimera")
    call(tools / "chimera-compile", folder / "slow.mlir", "-o", folder / "slow")
    call(tools / "chimera-run", folder / "p.chimera", "--data", folder / "text",
         "--threads", "1", "--steps", "3", "--save", folder / "alone")
    # fmt: on


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def call(*command):
    subprocess.run([str(word) for word in command], check=True, capture_output=True,
                   text=True)


def children_of(pid):
    text = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(child) for child in text.split()]


class Host:
    """A host: the namespaces of a process. When the process ends, everything that runs
    in the namespaces also ends."""

    def __init__(self, number, folder):
        self.number = number
        self.address = f"10.77.0.{number + 1}"
        # fmt: off
        self.keeper = subprocess.Popen(
            # When this script ends, the namespaces end too.
            ["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "--uts", "--mount",
             "--pid", "--fork", "--kill-child", "--mount-proc", "--propagation", "private", "sh",
             "-c", f"hostname node{number} && mount -t tmpfs tmpfs /dev/shm && "
             f"mount --bind {folder}/hosts /etc/hosts && ip link set lo up && "
             "echo up && exec sleep 100000"],
            stdout=subprocess.PIPE, text=True)
        # fmt: on
        if self.keeper.stdout.readline() != "up\n":
            raise OSError("cannot make namespaces")
        self.pid = children_of(self.keeper.pid)[0]

    def command(self, *arguments):
        # fmt: off
        return ["nsenter", "-t", str(self.pid), "--net", "--uts", "--mount",
                "--pid", *arguments]
        # fmt: on

    def set_link(self, state):
        call(*self.command("ip", "link", "set", "eth0", state))


@contextlib.contextmanager
def silent_port(host, address, port):
    """A context in which a port of a host never answers a request for a connection."""
    with subprocess.Popen(
        host.command(sys.executable, "-c", SILENT, address, str(port)),
        stdout=subprocess.PIPE,
        text=True,
    ) as listener:
        try:
            if listener.stdout.readline() != "full\n":
                raise OSError(f"cannot listen on {address} port {port}")
            yield
        finally:
            for child in children_of(listener.pid):
                os.kill(child, signal.SIGKILL)


@contextlib.contextmanager
def extra_address(host, address):
    """A context in which a host has another address."""
    change = [f"{address}/24", "dev", "eth0"]
    call(*host.command("ip", "address", "add", *change))
    try:
        yield
    finally:
        call(*host.command("ip", "address", "del", *change))


def separate(hosts, state):
    """If `state` is "on", the second and the third host cannot reach each other. If
    "off", they can. The first host always reaches both."""
    for port in ("p1", "p2"):
        # fmt: off
        call(*hosts[0].command("ip", "link", "set", port, "type", "bridge_slave",
                               "isolated", state))
        # fmt: on


@contextlib.contextmanager
def three_hosts(folder):
    lines = [f"10.77.0.{n + 1} node{n}" for n in range(HOSTS)]
    lines += [f"{FIRST_OF_MANY} {MANY}", f"10.77.0.1 {MANY}"]
    lines += [f"{NEAR} {NEAR_FIRST}", f"{FAR} {NEAR_FIRST}"]
    pathlib.Path(folder, "hosts").write_text(
        "127.0.0.1 localhost\n" + "\n".join(lines) + "\n"
    )
    with contextlib.ExitStack() as stack:
        hosts = []
        for number in range(HOSTS):
            hosts.append(Host(number, folder))
            stack.callback(hosts[-1].keeper.wait)
            stack.callback(hosts[-1].keeper.kill)
        # The bridge that connects the hosts is on the first host.
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


def processes(program):
    """The number and the environment of each live process that runs `program`."""
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            name = pathlib.Path("/proc", entry, "comm").read_text()
            if name != program + "\n" or not running(entry):
                continue
            pairs = pathlib.Path("/proc", entry, "environ").read_bytes()
        except OSError:
            continue
        yield int(entry), dict(
            pair.split("=", 1)
            for pair in pairs.decode(errors="replace").split("\0")
            if "=" in pair
        )


class Job:
    """A running job. Each subclass knows one way to start a job. It defines ranks(),
    text(), is_over() and terminate()."""

    # The launcher or the transport may end the ranks before they can write a report. If
    # so, this is a pattern of its message.
    unreported = None

    def ranks(self):
        """The processes of the live ranks, by rank."""
        raise NotImplementedError

    def text(self):
        """The output so far."""
        raise NotImplementedError

    def is_over(self):
        """Whether all processes that were started for the job have ended."""
        raise NotImplementedError

    def terminate(self):
        """Sends SIGTERM to the launcher. Returns the message that the job should then
        print."""
        raise NotImplementedError

    def detail(self):
        """Text that helps to find out why a check failed."""
        return self.text()

    def check(self, condition, message, error=RuntimeError):
        if not condition:
            raise error(f"{message}\n{self.detail()}")

    def wait_for_steps(self):
        """Waits until all ranks train, and returns their processes."""
        end = time.monotonic() + PATIENCE
        while "\nstep 1/" not in self.text() or len(ranks := self.ranks()) != RANKS:
            self.check(time.monotonic() < end, "the job did not start")
            self.check_goes_on()
            time.sleep(0.05)
        return ranks

    def check_goes_on(self):
        """Checks that the job is not over. If it is and a wait has timed out, the job was
        delayed."""
        # fmt: off
        self.check(not self.is_over(), "the job ended before it was disturbed",
                   Delayed if TIMED_OUT.search(self.text()) else RuntimeError)
        # fmt: on

    def send_signal(self, pid, number):
        """Sends a signal to a rank that must still be alive. If the rank has ended, waits
        for the end of the job, because its output is complete only then. Then raises an
        error."""
        if send(pid, number):
            return
        end = time.monotonic() + PATIENCE
        while True:
            self.check_goes_on()
            self.check(time.monotonic() < end, "the job goes on, but a rank has ended")
            time.sleep(0.05)

    def disturb(self, how, hosts, timeout):
        """Waits until the job trains, causes the failure `how`, and waits until all ranks have
        ended. `timeout` is the timeout of the job's waits. Checks that the job's output gives
        the expected reason. Returns for how many seconds the ranks lived after the failure.
        """
        told = r"rank {} (.*(died|has ended)|is lost)|ended by SIGTERM"
        ranks = self.wait_for_steps()
        begin = time.monotonic()
        try:
            if how == "kill":
                self.send_signal(ranks[4], signal.SIGKILL)
                told = told.format(4)
            elif how == "kill-root":
                self.send_signal(ranks[0], signal.SIGKILL)
                told = told.format(0)
            elif how == "separate":
                # Wait until the all-reduces of the first step are done. The
                # all-reduces of the next step come much later. If the hosts are
                # separated during one of them all the same, its wait times out first, and
                # the job is Delayed.
                time.sleep(2)
                begin = time.monotonic()
                separate(hosts, "on")
                told = r"rank [2-5] was silent"
            elif how in ("stop", "cut"):
                if how == "stop":
                    self.send_signal(ranks[4], signal.SIGSTOP)
                else:
                    hosts[2].set_link("down")
                told = "timed out|was silent|has ended|is lost"
            else:
                told = self.terminate()
            while left := self.ranks():
                took = time.monotonic() - begin
                # fmt: off
                self.check(took < timeout + PATIENCE,
                           f"{how}: ranks {sorted(left)} live after {took:.1f} s")
                # fmt: on
                time.sleep(0.05)
            took = time.monotonic() - begin
        finally:
            if how == "cut":
                hosts[2].set_link("up")
            elif how == "separate":
                separate(hosts, "off")
        end = time.monotonic() + PATIENCE  # the launcher may forward the output later
        if self.unreported:
            told += "|" + self.unreported
        while not re.search(told, self.text()) and not self.is_over():
            self.check(time.monotonic() < end, f"{how}: expected a report of {told}")
            time.sleep(0.05)
        # fmt: off
        self.check(re.search(told, self.text()), f"{how}: expected a report of {told}",
                   Delayed)
        # fmt: on
        # Ranks that are still connected write one report together. A report is lost if
        # the launcher does not reach these ranks. srun ends ranks without a report. A host
        # that is late by more than half a second writes a report of its own.
        count = self.text().count("the ranks at that moment:")
        most = 2 if how == "cut" else 1
        lost = self.unreported and re.search(self.unreported, self.text())
        least = 0 if how == "terminate" or lost else 1
        self.check(least <= count <= most, f"{how}: {count} reports", Delayed)
        return took


def show_times(launcher, how, times):
    print(
        f"{launcher}: {how}: all ranks ended after {statistics.median(times):.1f} s, "
        f"{max(times):.1f} s at most, {len(times)} times",
        flush=True,
    )
