//===- Attributes.td - Attributes of the chimera dialect ---*- tablegen -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_DIALECT_ATTRIBUTES_TD
#define CHIMERA_DIALECT_ATTRIBUTES_TD

include "dialect/Dialect.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

def Chimera_Cost : AttrDef<Chimera_Dialect, "Cost"> {
  let mnemonic = "cost";
  let summary = "time of each action of a stage for one micro-batch";
  let description = [{
    Times in the `time_unit` of the pipeline, or in nanoseconds if the times
    have units. All are positive, except that `update` may be 0. Times without
    units may have fractions, if `time_unit` is no duration and the pipeline is
    not compiled to a program.

    `forward` and `backward` are required. A split backward takes
    `input_gradient` and then `weight_gradient`; by default each is half of
    `backward`, the first rounded up, and at least 1. `recompute` is by default
    as long as `forward`. `update` is the time in which the optimizer updates
    one replica, by default 0. A pair of a forward and a backward takes
    `paired_forward` of the forward's stage and `backward` (or `input_gradient`)
    of the backward's stage; by default `paired_forward` is `forward`, so a pair
    saves no time. A joint weight gradient takes `weight_gradient` once, and
    `joined_weight_gradient` for each other micro-batch; by default this is
    `weight_gradient` too.

    Example: `<forward = 1, backward = 1.5, update = 3>`,
    `<forward = 2, backward = 4, paired_forward = 1>`,
    `<forward = 3.1 ms, backward = 6 ms>`

    A parameter times 10^-`places` is the time in this unit.
  }];
  let parameters = (ins
    "int64_t":$forward,
    "int64_t":$backward,
    DefaultValuedParameter<"int64_t", "0">:$input_gradient,
    DefaultValuedParameter<"int64_t", "0">:$weight_gradient,
    DefaultValuedParameter<"int64_t", "0">:$recompute,
    DefaultValuedParameter<"int64_t", "0">:$update,
    DefaultValuedParameter<"int64_t", "0">:$paired_forward,
    DefaultValuedParameter<"int64_t", "0">:$joined_weight_gradient,
    DefaultValuedParameter<"bool", "false">:$has_units,
    DefaultValuedParameter<"uint32_t", "0">:$places);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The times of the two halves of a split backward. If the attribute does
    /// not state a time, its default.
    int64_t inputGradientTime() const;
    int64_t weightGradientTime() const;
    /// The time of a recompute. If the attribute does not state it, the time of
    /// the forward.
    int64_t recomputeTime() const;
  }];
}

def Chimera_Bytes : AttrDef<Chimera_Dialect, "Bytes"> {
  let mnemonic = "bytes";
  let summary = "sizes of a stage's values";
  let description = [{
    `weights` and `optimizer` are the bytes of one replica. The other sizes are
    for one micro-batch:

    - `stash`: the values that a forward keeps for the backward;
    - `boundary`: the activation that the stage sends to the next stage;
    - `weight_stash`: the values that the input gradient of a split backward
      keeps for the weight gradient (the inputs of layers and the gradients of
      their outputs). It may be smaller or larger than the stash. If it is not
      given, or 0, it is as large as the stash.

    The last `copy` bytes of the weights (0 by default) are a copy, in another
    type, of the parameters before them. The stage computes with the copy, and
    the copy has no gradient.

    `optimizer` may be 0: an optimizer may keep no state.

    Invalid if `copy` is not less than `weights`, if `copy`, `optimizer` or
    `weight_stash` is negative, and if another size is not positive.

    Example: `<weights = 64, optimizer = 128, stash = 64, boundary = 64>`,
    `<weights = 12 MiB, optimizer = 24 MiB, stash = 3 MiB, boundary = 64 KiB>`
  }];
  let parameters = (ins
    "int64_t":$weights,
    "int64_t":$optimizer,
    "int64_t":$stash,
    "int64_t":$boundary,
    DefaultValuedParameter<"int64_t", "0">:$copy,
    DefaultValuedParameter<"int64_t", "0">:$weight_stash);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The bytes of a weight gradient of one replica.
    int64_t getGradient() const { return getWeights() - getCopy(); }
    /// The bytes of a weight stash. If the attribute does not state them, the
    /// bytes of the stash.
    int64_t weightStashBytes() const {
      return getWeightStash() > 0 ? getWeightStash() : getStash();
    }
  }];
}

def Chimera_Link : AttrDef<Chimera_Dialect, "Link"> {
  let mnemonic = "link";
  let summary = "time of a message between two workers, or two devices";
  let description = [{
    The time of a message has three parts, which follow each other:

    - `send` occupies the sending worker, after the action that makes the
      message;
    - `latency` is the time on the way, while both workers run other things;
    - `receive` occupies the receiving worker, before the action that waits for
      the message, even if the message arrived long before.

    Each of them has a second number, `send_per_mib`, `per_mib` and
    `receive_per_mib`: the time for every 2^20 bytes of the message. The time of
    a message is rounded up. All numbers are 0 by default.

    Instead of `per_mib`, `send_per_mib` and `receive_per_mib`, the link may give
    `bandwidth`, `send_bandwidth` and `receive_bandwidth`, in bytes per second.

    Times with units, and times that follow from a bandwidth, are kept in
    nanoseconds. Times without units are in the `time_unit` of the pipeline, or
    in nanoseconds if the link belongs to a machine. Either all times have units
    or none has. Times without units may have fractions under the same
    conditions as the times of a stage's cost.

    Invalid if a number is negative, or if both a bandwidth and its time are
    given.

    Example: `<latency = 100, receive = 20, receive_per_mib = 70>`,
    `<latency = 0.1>`, `<latency = 10 us, bandwidth = "9 GB/s", receive = 2 us>`

    A parameter times 10^-`places` is the time in this unit.
  }];
  let parameters = (ins
    DefaultValuedParameter<"int64_t", "0">:$latency,
    DefaultValuedParameter<"int64_t", "0">:$per_mib,
    DefaultValuedParameter<"int64_t", "0">:$send,
    DefaultValuedParameter<"int64_t", "0">:$send_per_mib,
    DefaultValuedParameter<"int64_t", "0">:$receive,
    DefaultValuedParameter<"int64_t", "0">:$receive_per_mib,
    DefaultValuedParameter<"int64_t", "0">:$bandwidth,
    DefaultValuedParameter<"int64_t", "0">:$send_bandwidth,
    DefaultValuedParameter<"int64_t", "0">:$receive_bandwidth,
    DefaultValuedParameter<"bool", "false">:$has_units,
    DefaultValuedParameter<"uint32_t", "0">:$places);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The times for every 2^20 bytes of a message. If the attribute states a
    /// bandwidth, the time that follows from it, rounded up.
    int64_t timePerMib() const;
    int64_t sendTimePerMib() const;
    int64_t receiveTimePerMib() const;
  }];
}

def Chimera_Layer : AttrDef<Chimera_Dialect, "Layer"> {
  let mnemonic = "layer";
  let summary = "equal layers of a bare model";
  let description = [{
    `count` equal layers, one after another (1 by default). Each has
    `parameters` parameters. The other numbers are for one sample:

    - `forward`: the operations of a forward;
    - `backward`: the operations of a backward, by default twice `forward`. Half
      of them compute the gradient of the input, the other half compute the
      gradient of the weights;
    - `stash`: the bytes that the forward keeps for the backward;
    - `weight_stash`: the bytes that the input gradient of a split backward
      keeps for the weight gradient, by default as many as `stash`;
    - `boundary`: the bytes of the output, which the next layer reads. The last
      layer of a model need not state it.

    Invalid if `count`, `parameters`, `forward` or `stash` is not positive, and
    if another number is negative.

    Example:
    `<count = 48, forward = 3.4 GFLOP, parameters = 12596224, stash = 16 MiB,
    boundary = 512 KiB>`
  }];
  let parameters = (ins
    "int64_t":$forward,
    "int64_t":$parameters,
    "int64_t":$stash,
    DefaultValuedParameter<"int64_t", "0">:$boundary,
    DefaultValuedParameter<"int64_t", "1">:$count,
    DefaultValuedParameter<"int64_t", "0">:$backward,
    DefaultValuedParameter<"int64_t", "0">:$weight_stash);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Chimera_Way : I32EnumAttr<"Way", "way of a direction", [
    I32EnumAttrCase<"Down", 0, "down">,
    I32EnumAttrCase<"Up", 1, "up">]> {
  let cppNamespace = "::chimera";
}

def Chimera_AllReduceAlgorithm
    : I32EnumAttr<"AllReduceAlgorithm", "how gradients are summed", [
        I32EnumAttrCase<"Rabenseifner", 0, "rabenseifner">,
        I32EnumAttrCase<"Doubling", 1, "doubling">]> {
  let cppNamespace = "::chimera";
}

def Chimera_AllReducePolicy : I32EnumAttr<"AllReducePolicy",
    "when all-reduces start", [
    I32EnumAttrCase<"Lazy", 0, "lazy">,
    I32EnumAttrCase<"Eager", 1, "eager">,
    I32EnumAttrCase<"EagerOpt", 2, "eager_opt">]> {
  let cppNamespace = "::chimera";
}

def Chimera_Updates : I32EnumAttr<"Updates", "when weights change", [
    I32EnumAttrCase<"Flush", 0, "flush">,
    I32EnumAttrCase<"EachMicroBatch", 1, "each_micro_batch">,
    I32EnumAttrCase<"EachStep", 2, "each_step">]> {
  let cppNamespace = "::chimera";
}

def Chimera_Optimizer : I32EnumAttr<"Optimizer", "how weights are updated", [
    I32EnumAttrCase<"AdamW", 0, "adamw">,
    I32EnumAttrCase<"SGD", 1, "sgd">,
    I32EnumAttrCase<"Muon", 2, "muon">]> {
  let cppNamespace = "::chimera";
}

def Chimera_RateSchedule : I32EnumAttr<"RateSchedule",
    "how the learning rate changes", [
    I32EnumAttrCase<"Constant", 0, "constant">,
    I32EnumAttrCase<"Linear", 1, "linear">,
    I32EnumAttrCase<"Cosine", 2, "cosine">,
    I32EnumAttrCase<"WarmupStableDecay", 3, "wsd">]> {
  let cppNamespace = "::chimera";
}

def Chimera_DataType : I32EnumAttr<"DataType", "type of values", [
    I32EnumAttrCase<"F32", 0, "f32">,
    I32EnumAttrCase<"F64", 1, "f64">,
    I32EnumAttrCase<"BF16", 2, "bf16">]> {
  let cppNamespace = "::chimera";
}

#endif // CHIMERA_DIALECT_ATTRIBUTES_TD
