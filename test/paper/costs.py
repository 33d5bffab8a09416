# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The costs of a configuration's stages on the paper's machine, and the description
that gives them to chimera-opt.

A node of Piz Daint has one P100. GLOO moves messages and sums: from the device to the
host's memory, to the other host, and from there to its device.
"""

import dataclasses

MIB = 1 << 20
BACKWARD = 2  # a backward takes two forwards, as in the paper's model
# Bytes of a parameter: its value or its gradient, and Adam's two moments.
VALUE, MOMENTS = 4, 8
# An update reads the gradient, and reads and writes value and moments.
UPDATE_BYTES = VALUE + 2 * (VALUE + MOMENTS)
# BERT predicts 20 of 128 tokens, as in its own pre-training at that length. A head over
# all tokens would make the last of 16 stages 1.6 times as slow as the others, which
# GPipe's bars exclude.
PREDICTED = {"BERT-48": 20}
# Bytes that PyTorch's autograd keeps of a layer for each token and channel: 24 floats
# (inputs of products and norms, queries, keys, values, and four of GELU's own, each as
# wide as four channels) and two masks of dropout. Counted in a layer written out in
# PyTorch.
TOKEN_BYTES = 24 * VALUE + 2
# For each prediction: the logits and their log-softmax.
LOGITS_BYTES = 2 * VALUE

BUCKETED = ("Chimera", "PipeDream")

SCHEDULES = {
    "GPipe": "gpipe",
    "DAPPLE": "1f1b",
    "GEMS": "gems",
    "PipeDream": "pipedream",
    "2BW": "pipedream-2bw",
}
# The released code of forward doubling issues the two forwards of a pair one after the
# other (Fig. 7d). There is no code of backward halving. The half micro-batch in the
# figure's legend indicates that it was doubling with half as many samples.
CONCATENATIONS = {
    "direct": "direct",
    "doubling": "fine-tuned-doubling",
    "halving": "fine-tuned-doubling",
}


@dataclasses.dataclass(frozen=True)
class Constants:
    """The machine's ten constants; fit.py says which are fitted."""

    # Operations per second in a transformer layer, including norms and dropouts.
    speed: float = 6.599e12
    # Operations per second in the head, which is one large product: 0.9 of the data sheet's
    # speed.
    head_speed: float = 8.4e12
    # Seconds of a layer's or the head's forward in addition to its operations.
    launch: float = 1.06e-3
    # Seconds per byte of a message on each of its three ways: off the device, which
    # occupies the sender; between the hosts; and onto the device, which occupies the
    # receiver.
    message: float = 1.766e-9
    # Seconds per byte of a gradient to the host and back, and for each of the
    # log2(replicas) exchanges of its sum.
    staging: float = 0.9969e-9
    exchange: float = 0.3046e-9
    # Sums that GLOO moves at a time: threads of a process group, PyTorch's default.
    threads: int = 2
    # Bytes per second of an update: three quarters of the data sheet's.
    memory_bandwidth: float = 549e9
    # Bytes that the framework uses.
    reserved: float = 0.3201e9
    # Bytes that autograd keeps of a layer for each attention score. Four floats and a
    # mask of dropout would be 17.
    score_bytes: float = 16.66


MEMORY = 16 << 30  # of a P100


def layer_operations(model):
    """Operations of a forward of one sample: products by weights, and attention's
    two."""
    weights = 24 * model.width**2 * model.sequence
    return weights + 4 * model.width * model.sequence**2


def predictions(model):
    return PREDICTED.get(model.name, model.sequence)


def head_operations(model):
    return 2 * predictions(model) * model.width * model.vocabulary


@dataclasses.dataclass(frozen=True)
class Stage:
    forward: float  # seconds
    parameters: int
    stash: float  # bytes
    boundary: int  # bytes


def stages(constants, bar):
    """Layers are divided evenly. The first stage also has the embedding, which takes
    almost no time, and the last one the head."""
    model, samples = bar.model, bar.batch
    layers = model.layers // bar.depth
    tokens = model.sequence * model.width
    scores = model.heads * model.sequence**2
    for index in range(bar.depth):
        operations = samples * layer_operations(model)
        forward = layers * (constants.launch + operations / constants.speed)
        parameters = layers * model.layer_parameters
        kept = tokens * TOKEN_BYTES + scores * constants.score_bytes
        stash = samples * layers * kept
        if index == 0:
            parameters += model.embedding_parameters
        if index == bar.depth - 1:
            operations = samples * head_operations(model)
            forward += constants.launch + operations / constants.head_speed
            parameters += model.head_parameters
            stash += samples * predictions(model) * model.vocabulary * LOGITS_BYTES
        yield Stage(forward, parameters, stash, samples * tokens * VALUE)


def nanoseconds(seconds):
    return max(1, round(seconds * 1e9))


def schedule(bar):
    if bar.scheme != "Chimera":
        return f'"{SCHEDULES[bar.scheme]}"'
    concatenation = CONCATENATIONS[bar.concatenation]
    return (
        f'"chimera", {{pipelines = {bar.pipelines}, concatenation = "{concatenation}"}}'
    )


def machine(constants, nodes, bucketed, name, memory=MEMORY):
    """The description of the machine. If several buckets are summed at a time, there
    are as many as threads."""
    way, staging, exchange = (
        nanoseconds(seconds * MIB)
        for seconds in (constants.message, constants.staging, constants.exchange)
    )
    threads = constants.threads if bucketed else 1
    return (
        f"chimera.machine @{name} devices({nodes}) memory({memory})\n"
        f"    reserved({round(constants.reserved)}) speed({round(constants.speed)})\n"
        f"    layer_overhead({nanoseconds(constants.launch)} ns)\n"
        f"    memory_bandwidth({round(constants.memory_bandwidth)})\n"
        f"    link <per_mib = {way} ns, send_per_mib = {way} ns,"
        f" receive_per_mib = {way} ns>\n"
        f"    all_reduce <per_mib = {exchange // threads} ns,"
        f" send_per_mib = {staging // threads} ns> all_reduce_algorithm(doubling)\n"
    )


def describe(constants, bar, name):
    """The description of a configuration. A recompute runs in the backward, after its
    gradient has arrived, as in PyTorch's checkpoints."""
    # Memory is judged afterwards: a cap would refuse configurations that we want to
    # examine.
    text = machine(
        constants, bar.nodes, bar.scheme in BUCKETED, f"machine_of_{name}", 1 << 40
    )
    recompute = " recompute(all fused)" if bar.recompute else ""
    policy = " all_reduce(eager_opt)" if bar.scheme == "Chimera" else ""
    text += (
        f"chimera.pipeline @{name} on @machine_of_{name} stages({bar.depth})\n"
        f"    micro_batches({bar.micro_batches}) schedule({schedule(bar)})\n"
        f"    data_parallel({bar.width}) micro_batch_size({bar.batch})"
        f"{recompute}{policy} time_unit(ns) {{\n"
    )
    for index, stage in enumerate(stages(constants, bar)):
        update = stage.parameters * UPDATE_BYTES / constants.memory_bandwidth
        forward = nanoseconds(stage.forward)
        text += (
            f"  chimera.stage {index} cost <forward = {forward},"
            f" backward = {BACKWARD * forward}, recompute = {forward},"
            f" update = {nanoseconds(update)}>\n"
            f"      bytes <weights = {stage.parameters * VALUE},"
            f" optimizer = {stage.parameters * MOMENTS},"
            f" stash = {round(stage.stash)}, boundary = {stage.boundary}>\n"
        )
    return text + "}\n"
