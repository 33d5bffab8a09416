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

/// A pass that runs on each worker of a projected pipeline by itself.
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
    names a machine. A pipeline without a model gets bare stages: every action
    costs 1, and a whole backward costs as much as each of its halves. The pass
    states the unit of the costs as the pipeline's `time_unit`. It keeps stages
    that the description gives.

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
    cut of the model and any micro-batch size. Relative paths begin at the
    current folder.

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
    backward (or its two halves), all-reduce and optimizer step. A gradient with
    one replica needs no all-reduce and gets none. The gradient of a tied
    embedding is cut out of the gradients of the first and the last stage and
    reduced over the replicas of both. The order of the block has no meaning
    yet.

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
    of each action and makes each backward add to the sum of the one before it.
    Loads are right before the action that needs them. If each micro-batch has
    an update, it is right after the action that completes its gradient.
    Prologue and epilogue are sorted in the same way by their parts of the
    schedule. The pass removes the orders unless they have recomputes. Then
    chimera-recompute inserts these and removes the orders.
  }];
}

def RecomputePass : ChimeraPass<"chimera-recompute"> {
  let summary = "Run forwards again instead of keeping their stashes";
  let description = [{
    scheduled → scheduled, for pipelines that recompute. On each stage that
    `recompute` names, a `chimera.recompute` before every backward (before the
    input gradient of a split one) makes its stash. The forward then keeps no
    stash, and its input stays live instead. If the worker runs a backward
    directly after its forward, the stash still exists, so nothing is recomputed
    unless recomputation is fused. If `chimera.order` ops have recomputes, these
    decide where recomputes are. The pass removes slots, which are no longer
    valid, and sorts the block by simulated starts again.

    If steps overlap, the loop-carried values include the inputs of recomputed
    forwards in flight instead of their stashes. Stage 0 loads its tokens again.
    A recompute reads the same version of weights as its backward.

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
    scheduled → communicated. A value that is made on one worker and used on
    another is posted at both ends right after the action that makes it, once
    for each worker that uses it. The receive's wait is right before the first
    action that uses the value, and the send's wait right after this action. A
    fused recompute waits for the gradient of the backward that follows it. A
    message that crosses the end of a prologue or step is received before that
    end. So executing the block in its order is a legal execution even if a send
    waits for its receive, and no cycle of waits is possible.

    For `stream-per-device`, the pass moves posts to where the sending action
    has ended in the simulated run. Messages then take effect in the order in
    which they are ready.

    Fails early if, by the schedule library's model, a worker of a pipeline
    exceeds its `memory_cap`.
  }];
  let options = [messagesOption];
}

def SynchronisePass : ChimeraPass<"chimera-synchronise"> {
  let summary = "Split all-reduces into a start and a wait for each worker";
  let description = [{
    communicated → synchronised. The pipeline's `all_reduce` policy says where a
    worker starts an all-reduce: after all its actions (lazy), or right after
    its last action that contributes and the posts of this action (eager).
    eager_opt is eager if, in the simulated schedule, the worker is idle at some
    time between that action and its last one. Otherwise, and if steps overlap,
    it is lazy. For the parameters that first and last stage share, the later of
    both contributions counts.

    All-reduces have one order, the order in which their sums are complete. A
    worker does not start one before an earlier one with the same members, so
    that all members start theirs in one order. The waits are after all actions
    of the section, each before the optimizer step that needs it. The wait for
    the losses is last.

    In a step with a flush, all-reduces must be after all actions, where
    schedule leaves them. If steps overlap, they may be anywhere.

    For `stream-per-device`, all members start an all-reduce at one place of the
    global order: where the last contributing action of all members has ended.
    Each worker then starts all-reduces and posts messages in the global order.
    With eager_opt, they start there only if every member would start it right
    after its own last contribution.
  }];
  let options = [messagesOption];
}

def ProjectPass : ChimeraPass<"chimera-project"> {
  let summary = "Give every worker its own region";
  let description = [{
    synchronised → projected. Moves each op into the `chimera.worker` that runs
    it and keeps the order. It decides nothing and copies nothing.
  }];
}

def ChooseWindowPass : ChimeraPass<"chimera-choose-window"> {
  let summary = "Choose how far ahead each worker posts receives";
  let description = [{
    projected → projected. Sets the `window` of each worker, if it is more than
    one: the number of receives of a channel that may be outstanding. This is
    the pipeline's `receive_window`, if it is stated. Otherwise it is the
    smallest window with which the simulated schedule, with the stages' costs
    and the pipeline's `link`, ends as early as with any other: 1 if messages
    take no time. If there is a `memory_cap`, the pass allocates copies of the
    workers with different windows on trial. It chooses the fastest window with
    which all workers fit, and of equally fast ones the smallest, or 1 if none
    fits.

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
    `window` of them are outstanding, or 1 if the worker has no `window`. The
    first ones are posted at the beginning of the section, each other one right
    after the wait for the message that is `window` messages earlier. The pass
    then removes `window`. If messages of a channel overtake each other, the
    channel gets a window that is large enough. The order of each channel stays
    the same. Waits for receives stay right before the action that needs them.
    Waits for sends are after the action that uses the message in the global
    order. If this is before the next action of the sending worker, they move to
    after that action, so that the worker does not wait at once. For any window,
    the global order remains a legal execution even if a send waits for its
    receive.

    For `stream-per-pair` and `stream-per-device`, receives stay next to their
    sends in the global order. The pass puts some adjacent posts into one
    `chimera.group`, so that none of them waits for another: for
    `stream-per-pair`, posts to and from the same worker; for
    `stream-per-device`, sends and the receive after them, with any workers.

    Fails if the worker has buffers. For other message models, also fails if
    posts are in groups already or a receive does not have exactly one wait in
    its section.
  }];
  let options = [messagesOption];
}

def AllocatePass : WorkerPass<"chimera-allocate-worker"> {
  let summary = "Assign memory to every value, on one worker (chimera-allocate: on all)";
  let description = [{
    projected → allocated. While a value is live, it has the first gap of the
    worker's arena that is large enough. Values of one type and offset share a
    buffer. An action that updates a sum, weights or optimizer state does so in
    place. A transfer needs its buffer from post to wait, at both ends. The pass
    records the size of the arena, which a run allocates as a whole, the most
    bytes of stashes at a time, and the peak of live bytes in arena and stashes
    together.

    If steps overlap, weights, optimizer state and all other loop-carried values
    have bytes that they share with nothing, so that values can exchange buffers
    at a section's end. If other actions still read the old weights, an update
    writes the new weights to another buffer.

    Fails if a value would be updated in place while its old value is still
    needed, or if the worker has buffers already.
  }];
}

def CheckMemoryPass : ChimeraPass<"chimera-check-memory"> {
  let summary = "Check that the memory of workers fits their caps";
  let description = [{
    allocated → allocated. Fails if a worker's arena and its most bytes of
    stashes at a time are together more than the `memory_cap`. Emits one
    diagnostic for each such pipeline.
  }];
}

//===----------------------------------------------------------------------===//
// Verifiers of the boundaries between phases
//===----------------------------------------------------------------------===//

def VerifyPartitionedPass : ChimeraPass<"chimera-verify-partitioned"> {
  let summary = "Check that pipelines have stages, directions and orders";
  let description = [{
    Checks that a pipeline has its stages, directions that place each stage and
    share the micro-batches, an order for each worker that can be parsed and has
    only existing actions, and nothing else. `chimera-schedule` checks whether
    the orders are valid.
  }];
}

def VerifyUnrolledPass : ChimeraPass<"chimera-verify-unrolled"> {
  let summary = "Check that the step has all its actions";
  let description = [{
    Checks that the step, or the prologue, step and epilogue, has each action of
    the directions once, with the backwards whole or split as the orders say,
    and that no action has a worker yet. Checks the graph of values like
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
      the sum of its replica, and the weights that the step takes for it.
    * No two actions add to one sum. The complete gradient of every replica is
      reduced over all copies before its one optimizer step. The losses are
      summed once, in the order of micro-batches.
    * If steps overlap, sections take, read and yield the versions of weights, the
      stashes and the activations that the schedule states, and updates are in its
      order.

    Reports every violation at the op that is wrong. Of the order, reports up to
    twenty and the number of the others.
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
    buffer in which it found it. If steps overlap, values may exchange buffers
    at a section's end if these share no byte with others, and loop-carried
    values are checked like in `chimera-verify-scheduled`. Reports every
    violation.
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
    no times are given, it shows the slots of equal length that the scheme
    states. If the scheme states none, every action runs as soon as possible and
    takes one unit. If times are given (`forward` and the options that go with
    it, or `costs=stages` for the stages' own), every action runs as soon as
    possible with these times. Times may have fractions; a column of the grid is
    then the longest time of which all times are multiples. The mark ' means the
    second of a worker's stages, '2 the third.

    The bubble is the idle time of all workers between the start of the step and
    its flush, divided by workers times makespan. Peak activations are the most
    micro-batches of which a worker has a stash or a weight stash. If a message
    occupies its ends for some time (`send`, `receive`), the sending worker is
    occupied after the action that sends, and the receiving worker before the
    action that receives. This is shown as cells of > and < in the grid, as
    lower boxes in a picture, and as events of the category "message time" in a
    trace. It counts as idle time.

    With `measured`, the document shows the prediction beside a real run: the
    last step in the trace that `chimera-run --trace` wrote of the module's
    single pipeline. Both begin with their first action. If steps overlap, each
    worker's step is its loop body, from the end of its previous body to the end
    of this one. The last body in the trace is shown beside one of the simulated
    steady state. The trace must then have two steps, from `--trace-steps 2` and
    a run of at least three steps. The end of the run, which drains the
    pipeline, is left out.

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

    The bubble is makespan minus load, and its ratio is the idle time of all
    workers divided by workers times makespan. The bubble inside a worker's span
    assumes that each worker begins the next step as soon as it is done with
    this one: it is the longest span minus load, and its ratio divides this by
    the sum of both.

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
