#!/usr/bin/env python3
# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prints the curves in a folder of event files as JSON, as TensorBoard shows them:

    {"python": {TAG: [[STEP, VALUE], ...]}, "server": the same}

TensorBoard has two readers. `server` is the one that it uses by default. It is null if
this machine cannot run it. Needs a Python with tensorboard.

usage: event_curves.py FOLDER
"""

import json
import sys
import time

from tensorboard import context
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.data import server_ingester
from tensorboard.util import grpc_util

PATIENCE = 300  # seconds until the server has read all files


def by_python(folder):
    events = EventAccumulator(folder, size_guidance={"scalars": 0})
    events.Reload()
    return {
        tag: [[point.step, point.value] for point in events.Scalars(tag)]
        for tag in events.Tags()["scalars"]
    }


def by_server(folder, expected):
    """Reads until the result is `expected`, since the server answers before it has read
    all files."""
    try:
        ingester = server_ingester.SubprocessServerDataIngester(
            server_binary=server_ingester.get_server_binary(),
            logdir=folder,
            reload_interval=0,
            channel_creds_type=grpc_util.ChannelCredsType.LOCAL,
            samples_per_plugin={"scalars": 0},
        )
        ingester.start()
    except (server_ingester.NoDataServerError, server_ingester.DataServerStartupError) as error:
        print(f"no data server: {error}", file=sys.stderr)
        return None
    end = time.monotonic() + PATIENCE
    while True:
        runs = ingester.data_provider.read_scalars(
            context.RequestContext(), experiment_id="", plugin_name="scalars",
            downsample=1_000_000,
        )  # fmt: skip
        curves = {
            tag: [[point.step, point.value] for point in points]
            for run in runs.values()
            for tag, points in run.items()
        }
        if curves == expected or time.monotonic() > end:
            return curves
        time.sleep(0.1)


curves = by_python(sys.argv[1])
print(json.dumps({"python": curves, "server": by_server(sys.argv[1], curves)}))
