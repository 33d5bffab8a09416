//===- DescriptionOps.td - Ops of a description ------------*- tablegen -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_DIALECT_DESCRIPTIONOPS_TD
#define CHIMERA_DIALECT_DESCRIPTIONOPS_TD

include "dialect/OpBase.td"
include "mlir/IR/RegionKindInterface.td"
include "mlir/IR/SymbolInterfaces.td"

def Chimera_ModelOp : Chimera_Op<"model", [Symbol]> {
  let summary = "a model to train";
  let description = [{
    A model: its architecture and its sizes. It has one of three forms.

    *Built in*: an architecture such as `gpt2`, with its sizes. `layers` is the
    number of transformer blocks; for the partition, the embedding and the head
    are two more layers. `dropout` applies after the embedding, in attention and
    in both residual branches. In a `tied` model the head multiplies by the
    token embedding. The first and the last stage then each have a copy of this
    matrix, and the gradient of the matrix is reduced over both stages.

    *`exported`*: a PyTorch model in a folder, the *package* that the exporter
    wrote. The package states the layers, their costs and their bytes, for each
    type in which the model can compute. A relative path is relative to the
    folder of the description.

    *`bare`*: a list of layers that state their operations and bytes. A bare
    model can be partitioned and planned, and its programs run on synthetic or
    exact stages. It cannot be trained.

    Invalid if
    - a size is not positive, or a built-in model lacks one;
    - an exported or a bare model has sizes, `dropout` or `tied`;
    - an exported model has no package, or another model has one;
    - a bare model has no layers, or another model has a list of layers;
    - a layer of a bare model states no `boundary` although another layer
      follows it.

    The architecture is looked up when the model is partitioned.

    Example:
    ```mlir
    chimera.model @small gpt2 layers(4) heads(4) width(128) context(128)
        vocabulary(256) dropout(1.0e-1) tied
    chimera.model @mine exported("packages/mine")
    chimera.model @sketch bare [
      <forward = 1 MFLOP, parameters = 31000000, stash = 2 MiB, boundary = 1 MiB>,
      <count = 48, forward = 3.4 GFLOP, parameters = 12600000, stash = 16 MiB,
       boundary = 1 MiB>]
    ```
  }];
  let arguments = (ins
    SymbolNameAttr:$sym_name,
    StrAttr:$architecture,
    OptionalAttr<StrAttr>:$package,
    OptionalAttr<TypedArrayAttrBase<Chimera_Layer, "layers">>:$bare_layers,
    OptionalAttr<Chimera_Positive>:$layers,
    OptionalAttr<Chimera_Positive>:$heads,
    OptionalAttr<Chimera_Positive>:$width,
    OptionalAttr<Chimera_Positive>:$context_length,
    OptionalAttr<Chimera_Positive>:$vocabulary,
    DefaultValuedAttr<F64Attr, "0.0">:$dropout,
    UnitAttr:$tied);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

include "dialect/TrainingOp.td"

def Chimera_MachineOp : Chimera_Op<"machine", [Symbol]> {
  let summary = "the devices on which programs run";
  let description = [{
    A machine: `devices`, all alike, each with `memory` bytes. Of these,
    `reserved` bytes are not for the program (the framework and the buffers of
    libraries use them). A pipeline names its machine after `on`. All times of
    the machine are in nanoseconds. `devices` and `memory` come first, in this
    order. The other clauses follow in any order.

    *Computation.* The time of a layer is its number of operations divided by
    `speed`, plus `layer_overhead` in a forward and in each half of a backward.
    `speed` is the speed that layers reach on a device. It is lower than the
    speed in the data sheet. The overhead makes small micro-batches expensive.
    An update takes the time in which a device moves the bytes of the update at
    `memory_bandwidth`. Without `memory_bandwidth`, updates take no time.

    *Measured computation.* With `profile`, computation takes the measured time
    instead. The clause lists files that `chimera-run --profile` wrote on this
    machine, for one or several sizes of micro-batch. If two files have the same
    size, the later file adds only the times that the earlier file lacks: times
    of whole backwards, of split backwards, or of recomputes. A relative path is
    relative to the folder of the description.

    *Messages and all-reduces.* `link` is the time of a message between two
    devices. `all_reduce` is the time of a message of an all-reduce; by default
    it is the `link`. An all-reduce over r replicas follows `rabenseifner`, with
    2 log2(r) messages and 2 (r-1)/r of the bytes, unless `all_reduce_algorithm`
    is `doubling`, with log2(r) exchanges of all bytes. With `doubling`, the
    `send` and `receive` of `all_reduce`, which occupy both ends, count once for
    each all-reduce, as for a copy to the host and back. With
    `blocking_all_reduce`, an all-reduce progresses only while its workers wait
    for it, as on hosts on which all cores compute. An all-reduce then overlaps
    with no computation and no update, even if it starts early.

    *Nodes.* With `node_devices`, the devices are on nodes of that many devices,
    in the order of their numbers. Rank r runs on device r: worker w of copy d
    of a pipeline with D workers is on device d D + w. A message between two
    devices of one node takes the time of `node_link`. An all-reduce within one
    node takes the time of `node_all_reduce`, by default that of `node_link`.
    Without a `node_link`, the links of a node are like all others. Everything
    else takes the time of `link` and `all_reduce`. This includes messages
    between two workers that are on one node in some copies only.

    *Shared cores.* `node_cores` is the number of cores on which the ranks of
    one node compute, one thread for each rank. If more ranks than cores
    compute, send or receive at the same time, they share the cores equally, and
    each rank is slower by this ratio. If `node_cores` is given, take each
    profile from a run whose ranks shared no cores.

    Invalid if no memory is left, if a number is not positive, if there is
    neither a speed nor a profile, if a node has more devices than the machine,
    and if cores or links of a node are given without `node_devices`.

    Example:
    ```mlir
    chimera.machine @here devices(2) memory(12 GiB) profile("b2.json", "b8.json")
    chimera.machine @daint devices(32) memory(16 GiB) speed("4.5 TFLOP/s")
        reserved(1 GiB) layer_overhead(300 us) memory_bandwidth("500 GB/s")
        link <latency = 10 us, bandwidth = "9 GB/s">
        all_reduce <latency = 20 us, bandwidth = "5 GB/s">
    chimera.machine @two_nodes devices(16) memory(80 GiB) speed("300 TFLOP/s")
        link <latency = 8 us, bandwidth = "45 GB/s">
        node_devices(8) node_link <latency = 3 us, bandwidth = "400 GB/s">
    ```
  }];
  let arguments = (ins
    SymbolNameAttr:$sym_name,
    Chimera_Positive:$devices,
    Chimera_Amount:$memory,
    OptionalAttr<Chimera_Amount>:$speed,
    OptionalAttr<StrArrayAttr>:$profile,
    OptionalAttr<Chimera_Amount>:$reserved,
    OptionalAttr<Chimera_Amount>:$layer_overhead,
    OptionalAttr<Chimera_Amount>:$memory_bandwidth,
    OptionalAttr<Chimera_Link>:$link,
    OptionalAttr<Chimera_Link>:$all_reduce,
    OptionalAttr<Chimera_Positive>:$node_devices,
    OptionalAttr<Chimera_Positive>:$node_cores,
    OptionalAttr<Chimera_Link>:$node_link,
    OptionalAttr<Chimera_Link>:$node_all_reduce,
    DefaultValuedAttr<Chimera_AllReduceAlgorithm,
        "::chimera::AllReduceAlgorithm::Rabenseifner">:$all_reduce_algorithm,
    UnitAttr:$blocking_all_reduce);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Bytes that a program may take on a device.
    int64_t usableMemory() {
      return static_cast<int64_t>(getMemory() - getReserved().value_or(0));
    }
  }];
}

def Chimera_PipelineOp : Chimera_Op<"pipeline", [
    Symbol, IsolatedFromAbove, NoTerminator, SingleBlock, NoRegionArguments,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "a pipelined training step, in any phase";
  let description = [{
    A training step that is to be pipelined. The op cuts a model into `stages`,
    and the mini-batch of each of the `data_parallel` copies into
    `micro_batches`. It names a schedule, or it gives one: a placement, in
    `chimera.direction` ops, and the order of actions on every worker, in
    `chimera.order` ops. If a pipeline has both a name and a placement, the
    placement and the order come from the named schedule. Later phases add their
    ops to the body.

    A pipeline names its model after `of`, its training after `with` and its
    machine after `on`. Without a model, the stages are bare: they have costs
    and sizes, and can be shown, proven, and run on synthetic or exact stages.

    The clauses `of`, `with`, `on`, `stages` and `micro_batches` come first, in
    this order. All other clauses follow in any order. Numbers may be written as
    1e-3 or 40e9, bytes with a unit (16 GiB), and words with or without quotes.

    *Workers and schedule.* `workers` is the number of workers, at most the
    number of stages; by default there is one for each stage. The schedule
    decides which stages each worker has. A schedule may have options, which are
    integers or words; `chimera-opt --help` lists them:
    `schedule("chimera", {pipelines = 4})`.

    *Updates.* `updates` says when the order changes the weights: after all
    backwards of a step, which then ends with a flush (`flush`, the default), or
    without a flush, after each backward (`each_micro_batch`) or once a step
    (`each_step`). If a schedule is named, the schedule decides this.

    *Backwards.* `split_backward` asks the schedule to split every backward into
    its input gradient and its weight gradient.

    *Recomputation.* `recompute` names stages, or `all`. The forwards of these
    stages keep nothing for their backwards. A recompute makes the activations
    again from the input of the stage. It runs before the gradient for the
    backward arrives or, if `fused`, after the gradient has arrived.

    *All-reduces.* `all_reduce` says when a worker starts the all-reduces of its
    gradients and losses. `lazy`, the default, starts them after all computation
    of the worker. `eager` starts each all-reduce after the last action that
    adds to its sum. `eager_opt` does so only if the worker has idle time
    between this action and the end of its computation. Otherwise it is lazy
    (eager-sync-opt of Li and Hoefler, "Chimera", SC'21). With `bucket_bytes`,
    the gradient of a stage is reduced in buckets of at most that many bytes
    (rounded down to a multiple of 8), with one all-reduce for each bucket. The
    gradient of a tied embedding is cut into buckets of its own. A stage is
    reduced whole if a worker has several replicas of it.

    *Time.* `time_unit` is the unit of the costs of the stages: `slot`, `flop`,
    `us`, `ns`, or `none`, the default. A description with `chimera.stage` ops
    states it. Otherwise partition makes the costs and sets the unit: `slot`
    without a model, `flop` with one. If a cost or the `link` has units, all
    times of the pipeline are in `ns`, and any other `time_unit` is invalid.
    `link` is the time of a message, in the same unit.

    *Memory.* `memory_cap` is the largest number of bytes that a worker may
    need: its whole arena of buffers, which a runtime allocates at the start,
    plus the largest size of its live stashes. A pipeline that needs more is
    refused. It is refused early if the weights, gradients, optimizer states,
    stashes and boundaries in use already need more. `receive_window` is the
    largest number of receives from one other worker that a worker may have
    posted, but not completed. By default it is the smallest number with which
    the schedule ends as early as with any number that fits into `memory_cap`.

    *Types.* Weights, their gradients and the optimizer state have
    `weight_type`: f32 (the default), f64 or bf16. Stages compute in
    `activation_type`, which is also the type of activations and of their
    gradients. It is the `weight_type` by default, and may be bf16 if the
    weights are f32. A stage then also holds a copy of its weights in bf16. With
    weights of bf16 everything takes half the memory of f32, but updates smaller
    than half of a weight's last bit are lost.

    *Machine.* If a pipeline is on a machine, the machine provides the values
    that the pipeline does not state: the `link`, and as `memory_cap` the memory
    that is not reserved. The costs are in nanoseconds. If the pipeline has a
    model, the costs follow from the machine's speed or profile.

    *Body.* The phases fill the body: first with stages, directions and orders,
    then with the step, then with the workers. A description may have
    `chimera.stage` ops of its own. It may have directions and orders in place
    of the name of a schedule. If a schedule lets steps overlap, a prologue
    precedes the step and an epilogue follows it.

    Invalid if
    - it names no schedule, and its body has nothing that replaces a schedule;
    - the body holds any other op, or a second step;
    - prologue, step and epilogue do not carry the same values from one section
      to the next;
    - there are more than 2^22 actions (they would take minutes and many
      gigabytes to compile);
    - there are more workers than stages;
    - the recomputed stages do not ascend, are an empty list, or are not below
      `stages`;
    - `recompute_fused` is given without recomputed stages;
    - buckets have less than 8 bytes;
    - `weight_type` and `activation_type` are a combination that is not listed
      above.

    Example:
    ```mlir
    chimera.pipeline @look stages(4) micro_batches(4) schedule("chimera")
    chimera.pipeline @train of @small with @slowly stages(4) micro_batches(4)
        schedule("chimera") micro_batch_size(8) recompute(all)
    chimera.pipeline @predicted of @small on @daint stages(4) micro_batches(4)
        schedule("chimera") data_parallel(8)
    chimera.pipeline @looped stages(8) micro_batches(4)
        schedule("interleaved-1f1b") workers(4)
    chimera.pipeline @mine stages(2) micro_batches(2) {
      chimera.direction 0 down on [0, 1] micro_batches [0, 1]
      chimera.order 0 "F0 F1 B0 B1"
      chimera.order 1 "F0 B0 F1 B1"
    }
    chimera.pipeline @slow stages(4) micro_batches(4) schedule("gpipe")
        link <latency = 3, receive = 1> memory_cap(1000000) receive_window(2)
    chimera.pipeline @first stages(4) micro_batches(4) schedule("1f1b")
        recompute([0, 1] fused)
    ```
  }];
  let arguments = (ins
    SymbolNameAttr:$sym_name,
    OptionalAttr<FlatSymbolRefAttr>:$model,
    OptionalAttr<FlatSymbolRefAttr>:$training,
    OptionalAttr<FlatSymbolRefAttr>:$machine,
    Chimera_From1To<I64Attr, 65535>:$stages,
    Chimera_Positive:$micro_batches,
    OptionalAttr<StrAttr>:$schedule,
    OptionalAttr<DictionaryAttr>:$schedule_options,
    OptionalAttr<Chimera_Positive>:$workers,
    DefaultValuedAttr<Chimera_Positive, "1">:$micro_batch_size,
    DefaultValuedAttr<Chimera_Positive, "1">:$data_parallel,
    DefaultValuedAttr<Chimera_Updates,
                      "::chimera::Updates::Flush">:$updates,
    UnitAttr:$split_backward,
    OptionalAttr<DenseI32ArrayAttr>:$recompute,
    UnitAttr:$recompute_fused,
    OptionalAttr<StrAttr>:$time_unit,
    OptionalAttr<Chimera_Link>:$link,
    OptionalAttr<Chimera_Size>:$memory_cap,
    DefaultValuedAttr<Chimera_AllReducePolicy,
                      "::chimera::AllReducePolicy::Lazy">:$all_reduce,
    OptionalAttr<Chimera_Positive>:$receive_window,
    OptionalAttr<Chimera_Positive>:$bucket_bytes,
    DefaultValuedAttr<Chimera_DataType, "::chimera::DataType::F32">:$weight_type,
    OptionalAttr<Chimera_DataType>:$activation_type);
  let regions = (region AnyRegion:$body);
  let hasCustomAssemblyFormat = 1;
  let extraClassDeclaration = [{
    /// The number of workers.
    size_t workerCount() { return getWorkers().value_or(getStages()); }

    /// The most decimal places of a time: of the link's, and of the stages'
    /// costs.
    uint32_t timePlaces();

    /// True if the link or the cost of a stage has units. If so, all times of
    /// the pipeline are in nanoseconds.
    bool hasTimesWithUnits();

    /// Fails, with a diagnostic, if `steps` steps have more actions than can be
    /// compiled. `parts` is the number of parts of each backward. `areSplit` is
    /// true if some backwards are split.
    ::llvm::LogicalResult verifyActions(int64_t steps, int64_t parts,
                                        bool areSplit);
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def Chimera_StageOp : Chimera_Op<"stage", [HasParent<"PipelineOp">]> {
  let summary = "a contiguous slice of the model";
  let description = [{
    Stage `index` is the layers [first, last) of the model, with the cost and
    the sizes of one micro-batch. A bare stage has no layers.

    Invalid if the range is empty or reversed, or if only one of its ends is
    given.

    Example:
    ```mlir
    chimera.stage 0 layers(0, 2) cost <forward = 31, backward = 62>
        bytes <weights = 9216, optimizer = 18432, stash = 4 KiB, boundary = 1 KiB>
    ```
  }];
  let arguments = (ins
    Chimera_Index:$index,
    OptionalAttr<Chimera_Index>:$first,
    OptionalAttr<Chimera_Index>:$last,
    Chimera_Cost:$cost,
    Chimera_Bytes:$bytes);
  let assemblyFormat = [{
    $index (`layers` `(` $first^ `,` $last `)`)? `cost` $cost `bytes` $bytes
    attr-dict
  }];
  let hasVerifier = 1;
}

def Chimera_DirectionOp : Chimera_Op<"direction", [HasParent<"PipelineOp">]> {
  let summary = "a full copy of the model, placed on the workers";
  let description = [{
    Pipeline `index`: a full copy of the model. Its stage s is on worker
    `placement[s]`, and it trains on `micro_batches`. `down` and `up` name the
    direction in which activations travel.

    Each forward covers one micro-batch. With `forwards`, forward i covers the
    next `forwards[i]` micro-batches of the list. Each backward covers one
    micro-batch. With `backward_parts`, a backward covers one of that many equal
    parts of a micro-batch.

    Invalid if a worker or a micro-batch is negative, if the micro-batches do
    not ascend, if `forwards` do not cover all of them, and if a forward covers
    micro-batches that are not consecutive.

    Example:
    ```mlir
    chimera.direction 1 up on [3, 2, 1, 0] micro_batches [2, 3]
    chimera.direction 0 down on [0, 1] micro_batches [0, 1, 4, 5] forwards [2, 2]
    chimera.direction 0 down on [0, 1] micro_batches [0, 1] backward_parts 2
    ```
  }];
  let arguments = (ins
    Chimera_Index:$index,
    Chimera_Way:$way,
    DenseI32ArrayAttr:$placement,
    DenseI32ArrayAttr:$micro_batches,
    OptionalAttr<DenseI32ArrayAttr>:$forwards,
    Chimera_Parts:$backward_parts);
  let assemblyFormat = [{
    $index $way `on` $placement `micro_batches` $micro_batches
    (`forwards` $forwards^)? (`backward_parts` $backward_parts^)? attr-dict
  }];
  let extraClassDeclaration = [{
    /// The number of micro-batches of each forward, in the order of forwards.
    ::llvm::SmallVector<int32_t> forwardCounts();
  }];
  let hasVerifier = 1;
}

def Chimera_OrderOp : Chimera_Op<"order", [HasParent<"PipelineOp">]> {
  let summary = "the order of a worker's actions, as text";
  let description = [{
    The actions of `worker`, in their order. Each action is a word:

    - `F0`, `B0`, `I0`, `W0`, `R0`: forward, whole backward, input gradient,
      weight gradient and recompute of micro-batch 0. A backward is either whole
      (`B`) or split (`I` and `W`). All parts of one backward must be of the
      same kind, and so must the same backward in every step.
    - `2F0`: the forward on stage 2. The stage is needed if the worker has
      several stages of the pipeline that the micro-batch belongs to.
    - `F0-1`: one forward of micro-batches 0 and 1, if the direction has a
      forward that covers both.
    - `B0.1`: part 1 of a backward that has parts.
    - `.` and `.3`: one and three idle slots. If any worker has such a word, or
      `.0`, timelines show every action as one slot unless you ask for times.
      Slots are only for pictures. If you change the order so that the slots no
      longer fit, delete the words for slots from all orders.
    - `|`: the end of the prologue, and the end of the step, if steps overlap.
      The prologue has one forward of a stage for each later stage. The epilogue
      numbers its micro-batches from 0. In the prologue and the step, the
      micro-batches of the next step have numbers from `micro_batches` on.

    The pipeline's `recompute` says which stages are recomputed. The `R` words
    say where in the order the recomputes are. If no worker has an `R` word,
    `chimera-recompute` decides this.

    `chimera-schedule` puts the actions of the step into this order and removes
    the op. If the order has recomputes, `chimera-recompute` inserts them and
    removes the op. `chimera-write-order` writes the orders of a scheduled
    pipeline.

    Invalid if the pipeline has another order for the worker, or if it has no
    such worker. `chimera-partition` checks the words. `chimera-schedule` checks
    that the order is possible.

    Example:
    ```mlir
    chimera.order 0 "F0 F1 B0 B1"
    chimera.order 1 "F0 I0 F1 I1 W0 W1"
    ```
  }];
  let arguments = (ins Chimera_Index:$worker, StrAttr:$actions);
  let hasCustomAssemblyFormat = 1;
  let extraClassDeclaration = [{
    /// The source location of character `at` of the text. If the op has no
    /// location in a file, the location of the op.
    ::mlir::Location locationOf(size_t at);
  }];
}

#endif // CHIMERA_DIALECT_DESCRIPTIONOPS_TD
