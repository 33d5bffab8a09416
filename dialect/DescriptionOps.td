//===- DescriptionOps.td - What a user describes -----------*- tablegen -*-===//
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
    The architecture and its sizes. `layers` counts transformer blocks; the
    embedding and the head are layers of their own to the partition. `dropout`
    applies after the embedding, to attention and to both residual branches.
    In a `tied` model the head multiplies by the token embedding: the first and
    the last stage hold a copy each, and its gradient is reduced over both.

    Or a PyTorch model, `exported` to a folder: its layers, their costs and
    bytes are what the package in there says. A relative path begins at the
    folder of the description.

    Or a `bare` model: a list of layers that state their operations and bytes. It
    can be partitioned and planned, and its programs run on synthetic or exact
    stages; there is nothing in it to train.

    Invalid where a size is not positive or missing, where an exported model has
    sizes or another has a package, and where a bare model has no layers or
    another has such; the architecture is looked up when the model is
    partitioned.

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

def Chimera_TrainingOp : Chimera_Op<"training", [Symbol]> {
  let summary = "how weights are trained";
  let description = [{
    What a run does with gradients and begins from, whatever is trained and on
    which workers; a pipeline names it behind `with`, and one that names none has
    what holds where a clause is not given.

    The `optimizer` is `adamw` unless given (Loshchilov and Hutter, "Decoupled
    Weight Decay Regularization", ICLR'19) or `sgd`, plain stochastic gradient
    descent, which keeps no state and has no use for `beta1`, `beta2` and
    `epsilon`. In both parameters decay by `learning_rate` times `weight_decay`, if
    more than one of their dimensions is larger than 1 or an exported model says
    so by their names. `seed` determines initial weights, data order and dropout.

    Invalid where a number is negative or not finite, or a beta not below 1, and
    where one that the optimizer has no use for is given.

    Example:
    ```mlir
    chimera.training @slowly learning_rate(1.0e-4) weight_decay(0.1) seed(7)
    chimera.training @plainly optimizer(sgd) learning_rate(1.0e-2)
    ```
  }];
  let arguments = (ins
    SymbolNameAttr:$sym_name,
    DefaultValuedAttr<Chimera_Optimizer,
                      "::chimera::Optimizer::AdamW">:$optimizer,
    DefaultValuedAttr<F64Attr, "1.0e-3">:$learning_rate,
    DefaultValuedAttr<F64Attr, "0.9">:$beta1,
    DefaultValuedAttr<F64Attr, "0.999">:$beta2,
    DefaultValuedAttr<F64Attr, "1.0e-8">:$epsilon,
    DefaultValuedAttr<F64Attr, "0.01">:$weight_decay,
    DefaultValuedAttr<I64Attr, "1">:$seed);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def Chimera_MachineOp : Chimera_Op<"machine", [Symbol]> {
  let summary = "what programs run on";
  let description = [{
    So many `devices`, each with `memory` bytes, of which `reserved` are taken by
    others (the framework, buffers of libraries). A pipeline names its machine
    behind `on`; then its stages take the time in which a device does their
    operations at `speed`, which is what layers reach, not what a data sheet
    says, and `layer_overhead` beside them for each layer in a forward and in each
    half of a backward, which makes small micro-batches dear; updates take that in
    which it moves their bytes at `memory_bandwidth`, no time unless given. Or all
    of these take what runs on the machine measured, for micro-batches of one size
    or of several: `profile` has the files of `chimera-run --profile`, of which
    each adds to those of its size before it whole backwards, split ones or recomputes
    that they have not. A relative path begins at the folder of the description.

    `link` is what messages between devices take, and `all_reduce` what the
    messages of sums do, the link's unless given. Sums over r replicas follow
    `rabenseifner`, with 2 log2(r) messages and 2 (r-1)/r of the bytes, unless the
    `all_reduce_algorithm` is `doubling`: log2(r) exchanges of all bytes. Then what
    occupies both ends, `send` and `receive` of the `all_reduce`, counts once for a
    sum, as where it is taken to the host and back. All times are in nanoseconds.
    With `blocking_all_reduce` a sum goes on only while its workers wait for it, as
    on hosts whose cores all compute: then none hides behind computation or
    updates, however eagerly it begins.

    With `node_devices` the devices are on nodes of so many, in the order of their
    numbers, and rank r runs on device r: worker w of copy d of a pipeline on
    device d D + w, where the copy has D workers. What two devices of one node
    send each other takes what `node_link` says, and what is reduced on one node
    what `node_all_reduce` says, the node's link unless given; all else takes what
    `link` and `all_reduce` say, as do two workers that share a node in some copies
    alone. Without a `node_link` a node's links are as the others.

    `node_cores` are the cores with which a host's ranks compute, a thread each:
    while more ranks than that compute, send or receive at once, each goes on as
    slowly as they share them. A profile is then to be taken where none do.

    Invalid where no memory is left, where a number is not positive, without both a
    speed and a profile, where a node has more devices than there are, and where
    cores or links of a node are given without `node_devices`.

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
  let summary = "a training step to be pipelined, and what became of it";
  let description = [{
    Cuts a model into `stages`, a mini-batch into `micro_batches` for each of
    the `data_parallel` copies, and names the schedule that interleaves them, or
    gives one: a placement, in `chimera.direction` ops, and an order, in a
    `chimera.order` for each worker. A pipeline that has both its schedule's name
    and a placement says which schedule the placement and the order are from.
    Without a model its stages are bare: they have costs and sizes and can be
    looked at, proven, and run on synthetic or exact stages.

    There is one worker for each stage unless `workers` says how many there are,
    at most as many as stages; the schedule decides which stages each has.

    A schedule may take options, integers and words, which
    `chimera-opt --help` lists: `schedule("chimera", {pipelines = 4})`.

    `updates` says when weights change in the order: behind all backwards of a
    step, which ends with a flush (`flush`, unless given), or without a flush,
    behind each backward (`each_micro_batch`) or once a step (`each_step`). The
    schedule that is named decides it itself.

    `split_backward` asks the schedule to split every backward into its input gradient and its
    weight gradient. `recompute` names stages, or `all`, whose forwards keep
    nothing for their backwards: activations are made again from the stage's
    input, before the backward's gradient arrives or, `fused`, once it is there.
    `all_reduce` says when a worker starts the all-reduces of its gradients and
    losses: behind all its computation (`lazy`, unless given), behind the last
    action that adds to them (`eager`), or there only where the worker has idle
    time between that and the end of its computation (`eager_opt`: eager-sync-opt
    of Li and Hoefler, "Chimera", SC'21).
    With `bucket_bytes` a stage's gradient, and apart from it that of a tied
    embedding, is reduced in buckets of at most so many bytes (of a multiple of
    8), an all-reduce each, unless a worker has several replicas of the stage.
    `time_unit` says in what unit the stages' costs are: `slot`, `flop`, `us`,
    `ns`, or `none`, which is meant where nothing is given. A description says so
    beside the stages that it gives; partition says it of the costs that it
    finds: `slot` without a model, `flop` with one. Where a cost or the `link` has
    units of its own, all of the pipeline's times are in `ns`, and another
    `time_unit` is invalid.

    `link` says what messages take, in the unit of the stages' costs, and
    `memory_cap` how many bytes each worker may take: the whole arena of its
    buffers, which a runtime allocates at the start, and the stashes that live at
    a time. A pipeline that needs more is refused, early where already weights,
    gradients, optimizer states, stashes and the boundaries in use are more.
    `receive_window` is how many receives each worker has
    outstanding for each other worker at most; unless given, the smallest with
    which the schedule ends as soon as with any that fits into `memory_cap`.

    Weights, their gradients and optimizer state have `weight_type`, f32 or f64.
    Stages compute in `activation_type`, which activations and their gradients
    have: the weights' unless given, or bf16 beside f32.

    A pipeline that names a `chimera.machine` behind `on` has its link, unless it
    has one, and as `memory_cap`, unless it has one, the memory that is not
    reserved. Its costs are in nanoseconds, of a model by the machine's speed.

    Clauses follow the first two in any order. Numbers may be written 1e-3 and
    40e9, bytes with a unit (16 GiB), words bare or in quotes.

    The phases fill the body: stages, directions and orders, then the step, then
    the workers. A described pipeline may give its own `chimera.stage` ops, and
    its own directions and orders in place of a schedule's name.

    Where a schedule lets steps overlap, a prologue stands before the step and an
    epilogue behind it.

    Invalid where it has neither a schedule's name nor anything else that says
    what is to run, where the body holds anything else or a second step, where prologue,
    step and epilogue do not hand the same values on, where there are more than
    2^22 actions (more would take minutes and many gigabytes to compile), where
    there are more workers than stages, where
    recomputed stages do not ascend, are none or
    not below `stages`, where `recompute_fused` stands without them, where
    buckets have less than 8 bytes, and where the types are others.

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
    /// The workers that the stages are laid over.
    size_t workerCount() { return getWorkers().value_or(getStages()); }

    /// Whether the link or some stage's cost has units: then all of the
    /// pipeline's times are nanoseconds.
    bool hasTimesWithUnits();

    /// Fails, with a diagnostic, where `steps` at a time, with backwards in
    /// `parts` and some of them split, have more actions than can be compiled.
    ::llvm::LogicalResult verifyActions(int64_t steps, int64_t parts,
                                        bool areSplit);
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def Chimera_StageOp : Chimera_Op<"stage", [HasParent<"PipelineOp">]> {
  let summary = "a contiguous slice of the model";
  let description = [{
    Stage `index` is layers [first, last) with the cost and the sizes of one
    micro-batch. A bare stage has no layers.

    Invalid where the range is empty, reversed or has one end only.

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
  let summary = "a full copy of the model laid over the workers";
  let description = [{
    Pipeline `index` holds its stage s on worker `placement[s]` and trains on
    `micro_batches`. Its way names the direction in which activations travel.
    A forward covers one micro-batch each, or `forwards[i]` of them, in their
    order; a backward covers one, or one of `backward_parts` equal parts of one.

    Invalid where a worker or a micro-batch is negative, where the micro-batches
    do not ascend, and where `forwards` do not cover them all, or one that
    covers several covers other than consecutive ones.

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
    /// How many micro-batches each forward covers, in their order.
    ::llvm::SmallVector<int32_t> forwardCounts();
  }];
  let hasVerifier = 1;
}

def Chimera_OrderOp : Chimera_Op<"order", [HasParent<"PipelineOp">]> {
  let summary = "what a worker runs, as a line of text";
  let description = [{
    The actions of `worker` in their order, a word each:

    - `F0`, `B0`, `I0`, `W0`, `R0`: forward, whole backward, input gradient,
      weight gradient and recompute of micro-batch 0. A backward is whole or
      split as its words say, each for itself, but its parts alike, and alike in
      every step.
    - `2F0`: the same on stage 2, needed where the worker has several stages of
      the micro-batch's pipeline.
    - `F0-1`: one forward of micro-batches 0 and 1, where the direction's forward
      covers both; `B0.1`: part 1 of a backward in parts.
    - `.` and `.3`: idle slots, one and three. With such a word, or `.0`, on any
      worker every action takes one slot, as the order is shown unless times are
      asked for. Slots are for pictures: where an edit no longer fits them, delete
      them from all orders.
    - `|`: where steps overlap, what ends the prologue, and what ends the step.
      A prologue has of each stage one forward for every stage behind it. The
      epilogue numbers its micro-batches from 0, the others those of the next
      step from the number of micro-batches on.

    Which stages are recomputed the pipeline's `recompute` says. Where they are is
    for the words to say or, if no worker has such a word, for `chimera-recompute`.

    The order is followed once all actions are there, by `chimera-schedule` and,
    where it has recomputes, by `chimera-recompute`, which then remove it;
    `chimera-write-order` writes that of a scheduled pipeline.

    Invalid where the pipeline has another order for that worker, or no such
    worker. The words are looked at by `chimera-partition`, and whether they are a
    possible order by `chimera-schedule`.

    Example:
    ```mlir
    chimera.order 0 "F0 F1 B0 B1"
    chimera.order 1 "F0 I0 F1 I1 W0 W1"
    ```
  }];
  let arguments = (ins Chimera_Index:$worker, StrAttr:$actions);
  let hasCustomAssemblyFormat = 1;
  let extraClassDeclaration = [{
    /// Where character `at` of the text is, as far as the op's place tells.
    ::mlir::Location placeOf(size_t at);
  }];
}

#endif // CHIMERA_DIALECT_DESCRIPTIONOPS_TD
