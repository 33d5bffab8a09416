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

/// A part of a run: the step, or the prologue or epilogue around it.
class Chimera_SectionOp<string name> : Chimera_Op<name, [
    HasParent<"PipelineOp">, SingleBlock, Chimera_SectionInterface]> {
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "attr-dict-with-keyword $body";
  let hasVerifier = 1;
}

def Chimera_StepOp : Chimera_SectionOp<"step"> {
  let summary = "one training step, the body of the loop over steps";
  let description = [{
    The body of the loop over training steps. Its block arguments are the
    *loop-carried values*: for each pipeline and, inside it, for each stage, the
    weights and the optimizer state that the previous step left. The terminator
    yields the new values of weights and optimizer state. Before `schedule`, the
    order of the block has no meaning. After it, the block is in the global
    order of execution.

    If steps overlap (schedules without a flush), the step has a
    `chimera.prologue` before it and a `chimera.epilogue` after it, and each
    stage has more loop-carried values, in this order:

    - several versions of its weights, oldest first;
    - the optimizer state;
    - the stashes of micro-batches in flight, oldest first;
    - the activation that the previous stage has sent.

    If the stage is recomputed, the input activations of its forwards replace
    the stashes. If stage 0 is recomputed, it carries neither, because it loads
    its tokens again. A step that overlaps the next one runs the backwards of
    its own micro-batches 0..N-1. It runs forwards of its own micro-batches and
    of the micro-batches of the next step, which have numbers from N on.

    Invalid if the arguments are not such values, or if the yielded types differ
    from the types of the arguments.

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
  let summary = "the first forwards of step 0, which fill the pipeline";
  let description = [{
    Fills the pipeline if steps overlap: it runs the first forwards of step 0 on
    every worker. It takes the weights and the optimizer state of each stage,
    and yields the arguments of the step.

    Invalid if the arguments are not pairs of weights and optimizer state, or if
    it yields other values than the loop-carried values of a step.

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
    Runs the last step if steps overlap: a step without the forwards of a next
    one. It takes the same values as a step, and yields the newest weights and
    the optimizer state of each stage. A run of T steps is the prologue, T-1
    times the step, and the epilogue.

    Invalid if the arguments are not the loop-carried values of a step, or if it
    yields anything other than pairs of weights and optimizer state.

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
  let summary = "terminator of a section, a worker or a group";
  let description = [{
    Ends a section, or a worker's part of one, with the values for the next
    section. Ends a group with the transfers of its posts.

    Example:
    ```mlir
    chimera.yield %w1, %o1 : !chimera.weights<64>, !chimera.optimizer_state<128>
    ```
  }];
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
}

def Chimera_LoadOp : Chimera_ReplicaOp<"load"> {
  let summary = "loads the tokens or labels of micro-batches";
  let description = [{
    Loads the tokens or the labels of a micro-batch, as the result type says, on
    the worker of the stage that needs them. With `count`, it loads the tokens
    or labels of that many consecutive micro-batches, for a forward that covers
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
    (ins Chimera_Count:$count, UnitAttr:$joined),
    "(`count` $count^)? (`joined` $joined^)?",
    [DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "the forward of a stage on micro-batches";
  let description = [{
    Covers one micro-batch or, with `count`, that many consecutive ones (two in
    forward doubling, Fig. 7c of the Chimera paper). The results are first the
    outputs, then the stashes.

    A worker runs a `joined` forward and its next action, which is a backward or
    an input gradient, as one action: it begins when both can begin, and their
    messages leave when both have ended.

    - Outputs: one activation of all micro-batches for the next stage. The last
      stage, which takes labels, yields one loss for each micro-batch instead.
    - Stashes: one for each backward that will consume it, in the order of
      micro-batches and parts. If a `chimera.recompute` makes the stash of a
      backward, the forward yields no stash for this backward.

    Invalid if there are other results, and if the input is an activation on
    stage 0 or tokens on any other stage.

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
  let results = (outs Variadic<Chimera_ForwardResult>:$values);
  let assemblyFormat = actionHead # "`(` operands `)`" # types;
  let extraClassDeclaration = [{
    /// The number of results before the stashes: one activation, or a loss for
    /// each micro-batch.
    uint32_t getOutputCount() { return getLabels() ? getCount() : 1; }
    ::mlir::ResultRange getOutputs() {
      return getValues().take_front(getOutputCount());
    }
    ::mlir::ResultRange getStashes() {
      return getValues().drop_front(getOutputCount());
    }
  }];
}

def Chimera_RecomputeOp : Chimera_MicroBatchActionOp<"recompute"> {
  let summary = "runs a forward again to make the stash of one backward";
  let description = [{
    Runs a forward again to make the stash of one backward. It has the operands
    of the forward, which then need not keep this stash. It covers the
    micro-batch of the backward, or the same part of the micro-batch. If the
    input covers several micro-batches, the op uses only its own share of the
    input.

    Invalid if the input is an activation on stage 0 or tokens on any other
    stage, and if the part is not below the number of parts.

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

def Chimera_BackwardOp : Chimera_MicroBatchActionOp<"backward"> {
  let summary = "the whole backward of a stage on a micro-batch";
  let description = [{
    Covers one micro-batch, or one of `parts` equal parts of it (backward
    halving). The operands are

    - the stash;
    - the gradient of the forward's output, or on the last stage the loss of the
      micro-batch itself, to which the backward may add: so the loss is complete
      only after the last backward that takes it;
    - the weights that the forward read;
    - the sum of weight gradients of the stage replica so far. The first
      backward of a sum has no such operand.

    The results are the sum, to which this gradient is added, and the gradient
    of the stage's input. On stage 0 there is no gradient of the input.

    Invalid if the type of the sum changes, if stage 0 yields an input gradient
    or another stage does not, and if the part is not below the number of parts.

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

def Chimera_InputGradientOp : Chimera_MicroBatchActionOp<"input_gradient"> {
  let summary = "the input-gradient half of a backward";
  let description = [{
    Consumes the stash of the forward. Yields the values that the weight
    gradient needs and, except on stage 0, the gradient of the stage's input. Qi
    et al., "Zero Bubble Pipeline Parallelism", ICLR'24, call the input gradient
    B and the weight gradient W. The op consumes the stash while it makes the
    weight stash. So while it runs, the larger of the two sizes is counted as
    memory.

    Invalid if stage 0 yields an input gradient or another stage does not, and
    if the part is not below the number of parts.

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

def Chimera_WeightGradientOp : Chimera_ActionOp<"weight_gradient",
    (ins Chimera_Part:$part, Chimera_Parts:$parts, UnitAttr:$joined),
    "(`part` custom<Part>($part) `of` $parts^)? (`joined` $joined^)?"> {
  let summary = "the weight-gradient half of a backward";
  let description = [{
    Consumes the weight stash of the input gradient, and adds the micro-batch's
    weight gradient to the sum so far. If the op has no operand for the sum, its
    result is the beginning of a sum.

    A worker runs a `joined` weight gradient and its next action, which is a
    weight gradient of the same stage, as one action.

    Invalid if the type of the sum changes, and if the part is not below the
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
  let summary = "sums gradients, losses or squared norms over all replicas";
  let description = [{
    Sums over all replicas, in `width` copies of the pipeline group:

    - the weight gradients of stage `stage`, with one operand and one result for
      each pipeline; or
    - the losses of all micro-batches, with one result; or
    - with `tied`, the gradients of the parameters that stage `stage` and the
      later stage `tied` share. For each pipeline, there are two operands and
      two results: first those of `stage`, then those of `tied`; or
    - the squared norms of the gradients of all stages, for clipping. `stage` is
      the last stage. There is one operand and one result for each replica:
      first stages 0 to `stage` of pipeline 0, then those of pipeline 1, and so
      on.

    The sum is a left fold: over copies in ascending order and, inside a copy,
    over operands in their order.

    Invalid if
    - the operand types differ;
    - the results do not have the types of the operands (gradients and norms) or
      are not one loss (losses);
    - losses, norms or an odd number of operands are tied;
    - the tied stage is not after `stage`;
    - the number of norms is not a multiple of the number of stages.

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
  let arguments = (ins Variadic<Chimera_Reducible>:$contributions,
                       Chimera_Index:$stage,
                       OptionalAttr<Chimera_Index>:$tied,
                       Chimera_From1To<I32Attr, 2147483647>:$width);
  let results = (outs Variadic<Chimera_Reducible>:$sums);
  let assemblyFormat = [{
    `stage` $stage (`tied` $tied^)? `width` $width `(` $contributions `)` attr-dict
    `:` functional-type($contributions, $sums)
  }];
  let extraClassDeclaration = Chimera_StageOfContribution # [{
    /// The type of each contribution.
    ::mlir::Type summedType() { return getContributions().front().getType(); }
    bool sumsLosses() { return ::mlir::isa<LossType>(summedType()); }
    bool sumsGradients() {
      return ::mlir::isa<WeightGradientType>(summedType());
    }
  }];
  let hasVerifier = 1;
}

def Chimera_SquaredNormOp : Chimera_ReplicaOp<"squared_norm"> {
  let summary = "a replica's share of the squared norm of all gradients";
  let description = [{
    Computes the sum of the squares of gradient elements. If gradients are
    clipped by their global norm, each stage replica has this op. The sum of the
    results of all replicas, in all copies, is the square of the norm.

    All replicas of a stage have the same summed gradient. So each of R replicas
    in all copies takes only one of R ranges of the elements. The last stage of
    a tied model leaves out the tied parameters, because the first stage takes
    them. So each parameter of the model is counted once. The squares are summed
    in float64.

    Example:
    ```mlir
    %n = chimera.squared_norm pipeline 0 stage 1 on 1 (%r) :
        (!chimera.weight_gradient<64>) -> !chimera.squared_norm<8>
    ```
  }];
  let arguments = !con((ins Chimera_WeightGradient:$gradient), replica);
  let results = (outs Chimera_SquaredNorm:$norm);
  let assemblyFormat = replicaHead # placed # [{
    `(` $gradient `)` `:` functional-type($gradient, $norm)
  }];
}

def Chimera_OptimizerStepOp : Chimera_ReplicaOp<"optimizer_step", [
    AllTypesMatch<["weights", "new_weights"]>,
    AllTypesMatch<["state", "new_state"]>]> {
  let summary = "the optimizer's update of a stage replica";
  let description = [{
    Updates the weights and the optimizer state of a stage replica with the
    summed gradient. The gradient is divided by the number of micro-batches in
    the sum, over all copies. These are all micro-batches of a step or, if
    `micro_batch` is given, this micro-batch of each copy.

    If there is a fourth operand, it is the square of the norm of all gradients.
    The update then multiplies the gradient by a factor of at most 1, so that
    the norm is at most `clip_norm` of `chimera.training`.

    Invalid if a type changes.

    Example:
    ```mlir
    %w1, %o1 = chimera.optimizer_step pipeline 0 stage 1 on 1 (%w, %o, %r) :
        !chimera.weights<64>, !chimera.optimizer_state<128>,
        !chimera.weight_gradient<64>
    %w2, %o2 = chimera.optimizer_step pipeline 0 stage 1 micro_batch 3 on 1
        (%w1, %o1, %q) : !chimera.weights<64>, !chimera.optimizer_state<128>,
        !chimera.weight_gradient<64>
    %w3, %o3 = chimera.optimizer_step pipeline 0 stage 1 on 1
        (%w2, %o2, %g, %n) : !chimera.weights<64>,
        !chimera.optimizer_state<128>, !chimera.weight_gradient<64>,
        !chimera.squared_norm<8>
    ```
  }];
  let arguments = !con((ins Chimera_Weights:$weights,
                            Chimera_OptimizerState:$state,
                            Chimera_WeightGradient:$gradient,
                            Optional<Chimera_SquaredNorm>:$norm,
                            OptionalAttr<Chimera_Index>:$micro_batch), replica);
  let results = (outs Chimera_Weights:$new_weights,
                      Chimera_OptimizerState:$new_state);
  let assemblyFormat = replicaHead # "(`micro_batch` $micro_batch^)? " # placed #
      "`(` $weights `,` $state `,` $gradient (`,` $norm^)? `)` `:` "
      "type($weights) `,` type($state) `,` type($gradient) "
      "(`,` type($norm)^)?";
}

def Chimera_CopyOp : Chimera_ReplicaOp<"copy", [
    AllTypesMatch<["weights", "copy"]>]> {
  let summary = "copies weights to make a second version";
  let description = [{
    Copies weights. If a schedule keeps several versions of the weights of a
    stage, all of them begin as copies of the first.

    Invalid if the type changes.

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
