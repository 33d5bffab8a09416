//===- StepOps.td - A training step in SSA -----------------*- tablegen -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_DIALECT_STEPOPS_TD
#define CHIMERA_DIALECT_STEPOPS_TD

include "dialect/OpBase.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/RegionKindInterface.td"

/// A part of the run of all steps.
class Chimera_SectionOp<string name> : Chimera_Op<name, [
    HasParent<"PipelineOp">, SingleBlock, Chimera_SectionInterface]> {
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "attr-dict-with-keyword $body";
  let hasVerifier = 1;
}

def Chimera_StepOp : Chimera_SectionOp<"step"> {
  let summary = "one training step, the body of the loop over steps";
  let description = [{
    The block's arguments are what the step before leaves: for each pipeline
    and, inside it, for each stage, the weights and the optimizer state. Its
    terminator yields them anew. Before `schedule` the order of the block means
    nothing; after it, it is the global order of execution.

    Where steps overlap (schedules without a flush) the step stands between a
    `chimera.prologue` and a `chimera.epilogue`, and more is handed on for each
    stage: several versions of its weights, oldest first, the optimizer state,
    the stashes of micro-batches in flight, oldest first, and the activation
    that the stage before has sent. Where the stage is recomputed, the
    activations that its forwards took stand for the stashes (none on stage 0,
    which loads its tokens again). Such a step runs the backwards of its own
    micro-batches 0..N-1 and forwards of those and of the next step's, which are
    numbered from N on.

    Invalid where the arguments are not such values, or the yielded types are
    not the arguments'.

    Example:
    ```mlir
    chimera.step {
    ^bb0(%w: !chimera.weights<64>, %o: !chimera.optimizer_state<128>):
      chimera.yield %w, %o : !chimera.weights<64>, !chimera.optimizer_state<128>
    }
    ```
  }];
}

def Chimera_PrologueOp : Chimera_SectionOp<"prologue"> {
  let summary = "what runs once before all steps";
  let description = [{
    Fills the pipeline where steps overlap: the first forwards of step 0 on
    every worker. Takes the weights and the optimizer state of each stage and
    yields what the step takes.

    Invalid where the arguments are not pairs of weights and optimizer state, or
    it yields other values than a step hands on.

    Example:
    ```mlir
    chimera.prologue {
    ^bb0(%w: !chimera.weights<64>, %o: !chimera.optimizer_state<128>):
      %v = chimera.copy pipeline 0 stage 0 (%w) : !chimera.weights<64>
      %t = chimera.load pipeline 0 stage 0 micro_batch 0 : !chimera.tokens<64>
      %y, %s = chimera.forward pipeline 0 stage 0 micro_batch 0 (%t, %v) :
          (!chimera.tokens<64>, !chimera.weights<64>) ->
          (!chimera.activation<64>, !chimera.stash<64>)
      // The activation is yielded with the values of stage 1, left out here.
      chimera.yield %v, %w, %o, %s : !chimera.weights<64>,
          !chimera.weights<64>, !chimera.optimizer_state<128>,
          !chimera.stash<64>
    }
    ```
  }];
}

def Chimera_EpilogueOp : Chimera_SectionOp<"epilogue"> {
  let summary = "the last step, which drains the pipeline";
  let description = [{
    Where steps overlap: the last step, with no forward of a next one. Takes
    what a step takes and yields the newest weights and the optimizer state of
    each stage. A run of T steps is the prologue, T-1 times the step, and the
    epilogue.

    Invalid where the arguments are not what a step hands on, or it yields other
    than pairs of weights and optimizer state.

    Example:
    ```mlir
    chimera.epilogue {
    ^bb0(%v: !chimera.weights<64>, %w: !chimera.weights<64>,
         %o: !chimera.optimizer_state<128>):
      chimera.yield %w, %o : !chimera.weights<64>, !chimera.optimizer_state<128>
    }
    ```
  }];
}

def Chimera_YieldOp : Chimera_Op<"yield", [
    Terminator, ParentOneOf<["PrologueOp", "StepOp", "EpilogueOp", "WorkerOp",
                             "GroupOp"]>]> {
  let summary = "what a section, a worker or a group leaves";
  let description = [{
    Ends a section or a worker's part of one with the values for the next, and a
    group with the transfers it posted.

    Example:
    ```mlir
    chimera.yield %w1, %o1 : !chimera.weights<64>, !chimera.optimizer_state<128>
    ```
  }];
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
}

def Chimera_LoadOp : Chimera_ReplicaOp<"load"> {
  let summary = "the tokens or labels of micro-batches";
  let description = [{
    Reads what the result type says, on the worker of the stage that needs it:
    of one micro-batch, or of `count` consecutive ones for a forward that covers
    them.

    Example:
    ```mlir
    %t = chimera.load pipeline 0 stage 0 micro_batch 2 on 0 : !chimera.tokens<64>
    %u = chimera.load pipeline 0 stage 0 micro_batch 4 count 2 on 0 :
        !chimera.tokens<128>
    ```
  }];
  let arguments = !con(replica, (ins Chimera_Index:$micro_batch,
                                     Chimera_Count:$count));
  let results = (outs Chimera_Data:$data);
  let assemblyFormat = replicaHead # "`micro_batch` $micro_batch "
      "(`count` $count^)? " # placed # "`:` type($data)";
}

def Chimera_ForwardOp : Chimera_ActionOp<"forward",
    (ins Chimera_Count:$count), "(`count` $count^)?",
    [DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "the forward of a stage on micro-batches";
  let description = [{
    Covers one micro-batch or, in forward doubling, `count` consecutive ones
    (Fig. 7c of the Chimera paper: two). Yields first its outputs: the one
    activation of all of them for the next stage, or on the last stage (which
    takes labels) the loss of each. Then come the stashes: one for each backward
    that will consume it, in the order of micro-batches and parts, but none
    for a backward whose stash a `chimera.recompute` makes.

    Invalid where it yields anything else, and where the input is tokens on
    another stage than 0 or an activation on stage 0.

    Example:
    ```mlir
    %y, %s = chimera.forward pipeline 0 stage 1 micro_batch 0 on 1 (%x, %w) :
        (!chimera.activation<64>, !chimera.weights<64>) ->
        (!chimera.activation<64>, !chimera.stash<64>)
    // The last stage, on micro-batches 4 and 5.
    %e:2, %t:2 = chimera.forward pipeline 0 stage 3 micro_batch 4 count 2 on 3
        (%z, %v, %labels) :
        (!chimera.activation<128>, !chimera.weights<64>, !chimera.labels<128>) ->
        (!chimera.loss<8>, !chimera.loss<8>, !chimera.stash<64>,
         !chimera.stash<64>)
    ```
  }];
  let arguments = !con((ins Chimera_Input:$input, Chimera_Weights:$weights,
                            Optional<Chimera_Labels>:$labels), action);
  let results = (outs Variadic<Chimera_Forwarded>:$values);
  let assemblyFormat = actionHead # "`(` operands `)`" # types;
  let extraClassDeclaration = [{
    /// The results before the stashes: an activation, or a loss for each
    /// micro-batch.
    uint32_t getOutputCount() { return getLabels() ? getCount() : 1; }
    ::mlir::ResultRange getOutputs() {
      return getValues().take_front(getOutputCount());
    }
    ::mlir::ResultRange getStashes() {
      return getValues().drop_front(getOutputCount());
    }
  }];
}

def Chimera_RecomputeOp : Chimera_PieceOp<"recompute"> {
  let summary = "a forward again, for the stash of one backward";
  let description = [{
    Takes what the forward took and makes the stash that the forward then need
    not keep: that of the backward on the same micro-batch, or on the same part
    of it. Of an input that covers several micro-batches it uses its own share.

    Invalid where the input is tokens on another stage than 0 or an activation
    on stage 0, and where the part is not below the number of parts.

    Example:
    ```mlir
    %s = chimera.recompute pipeline 0 stage 1 micro_batch 0 on 1 (%x, %w) :
        (!chimera.activation<64>, !chimera.weights<64>) -> !chimera.stash<64>
    ```
  }];
  let arguments = !con((ins Chimera_Input:$input, Chimera_Weights:$weights,
                            Optional<Chimera_Labels>:$labels), action);
  let results = (outs Chimera_Stash:$stash);
  let assemblyFormat = actionHead # "`(` operands `)`" # types;
}

def Chimera_BackwardOp : Chimera_PieceOp<"backward"> {
  let summary = "the whole backward of a stage on a micro-batch";
  let description = [{
    Covers one micro-batch, or one of `parts` equal parts of it (backward
    halving). Takes the stash, the gradient of what the forward yielded (on the
    last stage the micro-batch's loss itself), the weights that the forward
    read, and the sum of the stage replica's weight gradients so far, if there
    is one: the first backward of a sum takes none. Yields the sum with this
    gradient and, but on stage 0, the gradient of the stage's input.

    Invalid where the sum's type changes, where stage 0 yields an input gradient
    or another stage does not, and where the part is not below the number of
    parts.

    Example:
    ```mlir
    // The first half of micro-batch 0, with which the sum begins.
    %g0, %dx0 = chimera.backward pipeline 0 stage 1 micro_batch 0 part 0 of 2
        on 1 (%s0, %dy0, %w) :
        (!chimera.stash<32>, !chimera.gradient<32>, !chimera.weights<64>) ->
        (!chimera.weight_gradient<64>, !chimera.gradient<32>)
    // The second half is added to it.
    %g1, %dx1 = chimera.backward pipeline 0 stage 1 micro_batch 0 part 1 of 2
        on 1 (%s1, %dy1, %w, %g0) :
        (!chimera.stash<32>, !chimera.gradient<32>, !chimera.weights<64>,
         !chimera.weight_gradient<64>) ->
        (!chimera.weight_gradient<64>, !chimera.gradient<32>)
    ```
  }];
  let arguments = !con((ins Chimera_Stash:$stash,
                            Chimera_OutputGradient:$output_gradient,
                            Chimera_Weights:$weights,
                            Optional<Chimera_WeightGradient>:$sum), action);
  let results = (outs Chimera_WeightGradient:$new_sum,
                      Optional<Chimera_Gradient>:$input_gradient);
  let assemblyFormat = actionHead # "`(` operands `)`" # types;
}

def Chimera_InputGradientOp : Chimera_PieceOp<"input_gradient"> {
  let summary = "the input-gradient half of a backward";
  let description = [{
    Consumes the forward's stash and yields what the weight gradient needs and,
    but on stage 0, the gradient of the stage's input (Qi et al., "Zero Bubble
    Pipeline Parallelism", ICLR'24, call the halves B and W). It frees what it
    has used while it makes what it keeps: a worker is taken to hold the larger
    of both stashes meanwhile.

    Invalid where stage 0 yields an input gradient or another stage does not,
    and where the part is not below the number of parts.

    Example:
    ```mlir
    %s1, %dx = chimera.input_gradient pipeline 0 stage 1 micro_batch 0 on 1
        (%s, %dy, %w) :
        (!chimera.stash<64>, !chimera.gradient<64>, !chimera.weights<64>) ->
        (!chimera.weight_stash<96>, !chimera.gradient<64>)
    ```
  }];
  let arguments = !con((ins Chimera_Stash:$stash,
                            Chimera_OutputGradient:$output_gradient,
                            Chimera_Weights:$weights), action);
  let results = (outs Chimera_WeightStash:$weight_stash,
                      Optional<Chimera_Gradient>:$input_gradient);
  let assemblyFormat = actionHead # "`(` operands `)`" # types;
}

def Chimera_WeightGradientOp : Chimera_PieceOp<"weight_gradient"> {
  let summary = "the weight-gradient half of a backward";
  let description = [{
    Consumes what the input gradient kept and adds the micro-batch's weight
    gradient to the sum so far, or begins a sum with it.

    Invalid where the sum's type changes, and where the part is not below the
    number of parts.

    Example:
    ```mlir
    %g1 = chimera.weight_gradient pipeline 0 stage 1 micro_batch 0 on 1
        (%s1, %w, %g0) :
        (!chimera.weight_stash<96>, !chimera.weights<64>,
         !chimera.weight_gradient<64>) -> !chimera.weight_gradient<64>
    ```
  }];
  let arguments = !con((ins Chimera_WeightStash:$weight_stash,
                            Chimera_Weights:$weights,
                            Optional<Chimera_WeightGradient>:$sum), action);
  let results = (outs Chimera_WeightGradient:$new_sum);
  let assemblyFormat = actionHead # "`(` operands `)`" # types;
}

def Chimera_AllReduceOp : Chimera_Op<"all_reduce"> {
  let summary = "the sum over all replicas";
  let description = [{
    Sums the weight gradients of stage `stage` over its replicas, one operand
    and one result for each pipeline, or the losses of all micro-batches into
    one. With `tied` it sums those pieces of gradients that belong to parameters
    which stage `tied` has too: the operands, and the results, are for each
    pipeline of `stage` and of `tied` in turn. `width` copies of the group take
    part. The sum is a left fold: copies ascending and, inside a copy, operands
    in their order.

    Invalid where operand types differ, where the results are not the operands'
    types (gradients) or one loss (losses), and where losses or an odd number of
    operands are tied, or the tied stage is not a later one.

    Example:
    ```mlir
    %r:2 = chimera.all_reduce stage 1 width 1 (%g_down, %g_up) :
        (!chimera.weight_gradient<64>, !chimera.weight_gradient<64>) ->
        (!chimera.weight_gradient<64>, !chimera.weight_gradient<64>)
    // The embedding that stages 0 and 3 of the one pipeline share.
    %t:2 = chimera.all_reduce stage 0 tied 3 width 1 (%first, %last) :
        (!chimera.weight_gradient<40>, !chimera.weight_gradient<40>) ->
        (!chimera.weight_gradient<40>, !chimera.weight_gradient<40>)
    ```
  }];
  let arguments = (ins Variadic<Chimera_Contribution>:$contributions,
                       Chimera_Index:$stage,
                       OptionalAttr<Chimera_Index>:$tied,
                       Chimera_From1To<I32Attr, 2147483647>:$width);
  let results = (outs Variadic<Chimera_Contribution>:$sums);
  let assemblyFormat = [{
    `stage` $stage (`tied` $tied^)? `width` $width `(` $contributions `)` attr-dict
    `:` functional-type($contributions, $sums)
  }];
  let extraClassDeclaration = Chimera_StageOfContribution # [{
    /// True if it sums losses, else gradients.
    bool sumsLosses() {
      return ::mlir::isa<LossType>(getContributions().front().getType());
    }
  }];
  let hasVerifier = 1;
}

def Chimera_OptimizerStepOp : Chimera_ReplicaOp<"optimizer_step", [
    AllTypesMatch<["weights", "new_weights"]>,
    AllTypesMatch<["state", "new_state"]>]> {
  let summary = "the optimizer's update of a stage replica";
  let description = [{
    Updates weights and optimizer state with the summed gradient, scaled by one
    over the number of micro-batches of all copies whose gradients the sum
    holds: all of a step's or, where `micro_batch` names one, that of each copy.

    Invalid where a type changes.

    Example:
    ```mlir
    %w1, %o1 = chimera.optimizer_step pipeline 0 stage 1 on 1 (%w, %o, %r) :
        !chimera.weights<64>, !chimera.optimizer_state<128>,
        !chimera.weight_gradient<64>
    %w2, %o2 = chimera.optimizer_step pipeline 0 stage 1 micro_batch 3 on 1
        (%w1, %o1, %q) : !chimera.weights<64>, !chimera.optimizer_state<128>,
        !chimera.weight_gradient<64>
    ```
  }];
  let arguments = !con((ins Chimera_Weights:$weights,
                            Chimera_OptimizerState:$state,
                            Chimera_WeightGradient:$gradient,
                            OptionalAttr<Chimera_Index>:$micro_batch), replica);
  let results = (outs Chimera_Weights:$new_weights,
                      Chimera_OptimizerState:$new_state);
  let assemblyFormat = replicaHead # "(`micro_batch` $micro_batch^)? " # placed #
      "`(` operands `)` `:` type($weights) `,` type($state) `,` "
      "type($gradient)";
}

def Chimera_CopyOp : Chimera_ReplicaOp<"copy", [
    AllTypesMatch<["weights", "copy"]>]> {
  let summary = "a second version of weights, equal to the first";
  let description = [{
    Where several versions of a stage's weights are kept, they begin as copies of
    the first.

    Invalid where the type changes.

    Example:
    ```mlir
    %v = chimera.copy pipeline 0 stage 1 on 1 (%w) : !chimera.weights<64>
    ```
  }];
  let arguments = !con((ins Chimera_Weights:$weights), replica);
  let results = (outs Chimera_Weights:$copy);
  let assemblyFormat = replicaHead # placed #
      "`(` operands `)` `:` type($weights)";
}

#endif // CHIMERA_DIALECT_STEPOPS_TD
