//===- CommunicationOps.td - Messages and all-reduces ------*- tablegen -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_DIALECT_COMMUNICATIONOPS_TD
#define CHIMERA_DIALECT_COMMUNICATIONOPS_TD

include "dialect/OpBase.td"
include "mlir/IR/RegionKindInterface.td"

/// A post of a message. Pipeline, stage, micro-batch, and count or part are its
/// label: they name the action that made the value.
class Chimera_PostOp<string name> : Chimera_ReplicaOp<name> {
  dag extent = (ins Chimera_Index:$micro_batch, Chimera_Count:$count,
                    Chimera_Part:$part, Chimera_Parts:$parts);
  string label = "`pipeline` $pipeline `stage` $stage `micro_batch` "
                 "$micro_batch (`count` $count^)? "
                 "(`part` custom<Part>($part) `of` $parts^)? ";
  let hasVerifier = 1;
}

def Chimera_PostSendOp : Chimera_PostOp<"post_send"> {
  let summary = "posts a send of a value to another worker";
  let description = [{
    Posts a send to worker `to` and returns at once. The value must not change
    until `chimera.wait` for the transfer. The k-th send from worker v to worker
    w matches the k-th receive that w posts from v. The label of the message
    names the action that made the value: pipeline, stage and micro-batch, with
    count or part.

    Invalid if a worker sends to itself, if the part is not below the number of
    parts, and if the message is a part of several micro-batches.

    Example:
    ```mlir
    %p = chimera.post_send %y to 2 pipeline 0 stage 1 micro_batch 0 on 1 :
        !chimera.activation<64>
    ```
  }];
  let arguments = !con((ins Chimera_Sendable:$value, Chimera_Index:$peer),
                       extent, replica);
  let results = (outs Chimera_Sending:$transfer);
  let assemblyFormat = "$value `to` $peer " # label # placed #
                       "`:` type($value)";
}

def Chimera_PostReceiveOp : Chimera_PostOp<"post_receive"> {
  let summary = "posts a receive of a value from another worker";
  let description = [{
    Posts a receive from worker `from` and returns at once. The value is
    available after `chimera.wait` for the transfer. A receive has the label of
    the send that it matches (see `chimera.post_send`).

    Invalid if a worker receives from itself, if the value that arrives is not
    an activation or a gradient, if the part is not below the number of parts,
    and if the message is a part of several micro-batches.

    Example:
    ```mlir
    %q = chimera.post_receive from 0 pipeline 0 stage 0 micro_batch 0 on 1 :
        !chimera.arriving<!chimera.activation<64>>
    ```
  }];
  let arguments = !con((ins Chimera_Index:$peer), extent, replica);
  let results = (outs Chimera_Arriving:$transfer);
  let assemblyFormat = "`from` $peer " # label # placed #
                       "`:` type($transfer)";
}

def Chimera_GroupOp : Chimera_PlacedOp<"group", [
    SingleBlock, NoRegionArguments]> {
  let summary = "posts that take effect together";
  let description = [{
    Contains posts and yields their transfers. If the transport uses streams,
    the posts of a group are one operation of the transport.

    Invalid if it contains no post or an op that is not a post, if a post names
    another worker, and if it does not yield exactly its transfers.

    Example:
    ```mlir
    %t:2 = chimera.group on 1 {
      %p = chimera.post_send %y to 2 pipeline 0 stage 1 micro_batch 0 on 1 :
          !chimera.activation<64>
      %q = chimera.post_receive from 2 pipeline 1 stage 1 micro_batch 2 on 1 :
          !chimera.arriving<!chimera.activation<64>>
      chimera.yield %p, %q : !chimera.sending,
          !chimera.arriving<!chimera.activation<64>>
    } : !chimera.sending, !chimera.arriving<!chimera.activation<64>>
    ```
  }];
  let arguments = placement;
  let regions = (region SizedRegion<1>:$posts);
  let results = (outs Variadic<Chimera_Transfer>:$transfers);
  let assemblyFormat = [{
    (`on` $worker^)? (`buffers` $buffers^)? $posts attr-dict
    `:` type($transfers)
  }];
  let hasVerifier = 1;
}

def Chimera_AllReduceStartOp : Chimera_PlacedOp<"all_reduce_start"> {
  let summary = "starts a worker's part of an all-reduce";
  let description = [{
    Starts this worker's part of an all-reduce and returns at once. The
    contributions must not change until `chimera.wait` for the sum.

    `workers` and `keys` list all contributions of one copy, in the order in
    which they are summed: the worker that makes the contribution, and its key.
    The key is a pipeline (gradients, squared norms) or a micro-batch (losses).
    With `tied`, contributions of `stage` and of the tied stage alternate, for
    each pipeline. Squared norms come from the stages 0 to `stage` of each
    pipeline (see `chimera.all_reduce`). `width` is the number of copies. If a gradient
    is reduced in buckets, `bucket` is the index of this bucket. The sum of
    gradients overwrites the worker's first contribution. All workers that take
    part in the same all-reduces start them in the same order.

    Invalid if
    - the two lists differ in length;
    - the types of contributions and sum differ, or are not weight gradients,
      losses or squared norms;
    - the op has not as many operands as the lists name contributions of this
      worker;
    - the bucket is not below the number of buckets, or losses or norms have
      buckets;
    - the number of norms is not a multiple of the number of stages;
    - losses or norms are tied, the tied stage is not after `stage`, or tied
      contributions do not come in pairs with the same key.

    Example:
    ```mlir
    %t = chimera.all_reduce_start stage 1 width 1 workers [1, 2] keys [0, 1]
        on 1 (%g) : (!chimera.weight_gradient<64>) ->
        !chimera.arriving<!chimera.weight_gradient<64>>
    ```
  }];
  let arguments = !con((ins Variadic<Chimera_Reducible>:$contributions,
                            Chimera_Index:$stage,
                            OptionalAttr<Chimera_Index>:$tied,
                            Chimera_NumberWithDefault<"0", Chimera_Index>:$bucket,
                            Chimera_NumberWithDefault<"1",
                                Chimera_From1To<I32Attr, 2147483647>>:$buckets,
                            Chimera_From1To<I32Attr, 2147483647>:$width,
                            DenseI32ArrayAttr:$workers,
                            DenseI32ArrayAttr:$keys), placement);
  let results = (outs Chimera_Arriving:$transfer);
  let assemblyFormat = "`stage` $stage (`tied` $tied^)? "
      "(`bucket` custom<Part>($bucket) `of` $buckets^)? "
      "`width` $width `workers` $workers "
      "`keys` $keys " # placed # [{
    `(` $contributions `)` `:` functional-type($contributions, $transfer)
  }];
  let extraClassDeclaration = Chimera_StageOfContribution # [{
    /// The type of each contribution.
    ::mlir::Type summedType() { return getTransfer().getType().getValue(); }
  }];
  let hasVerifier = 1;
}

def Chimera_SplitOp : Chimera_ReplicaOp<"split"> {
  let summary = "splits a gradient into pieces that are reduced separately";
  let description = [{
    Splits a gradient into pieces. A piece is the gradient of parameters that
    another stage shares, the gradient of the other parameters, or a bucket of
    either gradient. No byte moves: in memory, the pieces lie one after another
    where the whole gradient was. The whole gradient is not used any more.
    Buckets begin at multiples of 8 bytes of the gradient that they are cut
    from. The verification of the program checks this, not the verifier of this
    op, because a piece need not be a bucket: the gradient of tied parameters
    may have any number of bytes.

    Invalid if there are fewer than two pieces, if one is empty, and if the
    pieces do not have as many bytes as the whole.

    Example:
    ```mlir
    %b:2 = chimera.split pipeline 0 stage 1 on 1 (%g) :
        (!chimera.weight_gradient<64>) ->
        (!chimera.weight_gradient<40>, !chimera.weight_gradient<24>)
    ```
  }];
  let arguments = !con((ins Chimera_WeightGradient:$gradient), replica);
  let results = (outs Variadic<Chimera_WeightGradient>:$pieces);
  let assemblyFormat = replicaHead # placed # [{
    `(` $gradient `)` `:` functional-type($gradient, $pieces)
  }];
  let hasVerifier = 1;
}

def Chimera_JoinOp : Chimera_ReplicaOp<"join"> {
  let summary = "joins the reduced pieces of a gradient";
  let description = [{
    Joins the reduced pieces of a gradient. This is the inverse of
    `chimera.split`. No byte moves: in memory, the whole gradient is where its
    pieces are.

    Invalid if there are fewer than two pieces, if one is empty, and if the
    pieces do not have as many bytes as the whole.

    Example:
    ```mlir
    %r = chimera.join pipeline 0 stage 1 on 1 (%r0, %r1) :
        (!chimera.weight_gradient<40>, !chimera.weight_gradient<24>) ->
        !chimera.weight_gradient<64>
    ```
  }];
  let arguments = !con((ins Variadic<Chimera_WeightGradient>:$pieces), replica);
  let results = (outs Chimera_WeightGradient:$gradient);
  let assemblyFormat = replicaHead # placed # [{
    `(` $pieces `)` `:` functional-type($pieces, $gradient)
  }];
  let hasVerifier = 1;
}

def Chimera_OverwriteOp : Chimera_ReplicaOp<"overwrite", [
    AllTypesMatch<["place", "value", "result"]>]> {
  let summary = "copies a reduced gradient over another one";
  let description = [{
    Copies `value` into the memory of `place`. A worker needs this op if it
    makes several contributions to an all-reduce of tied parameters. The sum is
    then in the memory of the first contribution. The optimizer step of another
    replica needs the sum in the memory of its own contribution.

    Invalid if the types of place, value and result differ.

    Example:
    ```mlir
    %t = chimera.overwrite pipeline 1 stage 3 on 0 (%last with %sum) :
        !chimera.weight_gradient<40>
    ```
  }];
  let arguments = !con((ins Chimera_WeightGradient:$place,
                            Chimera_WeightGradient:$value), replica);
  let results = (outs Chimera_WeightGradient:$result);
  let assemblyFormat = replicaHead # placed # [{
    `(` $place `with` $value `)` `:` type($value)
  }];
}

def Chimera_WaitOp : Chimera_PlacedOp<"wait"> {
  let summary = "completes a transfer";
  let description = [{
    Waits until a transfer is complete. After that, a sent value may change
    again, and a received or reduced value is available. There is one wait for
    every transfer, on the worker that began the transfer.

    Invalid if the result does not have the type that the transfer carries.

    Example:
    ```mlir
    %x = chimera.wait %q on 1 :
        !chimera.arriving<!chimera.activation<64>> -> !chimera.activation<64>
    chimera.wait %p on 1 : !chimera.sending
    ```
  }];
  let arguments = !con((ins Chimera_Transfer:$transfer), placement);
  let results = (outs Optional<AnyType>:$value);
  let assemblyFormat = "$transfer " # placed #
                       "`:` type($transfer) (`->` type($value)^)?";
  let hasVerifier = 1;
}

#endif // CHIMERA_DIALECT_COMMUNICATIONOPS_TD
