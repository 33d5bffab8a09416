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

/// On each worker of a projected pipeline by itself.
class WorkerPass<string name>
    : PassBase<name, "::chimera::PassOn<::chimera::WorkerOp>"> {
  let dependentDialects = ["::chimera::ChimeraDialect"];
}

def messagesOption
    : Option<"messages", "messages", "::chimera::program::MessageModel",
             "::chimera::program::MessageModel::Rendezvous",
             "The semantics of messages for which they are placed",
             "::chimera::messageModels()">;

//===----------------------------------------------------------------------===//
// Phases, in their order
//===----------------------------------------------------------------------===//

def PartitionPass : ChimeraPass<"chimera-partition"> {
  let summary = "Cut the model into stages and lay pipelines over the workers";
  let description = [{
    described → partitioned. Cuts the model's layers (embedding and head are
    layers) into contiguous stages so that the costliest stage costs as little
    as possible, by an exact dynamic programme, and gives every stage its costs
    (in floating-point operations) and sizes. A pipeline without a model gets
    bare stages, where every action costs 1, a whole backward as much as each of
    its halves. The pipeline then says in what `time_unit` they
    are. Stages that the description gives are kept. Asks the scheme of the
    pipeline's schedule for its plan: when weights change, directions and
    placements, and an order for each worker. A placement and an order that the
    description gives in place of a schedule's name are kept.

    Fails where the scheme is unknown or cannot do this number of stages and
    micro-batches, where the model is unknown or unsound, where there are fewer
    layers than stages, where an order is none, where given stages do not hold the model's layers, and
    where another `time_unit` is given than that of the costs it finds.
  }];
}

def CostsFromPass : ChimeraPass<"chimera-costs-from"> {
  let summary = "Give machines the profiles of runs";
  let description = [{
    described → described. Gives every `chimera.machine` of the module the files
    that `chimera-run --profile` wrote in place of its own `profile`: the stages of
    pipelines on it then take what those runs measured, for any cut of the model
    and any size of micro-batch. Relative paths begin at the current folder.

    Fails where there is no machine, where no file is named, and where one is not
    there.
  }];
  let options = [
    ListOption<"profiles", "profiles", "std::string",
               "The files, of any sizes of micro-batches; of one size each "
               "adds what those before it have not: whole backwards, split "
               "ones, recomputes">
  ];
}

def UnrollPass : ChimeraPass<"chimera-unroll"> {
  let summary = "Write one training step as a dataflow graph";
  let description = [{
    partitioned → unrolled. Makes a `chimera.step` with every load, forward,
    backward (or its two halves), all-reduce and optimizer step.
    A gradient with one replica needs no all-reduce and gets none. That of a
    tied embedding is cut out of the gradients of the first and the last stage
    and reduced over the replicas of both. The order of the block means nothing
    yet.

    Where the scheme lets steps overlap, a `chimera.prologue` and a
    `chimera.epilogue` stand around the step, and each action reads the version
    of weights that the scheme states.
  }];
}

def SchedulePass : ChimeraPass<"chimera-schedule"> {
  let summary = "Order the actions and name their workers";
  let description = [{
    unrolled → scheduled. Verifies the order of actions on every worker, that of
    the `chimera.order` ops, and reorders the step's block by the simulated start of
    each action; sums of gradients are threaded anew in that order. Loads stand
    before the action that needs them, and an update for each micro-batch behind
    the action that completes its gradient. Prologue and epilogue are ordered by
    their parts of the schedule. The orders are removed, unless they have
    recomputes, which chimera-recompute makes before it removes them.
  }];
}

def RecomputePass : ChimeraPass<"chimera-recompute"> {
  let summary = "Run forwards again instead of keeping what they make";
  let description = [{
    scheduled → scheduled, for pipelines that ask for it. On each stage that
    `recompute` names, a `chimera.recompute` stands before every backward (before
    the input gradient of one in halves) and makes its stash; the forward keeps
    none, its input stays live instead. Where the worker runs a backward straight
    behind its forward, the stash is there still and nothing is recomputed,
    unless recomputation is fused. Where recomputes stand in `chimera.order` ops,
    they stand there instead. Slots no longer apply and are dropped; the
    block is brought into the order of simulated starts again.

    Where steps overlap, sections hand on the inputs of recomputed forwards in
    flight instead of their stashes; stage 0 loads its tokens again. A recompute
    reads the version of weights that its backward reads.

    Fails where the schedule is not valid with the recomputes, and where a
    backward's stash does not come from a forward for it alone.
  }];
}

def WriteOrderPass : ChimeraPass<"chimera-write-order"> {
  let summary = "Write the placement and the order as a description";
  let description = [{
    scheduled, or any later form → described. What remains of a pipeline is its
    clauses, stages and directions, and a `chimera.order` for each worker in place
    of its schedule's name: the order may be changed, and is read as it was
    written.

    Fails where the pipeline has no valid order.
  }];
}

def CommunicatePass : ChimeraPass<"chimera-communicate"> {
  let summary = "Post and await what crosses workers";
  let description = [{
    scheduled → communicated. As in one walk over the global order: a value made
    on one worker and used on another is posted at both ends right behind the
    action that makes it, once however many actions of the other use it; the
    receive is waited for right before the action that uses it first, the send
    right behind that. A fused recompute waits for the gradient of the backward
    that it stands before. What is in flight at the end of a prologue or a step
    is received before it. Executing the block in its order is then a legal run
    even with rendezvous sends, so no order of waits on any worker can form a
    cycle.

    For `stream-per-device` posts stand where, in the simulated run, the action
    has ended that makes what is sent: messages then take effect in the order in
    which they are ready.

    Refuses, before work is put into it, a pipeline whose workers hold more than
    their `memory_cap` already by the schedule library's model.
  }];
  let options = [messagesOption];
}

def SynchronisePass : ChimeraPass<"chimera-synchronise"> {
  let summary = "Split all-reduces into a start and a wait for each worker";
  let description = [{
    communicated → synchronised. Starts stand where the pipeline's `all_reduce`
    says: behind all actions of the worker (lazy), right behind the last of them
    that contributes and what is sent of it (eager), or there only where the
    worker is idle for some time between that and its last action, by the
    simulated times of the schedule (eager_opt; lazy where steps overlap).
    Of what first and last stage share that is the later of both. All-reduces
    are in one order, that in which their sums are complete; a
    worker starts one not before an earlier one with the same members, so that
    members start theirs in one order. Each is waited for before the step that
    needs it, behind all actions of the section, the losses' last.

    In a step that flushes, all-reduces stand behind all actions, as schedule
    leaves them; in one that overlaps others, anywhere.

    For `stream-per-device` all members start an all-reduce in one place of the
    global order, where the last action of all that contributes has ended, so that
    each worker starts all-reduces and posts messages in that order. With
    eager_opt it is there where every member would start it behind its own last.
  }];
  let options = [messagesOption];
}

def ProjectPass : ChimeraPass<"chimera-project"> {
  let summary = "Give every worker its own region";
  let description = [{
    synchronised → projected. Moves each op into the `chimera.worker` that runs
    it, keeping the order. Nothing is decided and nothing is copied.
  }];
}

def ChooseWindowPass : ChimeraPass<"chimera-choose-window"> {
  let summary = "Choose how far ahead each worker posts receives";
  let description = [{
    projected → projected. Gives each worker its `window`, how many receives of a
    channel it may have outstanding, where that is more than one. It is the
    `receive_window` that the pipeline states or else the smallest with which the
    simulator, with the stages' costs and the `link` of the pipeline, ends as soon
    as with any: 1 where messages take no time on their way. Where there is a
    `memory_cap`, copies of the workers are placed and allocated with one window
    after another, and it is the smallest of the fastest among those with which
    all workers fit, or 1 if there is none.

    For `stream-per-pair` and `stream-per-device`, under which messages of both
    directions take effect one after another, there is no window.

    Fails where a given window is too small for a message that overtakes others,
    and where one is given for one of these two.
  }];
  let options = [messagesOption];
}

def PlaceMessagesPass : WorkerPass<"chimera-place-worker-messages"> {
  let summary = "Post receives in windows, or group what crosses, on one worker (chimera-place-messages: on all)";
  let description = [{
    projected → projected. On each channel the worker has at most as many receives
    outstanding as its `window` says, 1 where it has none: the first are posted
    where the section begins, each other right behind the wait for the message a
    window before it. The pass removes the `window`. A channel whose messages
    overtake each other gets as large a window as that needs. The order of a
    channel is kept. Waits for receives stay right before the action that needs
    them. Those for sends stay behind the action that uses what was sent, in the
    global order, and move behind the next action of their own worker where they
    stand before it, so that a message is not waited for at once. Whatever the
    window, the global order so remains a legal run with rendezvous sends.

    For `stream-per-pair` and `stream-per-device` receives stay where they are,
    next to their sends in the global order. Of posts that stand side by side some
    become one `chimera.group`, so that none of them waits for another: those to
    and from the same worker, or for `stream-per-device` sends and the receive
    behind them, whatever the workers.

    Fails, for other models of messages, where posts are in groups already or a
    receive has not one wait in its section, and where the worker has buffers.
  }];
  let options = [messagesOption];
}

def AllocatePass : WorkerPass<"chimera-allocate-worker"> {
  let summary = "Give every value a place in memory, on one worker (chimera-allocate: on all)";
  let description = [{
    projected → allocated. Gives each value the first gap of the worker's arena
    that it fits while it lives; values of one type in one place share a buffer.
    An action that updates a sum, weights or optimizer state updates them in
    place; a transfer owns its buffer from post to wait, at both ends. States the
    arena of the worker, which a run allocates, the most bytes of stashes at a
    time, and the peak of what lives in the arena and of stashes.

    Where steps overlap, versions of weights and whatever else sections hand on
    have places that they share with nothing, so that values can change places at
    a section's end; an update takes another place where its old weights are
    still read.

    Fails where a value would be updated in place while its old value is still
    needed, and where the worker has buffers already.
  }];
}

def CheckMemoryPass : ChimeraPass<"chimera-check-memory"> {
  let summary = "Check that what workers take fits their caps";
  let description = [{
    allocated → allocated. Fails, for each pipeline with one diagnostic, where
    arena and most bytes of stashes at a time of a worker are together more than
    the `memory_cap`.
  }];
}

//===----------------------------------------------------------------------===//
// What must hold at the boundaries
//===----------------------------------------------------------------------===//

def VerifyPartitionedPass : ChimeraPass<"chimera-verify-partitioned"> {
  let summary = "Check that pipelines have their stages and their plan";
  let description = [{
    A pipeline has stages, directions that place each of them and share out the
    micro-batches, and an order for each worker that can be read, of actions that
    there are; nothing else. Whether an order is valid is for `chimera-schedule`
    to say.
  }];
}

def VerifyUnrolledPass : ChimeraPass<"chimera-verify-unrolled"> {
  let summary = "Check that the step has all its actions";
  let description = [{
    The step, or the prologue, step and epilogue, has each action once that the
    directions ask for, with the backwards whole or split as the orders say, and
    none on a worker yet. As a graph it is what `chimera-verify-scheduled` checks.
  }];
}

def VerifyScheduledPass : ChimeraPass<"chimera-verify-scheduled"> {
  let summary = "Check that the step is a valid schedule";
  let description = [{
    Every action stands once, on the worker where its pipeline's placement puts
    its stage, in an order that respects every dependency. It takes what its
    label asks for: the tokens, labels, activation, stash, gradient or loss of
    its own pipeline and micro-batches, the sum of its replica and the weights
    that the step takes for it. No two actions add to one sum. The whole gradient
    of every replica is reduced, over all copies, before its one optimizer step;
    the losses are summed once, in the order of micro-batches. Where steps
    overlap, sections read and hand on the versions of weights, stashes and
    activations that the schedule states, and update in its order. Reports
    violations at the op that is wrong, of the order up to twenty and how many
    more.
  }];
}

def VerifyCommunicatedPass : ChimeraPass<"chimera-verify-communicated"> {
  let summary = "Check that workers share channels and all-reduces alone";
  let description = [{
    What `chimera-verify-synchronised` checks, but for the all-reduces, whose
    operands and results are of all workers.
  }];
}

def VerifySynchronisedPass : ChimeraPass<"chimera-verify-synchronised"> {
  let summary = "Check that workers share nothing but channels";
  let description = [{
    Every op but the step's terminator names its worker, no op uses a value of
    another worker, every transfer is waited for once, and the k-th send and the
    k-th receive of every channel agree in type and label and the send stands
    before the receive's wait: the order is a legal run. Where steps overlap,
    what sections read and hand on is checked as in `chimera-verify-scheduled`.
    Reports every violation, of a channel the first that does not agree.
  }];
}

def VerifyProjectedPass : ChimeraPass<"chimera-verify-projected"> {
  let summary = "Check that each worker has its stages and its actions";
  let description = [{
    There is each worker, with the replicas that the directions place on it and
    the sections that the pipeline's updates ask for; no op inside names one, and
    none is left outside. Channels agree as in `chimera-verify-synchronised`, and
    the workers' orders of actions are a valid schedule. Reports violations of an
    order on the pipeline.
  }];
}

def VerifyAllocatedPass : ChimeraPass<"chimera-verify-allocated"> {
  let summary = "Check that every value has a fitting buffer";
  let description = [{
    Every result has a buffer of its type, and no byte of a value is written
    before its last use; a transfer uses what it was begun with until its wait.
    The step leaves its states where it found them; where steps overlap, values
    may change places at a section's end, in buffers that share no byte with
    others, and what sections read and hand on is checked as in
    `chimera-verify-scheduled`. Reports every violation.
  }];
}

//===----------------------------------------------------------------------===//
// Reports
//===----------------------------------------------------------------------===//

/// Which times to show a schedule with.
defvar timeOptions = [
  Option<"costs", "costs", "std::string", "\"uniform\"", "Times of actions",
         "::chimera::costsHelp()">,
  Option<"forward", "forward", "::chimera::Decimal", "0",
         "Time of a forward (0: not given)">,
  Option<"backward", "backward", "::chimera::Decimal", "0",
         "Time of a whole backward (0: twice the forward)">,
  Option<"weightGradient", "weight-gradient", "::chimera::Decimal", "0",
         "Time of a split backward's second half (0: half of the backward, "
         "rounded down to a unit where all times are whole)">,
  Option<"update", "update", "::chimera::Decimal", "0",
         "Time of an update of a stage's weights">,
  Option<"latency", "p2p", "::chimera::Decimal", "0",
         "Time of a message on its way to another worker; needs forward or "
         "costs=stages, as all times of messages, which are the description's "
         "with costs=stages unless given, else 0">,
  Option<"latencyPerMib", "p2p-per-mib", "::chimera::Decimal", "0",
         "The same for each 2^20 bytes of it, in addition">,
  Option<"send", "send", "::chimera::Decimal", "0",
         "Time for which a message occupies the worker that makes it">,
  Option<"sendPerMib", "send-per-mib", "::chimera::Decimal", "0",
         "The same for each 2^20 bytes of it, in addition">,
  Option<"receive", "receive", "::chimera::Decimal", "0",
         "Time for which a message occupies the worker that uses it, before "
         "the action that does">,
  Option<"receivePerMib", "receive-per-mib", "::chimera::Decimal", "0",
         "The same for each 2^20 bytes of it, in addition">,
  Option<"unit", "unit", "std::string", "\"none\"",
         "Unit of the times that options give",
         "::chimera::unitHelp()">,
  Option<"output", "output", "std::string", "\"-\"",
         "File to write, - for standard output">
];

def PrintTimelinePass : ChimeraPass<"chimera-print-timeline"> {
  let summary = "Show the schedule over time: a grid, a picture or a trace";
  let description = [{
    Shows the scheduled (or later) pipelines of a module as one document: the
    grid of the Chimera paper with bubble and peaks, a picture, or a trace.
    Without times: in slots of equal length, where the scheme states them, else
    every action as soon as possible with unit times. The second of a worker's
    stages is marked by ', the third by '2. With times (`forward` and
    what goes with it, or `costs=stages` for the stages' own): every action as
    soon as possible in these. Times may have fractions; a column of the grid is
    then the longest time of which all are multiples.

    The bubble is the idle time of all workers between the start of the step and
    its flush, over workers times makespan. Peak activations count micro-batches
    of which a worker holds a stash or a weight stash. Where the ends of messages
    take time (`send`, `receive`), the worker is occupied by them behind the action
    that sends and before the action that receives: cells of > and < in the grid,
    lower boxes in a picture, events of the category "message time" in a trace.
    They count as idle time.

    With `measured` the document shows what ran beside what was predicted: the
    last step of the trace that `chimera-run --trace` wrote of the module's one
    pipeline. Both begin with their first action. Where steps overlap, a
    step is what each worker repeats once a step, from when it was done with the
    repetition before: the last one of the trace stands beside one of the steady
    state. So the trace needs two, which `--trace-steps 2` writes of a run of three
    steps or more. The end of the run, which drains the pipeline, is left out. As
    text: step, busy time
    (actions and updates) and idle time of each worker, then the largest
    differences of durations, of waits before actions and of starts. As a
    picture: two rows for each worker, and the differences below. As a trace: two
    processes, and the differences in `otherData`. Times must be durations.

    Fails where workers hold more than their `memory_cap`, with one diagnostic
    for each pipeline and after the document has been written.
  }];
  let options = [
    Option<"format", "format", "std::string", "\"text\"",
           "Form of the timeline", "::chimera::timelineFormatHelp()">,
    Option<"measured", "measured", "std::string", "\"\"",
           "Trace of a run of the pipeline, to be shown beside the timeline">,
    Option<"copy", "copy", "int64_t", "-1",
           "Data-parallel copy of the trace to show, from 0 (not given: the one "
           "whose step took longest)">,
    Option<"width", "width", "int64_t", "0",
           "Characters in a line of the grid, which is folded to fit (0: the "
           "terminal's, or 160 where the output is none)">
  ] # timeOptions;
}

def ReportPass : ChimeraPass<"chimera-report"> {
  let summary = "Report what the schedule costs, beside what formulas say";
  let description = [{
    Reports each scheduled (or later) pipeline of a module: sizes, times,
    makespan, both bubbles with their ratios, the activations and bytes that
    workers hold, lower bounds of the makespan and the gap to the highest. A
    closed form stands beside what was simulated wherever its conditions hold:
    an order of the scheme that the pipeline names, equal stages, backwards that
    are all whole or all split, messages that take no time, and those printed
    with it.

    The bubble is makespan less load, its ratio the idle time of
    all workers over workers times makespan. The bubble inside a worker's span
    lets the next step start on each worker as soon as it is done: longest span
    less load, its ratio over the sum of both.

    Where messages take time, so do all-reduces of gradients, by Rabenseifner's
    formula over all replicas of a stage, a message's latency, send and receive
    together being its cost. All-reduces run beside actions, those of a worker one
    after another, and so do the buckets of `bucket_bytes`, each with a latency of
    its own. A step also takes its updates. What it takes is the mean of many
    one after another, as each worker begins the next when it is done with the one
    before: actions alone, what all-reduces add to them (for each policy too) and
    what updates do. `format=comparison` has a line for each pipeline, the one
    that takes least time for a sample first.

    Every action runs as soon as possible; without times each takes one unit.
    Times may have fractions. All are reported in `time_unit`.

    A schedule of one's own, whose name no scheme has, is reported without
    formulas. Whoever edits the order of a scheme, in a step, deletes its name:
    no pass makes the scheme's order again to see that they differ.

    A pipeline whose workers hold more than their `memory_cap` is reported too
    and marked as refused. For each such the pass then fails with a diagnostic.
    A program may be refused though its report is not: it takes at least the
    peak bytes. What it takes, each worker's arena and stashes, stands in the
    report of an allocated pipeline.
  }];
  let options = [
    Option<"format", "format", "std::string", "\"table\"",
           "Form of the report", "::chimera::reportFormatHelp()">
  ] # timeOptions;
}

#endif // CHIMERA_PASSES_PASSES_TD
