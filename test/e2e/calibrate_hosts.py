#!/usr/bin/env python3
# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calibrates (`chimera-run --calibrate`) over three hosts with two ranks each. The
hosts are namespaces of this machine (many_hosts.py), and the links between them are
made slow. If consecutive ranks share a host, the machine must have separate links
within a node, which are faster than the links between hosts. If consecutive ranks are
on different hosts, the machine must have one kind of link and say so. The compiler must
accept both machines. Needs root; without root, prints that it skips the test."""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import grid
from many_hosts import HOSTS, RANKS, call, missing, three_hosts

PIPELINE = """
chimera.model @m gpt2 layers(4) heads(2) width(64) context(32) vocabulary(256)
chimera.pipeline @p of @m on @here stages(3) micro_batches(4) schedule("1f1b")
    data_parallel(2)
"""
RATE = "1gbit"  # the speed at which data can leave a host; links within a host are faster


def calibrate(args, hosts, file, host_of):
    """Calibrates and returns the text of the machine. Rank r is on host host_of(r)."""
    command = [args.tools / "chimera-run", "--calibrate", file, "--threads", 1]
    processes = [
        subprocess.Popen(
            hosts[host_of(rank)].command(*map(str, command)),
            env=dict(os.environ, RANK=str(rank), WORLD_SIZE=str(RANKS),
                     MASTER_ADDR="node0", MASTER_PORT="29200"),
            stdout=subprocess.PIPE, text=True,
        )
        for rank in range(RANKS)
    ]  # fmt: skip
    outputs = [process.communicate(timeout=300)[0] for process in processes]
    assert all(process.returncode == 0 for process in processes), outputs
    text = file.read_text()
    print(outputs[0], text, sep="\n", flush=True)
    source = file.with_suffix(".pipeline")
    source.write_text(text + PIPELINE)
    # fmt: off
    grid.run(args.tools / "chimera-compile", source, "-o",
             file.with_suffix(".program"))
    # fmt: on
    return text


def slow(hosts):
    """Makes messages between hosts slow. Returns whether that worked."""
    try:
        for host in hosts:
            # fmt: off
            call(*host.command("tc", "qdisc", "add", "dev", "eth0", "root", "tbf",
                               "rate", RATE, "burst", "32kb", "latency", "400ms"))
            # fmt: on
    except (OSError, subprocess.CalledProcessError) as error:
        print("messages between hosts are as fast as this machine's:", error)
        return False
    return True


def per_mib(text, network):
    """The time, in ns, of sending one MiB over a link: sender, way and receiver
    together."""
    parts = re.search(rf"\n    {network} <([^>]*)>", text)[1]
    return sum(int(time) for time in re.findall(r"per_mib = (\d+) ns", parts))


def check(args, hosts, folder):
    is_slow = slow(hosts)
    on_each = RANKS // HOSTS
    text = calibrate(args, hosts, folder / "nodes.mlir", lambda rank: rank // on_each)
    assert f"\n    node_devices({on_each})\n" in text, text
    assert f"// {HOSTS} hosts with {on_each} ranks each: " in text, text
    assert "// Within hosts: " in text, text
    for network in ("link", "all_reduce"):
        within, between = per_mib(text, f"node_{network}"), per_mib(text, network)
        assert within > 0 and between > 0, text
        assert not is_slow or between > 2 * within, (network, between, within)
    text = calibrate(args, hosts, folder / "mixed.mlir", lambda rank: rank % HOSTS)
    assert "node_" not in text.split("chimera.machine")[1], text
    assert "mix messages within and between hosts" in text, text


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tools", type=pathlib.Path, required=True)
    args = parser.parse_args()
    args.tools = args.tools.resolve()
    if lack := missing():
        print("skipped: hosts of namespaces need", lack)
        return
    with tempfile.TemporaryDirectory() as name:
        try:
            with three_hosts(name) as hosts:
                check(args, hosts, pathlib.Path(name))
        except (OSError, subprocess.CalledProcessError) as error:
            detail = getattr(error, "stderr", "") or error
            print(f"skipped: cannot make hosts of namespaces here: {detail}")


if __name__ == "__main__":
    sys.exit(main())
