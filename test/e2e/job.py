"""A running chimera-run, for the tests that disturb it."""
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

# Open MPI refuses to run as root without these.
ENVIRONMENT = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1",
                   OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")

# After so many seconds a job counts as hung. Otherwise tests depend on what a job did
# and printed, and never on time: on a busy machine everything may take many times as
# long.
PATIENCE = 600

# The shell makes background jobs ignore SIGINT, and their children inherit this. So
# restore Python's handler.
signal.signal(signal.SIGINT, signal.default_int_handler)


def fill(pipe):
    """Writes to a pipe until it is full. Nobody reads from the pipe."""
    os.set_blocking(pipe, False)
    try:
        while True:
            os.write(pipe, b"." * 4096)
    except BlockingIOError:
        os.set_blocking(pipe, True)


def stat_of(pid):
    """The state and the parent of a process, or None."""
    try:
        with open(f"/proc/{pid}/stat") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
    except OSError:
        return None
    return fields[0], int(fields[1])


def running(pid):
    stat = stat_of(pid)
    return stat is not None and stat[0] != "Z"


def send(pid, number):
    """Sends a signal to a process. Returns False if the process has ended and is gone:
    other ranks may end at any time after the first one got a signal."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


def rank_of(pid, variable=b"OMPI_COMM_WORLD_RANK"):
    """The rank of a process, or None if it is not a rank or has ended. The launcher
    sets `variable`."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as environment:
            for entry in environment.read().split(b"\0"):
                name, _, value = entry.partition(b"=")
                if name == variable:
                    return int(value)
    except OSError:
        pass
    return None


# Names of ports. As long as this process has them, no other test gets these ports.
_names_of_ports = []


def free_port():
    """A port that nothing listens on, and that no other test gets. If possible, Linux
    never picks this port by itself, so no other job takes it first."""
    with open("/proc/sys/net/ipv4/ip_local_port_range") as limits:
        first_picked = int(limits.read().split()[0])
    lowest = 16384
    while True:
        port = 0  # any
        if lowest < first_picked:
            port = random.SystemRandom().randrange(lowest, first_picked)
        with socket.socket() as one:
            try:
                one.bind(("127.0.0.1", port))
            except OSError:
                continue
            port = one.getsockname()[1]
        name = socket.socket(socket.AF_UNIX)
        try:
            name.bind(f"\0chimera-test-port-{port}")
        except OSError:
            name.close()
            continue
        _names_of_ports.append(name)
        return port


def tcp_environments(ranks, by_hand=False):
    """The environment of each rank of a job over TCP on this host, as a launcher sets it
    or, with `by_hand`, without variables that are not necessary."""
    port = free_port()
    environments = [
        dict(ENVIRONMENT, RANK=str(rank), WORLD_SIZE=str(ranks),
             MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
        for rank in range(ranks)
    ]  # fmt: skip
    if not by_hand:
        for rank, each in enumerate(environments):
            each |= {"LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": str(ranks)}
    return environments


class Job:
    """`chimera-run PROGRAM ARGUMENTS` over MPI or, with 0 ranks, as one process."""

    def __init__(self, chimera_run, program, ranks, *arguments, mpirun_waits=6):
        # When mpirun ends ranks, it waits so many seconds between SIGCONT, SIGTERM and
        # SIGKILL, so that they can write their report. The default of 1 s would be too
        # short on a busy machine. mpirun always waits for this whole time.
        launch = ["mpirun", "--mca", "odls_base_sigkill_timeout", str(mpirun_waits),
                  "-n", str(ranks), "--oversubscribe"]
        self.process = subprocess.Popen(
            [*(launch if ranks else []), chimera_run, program, *arguments],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=ENVIRONMENT)
        self.stdout = self.process.stdout
        self.expected = ranks
        self.ranks = {}  # rank -> process

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        for pid in self.ranks.values():
            if running(pid):
                send(pid, signal.SIGKILL)
        self.process.wait()
        self.process.stdout.close()
        self.process.stderr.close()

    def wait_for_steps(self):
        """Waits until all ranks train: until the first progress line."""
        errors = self.why_not_started()
        check(errors is None, "the job did not start", errors)

    def why_not_started(self):
        """Waits until all ranks train, and returns None. If the job ends before,
        returns its errors."""
        for line in self.process.stdout:
            if line.startswith("step ") and self.find_ranks():
                return None
        return self.process.stderr.read()

    def wait_for_ranks(self):
        """Finds the processes of all ranks."""
        check(self.find_ranks(), f"the job ended, found only the ranks {self.ranks}")

    def find_ranks(self):
        """Finds the processes of all ranks. Returns False if the job ended before."""
        begin = time.monotonic()
        while len(self.ranks) != self.expected:
            if self.process.poll() is not None:
                return False
            check(time.monotonic() - begin < PATIENCE,
                  f"found only the ranks {self.ranks}")
            for entry in os.listdir("/proc"):
                stat = stat_of(entry) if entry.isdigit() else None
                if stat and stat[1] == self.process.pid and stat[0] != "Z":
                    rank = rank_of(int(entry))
                    if rank is not None:
                        self.ranks[rank] = int(entry)
            time.sleep(0.002)
        return True

    def wait_for_line(self, start):
        """Waits for a line of output that begins with `start`, and returns it."""
        for line in self.stdout:
            if line.startswith(start):
                return line
        check(False, f"the job ended before it said '{start}'")

    def alive(self, rank):
        return running(self.ranks[rank])

    def end(self):
        """Waits until all processes have ended. Returns the output, the errors, the
        seconds until all ranks had ended, and the seconds until all processes had
        ended."""
        begin = time.monotonic()
        pids = list(self.ranks.values()) or [self.process.pid]
        while any(running(pid) for pid in pids):
            check(time.monotonic() - begin < PATIENCE,
                  f"expected all ranks to end within {PATIENCE} s")
            time.sleep(0.002)
        ranks_took = time.monotonic() - begin
        output, errors = self.process.communicate(timeout=PATIENCE)
        return output, errors, ranks_took, time.monotonic() - begin


class TcpJob(Job):
    """The same as `ranks` processes over TCP. If `apart`, each is in a PID namespace of
    its own, as in a container. Then the ranks share no status page."""

    def __init__(self, chimera_run, program, ranks, *arguments, apart=False):
        before = APART if apart else []
        self.expected = ranks
        self.errors = tempfile.TemporaryFile("w+")
        reader, writer = os.pipe()
        self.started = [
            subprocess.Popen([*before, chimera_run, program, *arguments],
                             stdout=writer, stderr=self.errors, env=environment)
            for environment in tcp_environments(ranks)]
        os.close(writer)
        self.stdout = os.fdopen(reader)
        self.ranks = {rank: process.pid for rank, process in enumerate(self.started)}
        if apart:
            self.ranks = {rank: child_of(pid) for rank, pid in self.ranks.items()}

    def __exit__(self, *_):
        for process in self.started:
            process.kill()
            process.wait()
        self.stdout.close()
        self.errors.close()

    def find_ranks(self):
        return True

    def why_not_started(self):
        for line in self.stdout:
            if line.startswith("step "):
                return None
        return self.told()

    def told(self):
        self.errors.seek(0)
        return self.errors.read()

    def end(self):
        begin = time.monotonic()
        output = self.stdout.read()
        self.status = max(process.wait(timeout=PATIENCE) for process in self.started)
        took = time.monotonic() - begin
        return output, self.told(), took, took


# Starts a process in a PID namespace of its own.
APART = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]


def child_of(pid):
    """Waits until the process has a child, and returns the child's number."""
    begin = time.monotonic()
    while True:
        with open(f"/proc/{pid}/task/{pid}/children") as children:
            found = children.read().split()
        if found:
            return int(found[0])
        check(time.monotonic() - begin < PATIENCE, f"process {pid} has no child")
        time.sleep(0.01)


def check(condition, message, report=""):
    if not condition:
        sys.exit(f"{os.path.basename(sys.argv[0])}: {message}\n{report}")


# A pattern of the position of a rank in a report, which comes before the opcode. The
# rank is in a step or evaluates.
INSTRUCTION = r"(?:step \d+|evaluating after \d+ steps), instruction \d+: "


def lines_on(report, rank):
    """The lines of the report about a rank, if the rank is at an instruction."""
    return re.findall(
        rf"^  rank {rank} \(worker {rank}\): {INSTRUCTION}"
        r"\w+.* for [\d.]+ s(?:; its process is stopped)?$", report,
        re.MULTILINE)


def names_a_waiter(report, ranks):
    """Whether a report says that a rank waits for another. All ranks may wait for an
    all-reduce that all of them have started. Then none of them waits for another
    rank."""
    in_sum = all("wait for all_reduce_start" in line
                 for rank in range(ranks) for line in lines_on(report, rank))
    return in_sum or re.search(r"; waiting for rank \d for", report) is not None
