#!/usr/bin/env bash
# TensorBoard's two readers show different curves of a run that started again.
#
# Versions: tensorboard 2.21.0 with tensorboard-data-server 0.7.2 (Python 3.11).
# Behaviour: A session START event says that a run begins again at a step. The
#   reader in Python drops the points from this step on. The data server, which
#   TensorBoard uses by default, ignores the event and keeps them until a new point
#   of the same or an earlier step arrives.
# Seen on 2026-11-28 (five steps, then a run that begins again at step 3):
#   Python's reader: steps 1 2
#   the data server: steps 1 2 3 4 5
# Why it matters: A run that is resumed from an older checkpoint, and that ends
#   early, leaves points of steps that its weights have never seen.
# What chimera does: --tensorboard writes the event and then the points of all steps
#   again; test/e2e/event_files.py compares both readers with the log.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --no-compile tensorboard==2.21.0 \
  tensorboard-data-server==0.7.2 'setuptools<81'
mkdir "$work/events"
"$work/venv/bin/python" -W ignore - "$work/events" <<'PYTHON'
import pathlib, sys, time
from tensorboard import context
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.compat.proto import event_pb2, summary_pb2
from tensorboard.data import server_ingester
from tensorboard.summary.writer.record_writer import RecordWriter
from tensorboard.util import grpc_util

folder = sys.argv[1]


def write(name, events):
    with open(pathlib.Path(folder, name), "wb") as file:
        writer = RecordWriter(file)
        for event in events:
            writer.write(event.SerializeToString())
        writer.flush()


def version(now):
    return event_pb2.Event(wall_time=now, file_version="brain.Event:2")


def start(now, step):
    return event_pb2.Event(wall_time=now, step=step, session_log=event_pb2.SessionLog(
        status=event_pb2.SessionLog.START))


def point(now, step):
    value = summary_pb2.Summary.Value(tag="loss", simple_value=float(step))
    return event_pb2.Event(wall_time=now, step=step, summary=summary_pb2.Summary(value=[value]))


# A run of five steps that crashes, and a run that starts again at step 3.
write("events.out.tfevents.1.a", [version(1.0), start(1.0, 1), *(point(1.0 + s, s) for s in range(1, 6))])
write("events.out.tfevents.2.a", [version(20.0), start(20.0, 3)])

events = EventAccumulator(folder)
events.Reload()
python = [p.step for p in events.Scalars("loss")]
ingester = server_ingester.SubprocessServerDataIngester(
    server_binary=server_ingester.get_server_binary(), logdir=folder, reload_interval=0,
    channel_creds_type=grpc_util.ChannelCredsType.LOCAL, samples_per_plugin={"scalars": 0})
ingester.start()
time.sleep(5)  # it has read all files by then
runs = ingester.data_provider.read_scalars(
    context.RequestContext(), experiment_id="", plugin_name="scalars", downsample=1000)
server = [p.step for tags in runs.values() for points in tags.values() for p in points]
print("Python's reader: steps", *python)
print("the data server: steps", *server)
assert python == [1, 2], "changed: Python's reader keeps later steps"
assert server == [1, 2, 3, 4, 5], "changed: the data server drops later steps"
PYTHON
