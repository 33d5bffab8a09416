//===- Passes.td - The phases, their verifiers, the reports *- tablegen -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_PASSES_PASSES_TD
#define CHIMERA_PASSES_PASSES_TD

include "mlir/Pass/PassBase.td"

class ChimeraPass<string name>
    : PassBase<name, "::chimera::PassOn<::mlir::ModuleOp>"> {
  let dependentDialects = ["::chimera::ChimeraDialect"];
}

/// A pass that runs separately on each worker of a projected pipeline.
class WorkerPass<string name>
    : PassBase<name, "::chimera::PassOn<::chimera::WorkerOp>"> {
  let dependentDialects = ["::chimera::ChimeraDialect"];
}

def messagesOption
    : Option<"messages", "messages", "::chimera::program::MessageModel",
             "::chimera::program::MessageModel::Rendezvous",
             "Message model for which messages are placed",
             "::chimera::messageModels()">;

//===----------------------------------------------------------------------===//
// Phases, in their order
//===----------------------------------------------------------------------===//

def PartitionPass : ChimeraPass<"chimera-partition"> {
  let summary = "Cut the model into stages and place pipelines on the workers";
  let description = [{
    described → partitioned. Cuts the model's layers (embedding and head are
    layers) into contiguous stages and gives every stage its costs and sizes. An
    exact dynamic programme makes the costliest stage as cheap as possible.
    Costs are in floating-point operations, or in nanoseconds if the pipeline
    names a machine. If the pipeline has no model, every action of its stages
    costs 1, and a whole backward costs as much as each of its halves. The pass
    sets the pipeline's `time_unit` to the unit of the costs. If the description
    gives stages, the pass keeps them.

    Then the scheme of the pipeline's schedule makes the plan: when weights
    change, the directions with their placements, and an order for each worker.
    If the description gives a placement and an order instead of a schedule's
    name, the pass keeps them.

    Fails if the scheme is unknown or does not support this number of stages and
    micro-batches, if the model is unknown or invalid, if there are fewer layers
    than stages, if an order cannot be parsed, if given stages do not have the
    model's layers, or if the given `time_unit` is not the unit of the computed
    costs.
  }];
}

def CostsFromPass : ChimeraPass<"chimera-costs-from"> {
  let summary = "Give machines the profiles of runs";
  let description = [{
    described → described. Replaces the `profile` of every `chimera.machine` of
    the module by the given files, which `chimera-run --profile` wrote. The
    costs of stages on these machines then come from the measured runs, for any
    cut of the model and any micro-batch size. A relative path is relative to
    the current folder.

    Fails if there is no machine, if no file is given, or if a file does not
    exist.
  }];
  let options = [
    ListOption<"profiles", "profiles", "std::string",
               "Profile files, for any micro-batch sizes; a file adds the "
               "measurements that earlier files of its size lack: whole "
               "backwards, split ones, recomputes">
  ];
}

def UnrollPass : ChimeraPass<"chimera-unroll"> {
  let summary = "Write one training step as a dataflow graph";
  let description = [{
    partitioned → unrolled. Makes a `chimera.step` with every load, forward,
    backward (or its two halves), all-reduce and optimizer step. If a stage has
    only one replica, its gradient gets no all-reduce. The gradient of a tied
    embedding is cut out of the gradients of the first and the last stage and
    reduced over the replicas of both stages. The order of the block has no
    meaning yet.

    If the scheme lets steps overlap, the step is between a `chimera.prologue`
    and a `chimera.epilogue`, and each action reads the version of weights that
    the scheme states.
  }];
}

def SchedulePass : ChimeraPass<"chimera-schedule"> {
  let summary = "Order the actions and name their workers";
  let description = [{
    unrolled → scheduled. Verifies the order of actions on every worker, which
    the `chimera.order` ops state. Sorts the step's block by the simulated start
    of each action. Makes each backward add to the gradient sum of the previous
    backward of its replica. Puts each load right before the action that needs
    it. If each micro-batch has an update, puts the update right after the
    action that completes its gradient. Sorts prologue and epilogue in the same
    way by their parts of the schedule. Then the pass removes the orders. If the
    orders have recomputes, it keeps them: chimera-recompute inserts the
    recomputes and then removes the orders.
  }];
}

def RecomputePass : ChimeraPass<"chimera-recompute"> {
  let summary = "Run forwards again instead of keeping their stashes";
  let description = [{
    scheduled → scheduled, for pipelines that recompute. On each stage that
    `recompute` names, a `chimera.recompute` before every backward (if the
    backward is split, before its input gradient) makes the stash of the
    backward. The forward then keeps no stash, and its input stays live instead.
    If the worker runs a backward directly after its forward, the stash still
    exists. So nothing is recomputed then, unless recomputation is fused. If
    `chimera.order` ops have recomputes, these ops decide where recomputes are.
    The pass removes slots, which are no longer valid, and sorts the block by
    simulated starts again.

    If steps overlap, the stashes of recomputed micro-batches in flight are not
    loop-carried: the inputs of their forwards replace them. Stage 0 loads its
    tokens again. A recompute reads the same version of weights as its backward.

    Fails if the schedule with the recomputes is invalid, or if the stash of a
    backward does not come from a forward or has another use.
  }];
}

def WriteOrderPass : ChimeraPass<"chimera-write-order"> {
  let summary = "Write the placement and the order as a description";
  let description = [{
    scheduled, or any later phase → described. Keeps the clauses of a pipeline,
    its stages and its directions, and replaces the name of its schedule by a
    `chimera.order` for each worker. You can edit these orders and compile the
    result.

    Fails if the pipeline has no valid order.
  }];
}

def CommunicatePass : ChimeraPass<"chimera-communicate"> {
  let summary = "Post and await messages between workers";
  let description = [{
    scheduled → communicated. If a value is made on one worker and used on
    another, the pass posts a send and a receive right after the action that
    makes the value, once for each worker that uses it. The wait for the receive
    is right before the first action that uses the value, and the wait for the
    send right after this action. If recomputation is fused, a recompute waits
    for the gradient that its backward needs. If a message would still be in
    flight at the end of a prologue or step, it is received before this end. So
    executing the block in its order is a legal execution, even if a send waits
    for its receive. No cycle of waits is possible.

    For `stream-per-device`, the pass moves each post to the place at which the
    action that makes the value ends in the simulated run. Messages then take
    effect in the order in which they are ready.

    Fails early if, by the schedule library's model, a worker of a pipeline
    exceeds its `memory_cap`.
  }];
  let options = [messagesOption];
}

def SynchronisePass : ChimeraPass<"chimera-synchronise"> {
  let summary = "Split all-reduces into a start and a wait for each worker";
  let description = [{
    communicated → synchronised. The pipeline's `all_reduce` policy says where a
    worker starts an all-reduce. With lazy, the start is after all actions of
    the worker. With eager, the start is right after the worker's last action
    that contributes, and after the posts of this action. eager_opt is the same
    as eager if, in the simulated schedule, the worker is idle at some time
    between this action and its last action. Otherwise, and if steps overlap,
    eager_opt is the same as lazy. If a worker has both the first and the last
    stage of a tied model, the later of its two contributions to the shared
    parameters decides.

    All-reduces have one order, the order in which their sums are complete. Of
    two all-reduces with the same members, each worker starts the earlier one
    first. So all members start them in the same order. The waits are after all
    actions of the section, each before the optimizer step that needs it. The
    wait for the losses is last.

    In a step with a flush, all-reduces must be after all actions, where
    schedule leaves them. If steps overlap, they may be anywhere.

    For `stream-per-device`, all members start an all-reduce at the same place
    of the global order: where the last contributing action of all members has
    ended. Each worker then starts all-reduces and posts messages in the global
    order. With eager_opt, they start there only if every member would start the
    all-reduce right after its own last contribution.
  }];
  let options = [messagesOption];
}

def ProjectPass : ChimeraPass<"chimera-project"> {
  let summary = "Give every worker its own region";
  let description = [{
    synchronised → projected. Moves each op into the `chimera.worker` that runs
    it and keeps the order. The pass decides nothing and copies nothing.
  }];
}

def ChooseWindowPass : ChimeraPass<"chimera-choose-window"> {
  let summary = "Choose how far ahead each worker posts receives";
  let description = [{
    projected → projected. Chooses the window: the number of receives of a
    channel that may be posted and not yet waited for. If the window is more
    than 1, sets the `window` of each worker. If the pipeline states a
    `receive_window`, the pass uses it. Otherwise it chooses the smallest window
    with which the simulated schedule, with the stages' costs and the pipeline's
    `link`, ends as early as with any other. This window is 1 if messages take
    no time. If there is a `memory_cap`, the pass allocates copies of the
    workers with different windows. It chooses the fastest window with which all
    workers fit. If several windows are equally fast, it chooses the smallest of
    them. If none fits, it chooses 1.

    For `stream-per-pair` and `stream-per-device`, messages of both directions
    take effect one after another, so there is no window.

    Fails if a given window is too small for a message that overtakes others, or
    if a window is given for `stream-per-pair` or `stream-per-device`.
  }];
  let options = [messagesOption];
}

def PlaceMessagesPass : WorkerPass<"chimera-place-worker-messages"> {
  let summary = "Post receives in windows, or group crossing messages, on one worker (chimera-place-messages: on all)";
  let description = [{
    projected → projected. Moves receives so that on each channel at most
    `window` of them (1 if the worker has no `window`) are posted and not yet
    waited for. The first ones are posted at the beginning of the section. Each
    later one is posted right after the wait for the message that is `window`
    messages earlier. The pass then removes `window`. If messages of a channel
    overtake each other, the channel gets a window that is large enough. The
    order of the messages of each channel stays the same. Waits for receives
    stay right before the action that needs them. In the global order, the wait
    for a send is after the action that uses the message. If this is before the
    next action of the sending worker, the pass moves the wait to after that
    action, so that the worker does not wait at once. For any window, the global
    order remains a legal execution even if a send waits for its receive.

    For `stream-per-pair` and `stream-per-device`, receives stay next to their
    sends in the global order. The pass puts some adjacent posts into one
    `chimera.group`, so that none of them waits for another. For
    `stream-per-pair`, these are posts to and from the same worker. For
    `stream-per-device`, they are sends and the receive after them, to and from
    any workers.

    Fails if the worker has buffers. For other message models, also fails if
    posts are in groups already or a receive does not have exactly one wait in
    its section.
  }];
  let options = [messagesOption];
}

def AllocatePass : WorkerPass<"chimera-allocate-worker"> {
  let summary = "Assign memory to every value, on one worker (chimera-allocate: on all)";
  let description = [{
    projected → allocated. Each value gets the first gap of the worker's arena
    that is large enough, and has it while the value is live. Values of one type
    and offset share a buffer. An action that updates a sum, weights or
    optimizer state does so in place. A transfer needs its buffer from post to
    wait, at both ends. The pass records the size of the arena, which a run
    allocates as a whole, the largest number of bytes of live stashes, and the
    largest number of live bytes in arena and stashes together.

    If steps overlap, weights, optimizer state and all other loop-carried values
    have bytes that they share with no other value. So values can exchange
    buffers at the end of a section. If other actions still read the old
    weights, an update writes the new weights to another buffer.

    Fails if a value would be updated in place while its old value is still
    needed, or if the worker has buffers already.
  }];
}

def CheckMemoryPass : ChimeraPass<"chimera-check-memory"> {
  let summary = "Check that the memory of workers fits their caps";
  let description = [{
    allocated → allocated. Fails if the arena of a worker and the largest number
    of bytes of its live stashes are together more than the `memory_cap`. Emits
    one diagnostic for each such pipeline.
  }];
}

//===----------------------------------------------------------------------===//
// Verifiers of the boundaries between phases
//===----------------------------------------------------------------------===//

def VerifyPartitionedPass : ChimeraPass<"chimera-verify-partitioned"> {
  let summary = "Check that pipelines have stages, directions and orders";
  let description = [{
    Checks that a pipeline has its stages, directions that place each stage and
    share the micro-batches, and an order for each worker. The orders can be
    parsed and have only existing actions. The pipeline has no other ops.
    `chimera-schedule` checks whether the orders are valid.
  }];
}

def VerifyUnrolledPass : ChimeraPass<"chimera-verify-unrolled"> {
  let summary = "Check that the step has all its actions";
  let description = [{
    Checks that the step, or the prologue, step and epilogue, has each action of
    the directions once, and that no action has a worker yet. Backwards must be
    whole or split as the orders say. Checks the graph of values like
    `chimera-verify-scheduled`.
  }];
}

def VerifyScheduledPass : ChimeraPass<"chimera-verify-scheduled"> {
  let summary = "Check that the step is a valid schedule";
  let description = [{
    Checks that the block is a valid schedule and a valid graph of values:
    * Every action exists once, on the worker to which the placement assigns its
      stage, in an order that respects every dependency.
    * Every action uses the values that its label asks for: the tokens, labels,
      activation, stash, gradient or loss of its own pipeline and micro-batches,
      the gradient sum of its replica, and the weights that are arguments of the
      step for this replica.
    * No two actions add to one sum. The complete gradient of every replica is
      reduced over all copies before its one optimizer step. The losses are
      summed once, in the order of micro-batches.
    * If steps overlap, the versions of weights, the stashes and the activations
      that sections have as arguments, read and yield are as the schedule
      states, and so is the order of updates.

    Reports every violation at the op that is wrong. Of wrong operands and of
    violations of the order, reports up to twenty and the number of the others.
  }];
}

def VerifyCommunicatedPass : ChimeraPass<"chimera-verify-communicated"> {
  let summary = "Check that workers share only channels and all-reduces";
  let description = [{
    Checks the same as `chimera-verify-synchronised`, except that all-reduces
    may use and make values of all workers.
  }];
}

def VerifySynchronisedPass : ChimeraPass<"chimera-verify-synchronised"> {
  let summary = "Check that workers share only channels";
  let description = [{
    Checks that every op but the step's terminator names its worker, that no op
    uses a value of another worker, and that every transfer has one wait. The
    k-th send and the k-th receive of every channel must agree in type and
    label, and the send must be before the receive's wait, so that the order is
    a legal execution. If steps overlap, loop-carried values are checked like in
    `chimera-verify-scheduled`. Reports every violation, but only the first
    mismatch of a channel.
  }];
}

def VerifyProjectedPass : ChimeraPass<"chimera-verify-projected"> {
  let summary = "Check that each worker has its stages and its actions";
  let description = [{
    Checks that each worker exists, with the replicas that the directions place
    on it and the sections that the pipeline's `updates` need. No op inside
    names a worker, and no section is outside a worker. Channels must agree like
    in `chimera-verify-synchronised`, and the workers' orders of actions must be
    a valid schedule. Reports violations of an order on the pipeline.
  }];
}

def VerifyAllocatedPass : ChimeraPass<"chimera-verify-allocated"> {
  let summary = "Check that every value has a fitting buffer";
  let description = [{
    Checks that every result has a buffer of its type, and that no byte of a
    value is overwritten before its last use. Until its wait, a transfer needs
    the operands of the op that began it. The step must leave each state in the
    buffer in which the step found the state. If steps overlap, values may
    exchange buffers at the end of a section if these buffers share no byte with
    others. Loop-carried values are then checked like in
    `chimera-verify-scheduled`. Reports every violation.
  }];
}

//===----------------------------------------------------------------------===//
// Reports
//===----------------------------------------------------------------------===//

/// The options that select the times with which a schedule is shown.
defvar timeOptions = [
  Option<"costs", "costs", "std::string", "\"uniform\"", "Times of actions",
         "::chimera::costsHelp()">,
  Option<"forward", "forward", "::chimera::Decimal", "0",
         "Time of a forward (0: not given)">,
  Option<"backward", "backward", "::chimera::Decimal", "0",
         "Time of a whole backward (0: twice the forward)">,
  Option<"weightGradient", "weight-gradient", "::chimera::Decimal", "0",
         "Time of a split backward's second half (0: half of the backward, "
         "rounded down if all times are whole)">,
  Option<"update", "update", "::chimera::Decimal", "0",
         "Time of an update of a stage's weights">,
  Option<"latency", "p2p", "::chimera::Decimal", "0",
         "Time of a message to another worker. Times of messages need forward "
         "or costs=stages. Default: with costs=stages the description's, else "
         "0">,
  Option<"latencyPerMib", "p2p-per-mib", "::chimera::Decimal", "0",
         "Additional time of a message for each MiB">,
  Option<"send", "send", "::chimera::Decimal", "0",
         "Time for which sending a message occupies the worker">,
  Option<"sendPerMib", "send-per-mib", "::chimera::Decimal", "0",
         "Additional time of sending for each MiB">,
  Option<"receive", "receive", "::chimera::Decimal", "0",
         "Time for which receiving a message occupies the worker, before the "
         "action that uses it">,
  Option<"receivePerMib", "receive-per-mib", "::chimera::Decimal", "0",
         "Additional time of receiving for each MiB">,
  Option<"unit", "unit", "std::string", "\"none\"",
         "Unit of the times that options give",
         "::chimera::unitHelp()">,
  Option<"output", "output", "std::string", "\"-\"",
         "File to write, - for standard output">
];

def PrintTimelinePass : ChimeraPass<"chimera-print-timeline"> {
  let summary = "Show the schedule over time: a grid, a picture or a trace";
  let description = [{
    Writes one document with the scheduled (or later) pipelines of a module: the
    grid of the Chimera paper with bubble and peaks, a picture, or a trace. If
    no times are given, the document shows the slots of equal length that the
    scheme states. If the scheme states none, every action runs as soon as
    possible and takes one unit. If times are given (`forward` and the options
    that go with it, or `costs=stages` for the stages' own), every action runs
    as soon as possible with these times. Times may have fractions; a column of
    the grid is then the longest time of which all times are multiples. In the
    grid, the mark ' means the second of a worker's stages, '2 the third.

    The bubble is the idle time of all workers between the start of the step and
    its flush, divided by workers times makespan. The peak of activations is the
    largest number of micro-batches of which a worker has a stash or a weight
    stash at the same time. A message may occupy its ends for some time (`send`,
    `receive`). The sending worker is then occupied after the action that sends,
    and the receiving worker before the action that receives. The document shows
    this as cells of > and < in the grid, as lower boxes in a picture, and as
    events of the category "message time" in a trace. This time counts as idle
    time.

    With `measured`, the document shows the prediction beside a real run of the
    module's single pipeline. The run is the last step in the trace that
    `chimera-run --trace` wrote. Both begin with their first action. If steps
    overlap, each worker's step is its loop body, from the end of its previous
    body to the end of this body. The last body in the trace is shown beside a
    body of the simulated steady state. The trace must then have two steps, from
    `--trace-steps 2` and a run of at least three steps. The end of the run,
    which drains the pipeline, is left out.

    As text, the document has the step, the busy time (actions and updates) and
    the idle time of each worker, and then the largest differences of durations,
    of waits before actions and of starts. As a picture, it has two rows for
    each worker, and the differences below. As a trace, it has two processes,
    and the differences in `otherData`. Times must be durations.

    Fails after the document is written if a worker exceeds its `memory_cap`,
    with one diagnostic for each such pipeline.
  }];
  let options = [
    Option<"format", "format", "std::string", "\"text\"",
           "Form of the timeline", "::chimera::timelineFormatHelp()">,
    Option<"measured", "measured", "std::string", "\"\"",
           "Trace of a run of the pipeline, to show beside the timeline">,
    Option<"copy", "copy", "int64_t", "-1",
           "Data-parallel copy of the trace to show, from 0 (not given: the one "
           "whose step took longest)">,
    Option<"width", "width", "int64_t", "0",
           "Characters in a line of the grid, which is folded to fit (0: the "
           "terminal's, or 160 if the output is no terminal)">
  ] # timeOptions;
}

def ReportPass : ChimeraPass<"chimera-report"> {
  let summary = "Report the simulated costs of the schedule beside those of formulas";
  let description = [{
    Reports each scheduled (or later) pipeline of a module: sizes, times,
    makespan, two kinds of bubble with their ratios, the activations and bytes
    on each worker, lower bounds of the makespan, and the gap to the highest
    bound. A closed formula is beside a simulated number if its conditions hold:
    the order is of the scheme that the pipeline names, stages are equal, all
    backwards are whole or all are split, messages take no time, and the further
    conditions that are printed with it.

    The bubble is the makespan minus the load (the busy time of the busiest
    worker). Its ratio is the idle time of all workers divided by workers times
    makespan. The second kind is the bubble inside a worker's span. It assumes
    that each worker begins the next step as soon as it is done with this step.
    It is the longest span minus load, and its ratio is this difference divided
    by the longest span.

    If messages take time, so do all-reduces of gradients. Their time follows
    Rabenseifner's formula over all replicas of a stage, unless the machine
    names another algorithm; the cost of a message is the sum of its latency,
    send and receive. All-reduces run in parallel to actions. The all-reduces of
    one worker run one after another, and so do the buckets of `bucket_bytes`,
    each with its own latency. A step also includes its updates. The step time
    is the mean of many consecutive steps in which each worker begins a step
    when it is done with the previous one. It is reported as the time of actions
    alone, the time that all-reduces add (also for each policy), and the time
    that updates add. `format=comparison` has a line for each pipeline,
    beginning with the one that needs the least time for a sample.

    Every action runs as soon as possible; if no times are given, it takes one
    unit. Times may have fractions. All are reported in `time_unit`.

    If the schedule's name is not a scheme's, the report has no formulas. If you
    edit the order of a scheme in a step, delete the schedule's name: no pass
    checks that the order is still the scheme's.

    A pipeline with a worker that exceeds its `memory_cap` is also reported, and
    marked as refused. The pass then fails with a diagnostic for each such
    pipeline. A program needs at least the reported peak bytes, so it may be
    refused even if the report does not say so. The report of an allocated
    pipeline has the exact bytes: each worker's arena and stashes.
  }];
  let options = [
    Option<"format", "format", "std::string", "\"table\"",
           "Form of the report", "::chimera::reportFormatHelp()">
  ] # timeOptions;
}

#endif // CHIMERA_PASSES_PASSES_TD
