//===- CommunicationOps.td - What crosses workers ----------*- tablegen -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_DIALECT_COMMUNICATIONOPS_TD
#define CHIMERA_DIALECT_COMMUNICATIONOPS_TD

include "dialect/OpBase.td"
include "mlir/IR/RegionKindInterface.td"

/// A post of a message, labelled with the action that made the value.
class Chimera_PostOp<string name> : Chimera_ReplicaOp<name> {
  dag extent = (ins Chimera_Index:$micro_batch, Chimera_Count:$count,
                    Chimera_Part:$part, Chimera_Parts:$parts);
  string label = "`pipeline` $pipeline `stage` $stage `micro_batch` "
                 "$micro_batch (`count` $count^)? "
                 "(`part` custom<Part>($part) `of` $parts^)? ";
  let hasVerifier = 1;
}

def Chimera_PostSendOp : Chimera_PostOp<"post_send"> {
  let summary = "offers a value to another worker";
  let description = [{
    Returns at once; the value must not change until the transfer is waited
    for. The k-th send from one worker to another meets the k-th receive there.
    Pipeline, stage and micro-batch, with their number or part, label the
    message with the action that made the value.

    Invalid where a worker sends to itself, where the part is not below the
    number of parts, and where it is a part of several micro-batches.

    Example:
    ```mlir
    %p = chimera.post_send %y to 2 pipeline 0 stage 1 micro_batch 0 on 1 :
        !chimera.activation<64>
    ```
  }];
  let arguments = !con((ins Chimera_Message:$value, Chimera_Index:$peer),
                       extent, replica);
  let results = (outs Chimera_Sending:$transfer);
  let assemblyFormat = "$value `to` $peer " # label # placed #
                       "`:` type($value)";
}

def Chimera_PostReceiveOp : Chimera_PostOp<"post_receive"> {
  let summary = "makes room for a value from another worker";
  let description = [{
    Returns at once; the value is there when the transfer has been waited for.

    Invalid where a worker receives from itself, where what arrives is no
    activation or gradient, where the part is not below the number of parts, and
    where it is a part of several micro-batches.

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
    Holds posts and yields their transfers. To a transport with streams the
    group is one operation.

    Invalid where it holds no post or anything else, where a post names another
    worker, or where it yields other than what it posts.

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
  let summary = "a worker's part in an all-reduce";
  let description = [{
    Returns at once; the contributions must not change until the sum has been
    waited for. `workers` and `keys` list all contributions inside one copy in
    the order of the fold: who gives it, and its pipeline (gradients) or
    micro-batch (losses). With `tied`, contributions are for each pipeline of
    `stage` and of `tied` in turn (see `chimera.all_reduce`). Where the gradient
    is reduced in buckets, `bucket` says which of them this is. The sum takes the
    place of the worker's first contribution of a gradient. Members start the
    all-reduces of one group in one order.

    Invalid where the lists differ in length, the types differ or are no weight
    gradients or losses, this worker does not give as many contributions as it
    has operands, or the bucket is not below the number of buckets, or one of
    losses, and where contributions of losses are tied, do not come in pairs of
    one key, or the tied stage is not a later one.

    Example:
    ```mlir
    %t = chimera.all_reduce_start stage 1 width 1 workers [1, 2] keys [0, 1]
        on 1 (%g) : (!chimera.weight_gradient<64>) ->
        !chimera.arriving<!chimera.weight_gradient<64>>
    ```
  }];
  let arguments = !con((ins Variadic<Chimera_Contribution>:$contributions,
                            Chimera_Index:$stage,
                            OptionalAttr<Chimera_Index>:$tied,
                            Chimera_NumberOr<"0", Chimera_Index>:$bucket,
                            Chimera_NumberOr<"1",
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
  let extraClassDeclaration = Chimera_StageOfContribution;
  let hasVerifier = 1;
}

def Chimera_SplitOp : Chimera_ReplicaOp<"split"> {
  let summary = "a gradient as the pieces that it is reduced in";
  let description = [{
    Apart from the rest, the gradient of parameters that another stage has too,
    or the buckets of either. No byte moves: in memory the pieces lie one behind
    another in the place of the whole, which is used no further. Buckets begin at
    multiples of 8 bytes of what is cut (which a program is verified for, not
    this op: of tied parameters that are cut off there may be any number).

    Invalid where there are less than two pieces, one is empty, or they have
    another number of bytes than the whole.

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
  let summary = "the reduced pieces of a gradient as a whole again";
  let description = [{
    The inverse of `chimera.split`, and as little moves: the whole lies where its
    pieces lie.

    Invalid where there are less than two pieces, one is empty, or they have
    another number of bytes than the whole.

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
  let summary = "a gradient that becomes equal to another";
  let description = [{
    Where a worker gives several contributions to an all-reduce of tied
    parameters, the sum lies in the place of the first: this puts it into that of
    another, whose replica's update needs it there.

    Invalid where the type changes.

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
    Afterwards a sent value is its owner's again, and a received or reduced
    value is there. Every transfer is waited for once, on the worker that began
    it.

    Invalid where the result is not what the transfer carries.

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
