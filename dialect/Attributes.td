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
    In the pipeline's `time_unit`, or in nanoseconds where all have units; all
    positive but `update`, which is what the optimizer takes for one replica, 0
    unless given. A backward that is split takes `input_gradient` and then
    `weight_gradient`; unless given, each is half of the backward (the first
    rounded up), and at least 1. A `recompute` takes as long as the forward unless
    given.

    Example: `<forward = 1, backward = 2, update = 3>`,
    `<forward = 3.1 ms, backward = 6 ms>`
  }];
  let parameters = (ins
    "int64_t":$forward,
    "int64_t":$backward,
    DefaultValuedParameter<"int64_t", "0">:$input_gradient,
    DefaultValuedParameter<"int64_t", "0">:$weight_gradient,
    DefaultValuedParameter<"int64_t", "0">:$recompute,
    DefaultValuedParameter<"int64_t", "0">:$update,
    DefaultValuedParameter<"bool", "false">:$has_units);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The two halves of a split backward, given or derived.
    int64_t inputGradientTime() const;
    int64_t weightGradientTime() const;
    /// Given, or the forward's.
    int64_t recomputeTime() const;
  }];
}

def Chimera_Bytes : AttrDef<Chimera_Dialect, "Bytes"> {
  let mnemonic = "bytes";
  let summary = "sizes of a stage's values";
  let description = [{
    `weights` and `optimizer` of one replica; the others of one micro-batch:
    `stash`, what a forward keeps for the backward, `boundary`, the activation
    that the stage sends on, and `weight_stash`, what the input-gradient half of
    a backward keeps for the other half (layers' inputs and their outputs'
    gradients, so that neither stash bounds the other; as much as the `stash`
    unless given, or 0). Of the weights, the last `copy`, 0 unless given, are a
    copy of the parameters before them, of another type, that the stage computes
    with: it has no gradient.

    An optimizer may keep no state.

    Invalid where `copy` is not less than `weights`, where `copy`, `optimizer` or
    `weight_stash` is negative, and where another is not positive.

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
    /// Of one replica.
    int64_t getGradient() const { return getWeights() - getCopy(); }
    /// Given, or the stash's.
    int64_t weightStashBytes() const {
      return getWeightStash() > 0 ? getWeightStash() : getStash();
    }
  }];
}

def Chimera_Link : AttrDef<Chimera_Dialect, "Link"> {
  let mnemonic = "link";
  let summary = "time of a message between two workers, or two devices";
  let description = [{
    Each time has a part for every 2^20 bytes, rounded up for a message; 0 unless
    given. `send` is for how long a message occupies the worker that makes it,
    behind its action; `latency` what it then takes on its way, while both workers
    run other things; `receive` for how long it occupies the other before the
    action that waits for it, however long it has been there.

    `bandwidth`, `send_bandwidth` and `receive_bandwidth` say in bytes a second
    what `per_mib`, `send_per_mib` and `receive_per_mib` say in time.

    Times with units, as of a bandwidth, are kept in nanoseconds; times without
    count the pipeline's `time_unit`, of a machine nanoseconds. All have units or
    none does.

    Invalid where one is negative.

    Example: `<latency = 100, receive = 20, receive_per_mib = 70>`,
    `<latency = 10 us, bandwidth = "9 GB/s", receive = 2 us>`
  }];
  let parameters = (ins
    DefaultValuedParameter<"int64_t", "0">:$latency,
    DefaultValuedParameter<"int64_t", "0">:$per_mib,
    DefaultValuedParameter<"int64_t", "0">:$send,
    DefaultValuedParameter<"int64_t", "0">:$send_per_mib,
    DefaultValuedParameter<"int64_t", "0">:$receive,
    DefaultValuedParameter<"int64_t", "0">:$receive_per_mib,
    DefaultValuedParameter<"bool", "false">:$has_units);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Chimera_Layer : AttrDef<Chimera_Dialect, "Layer"> {
  let mnemonic = "layer";
  let summary = "layers of a bare model, all alike";
  let description = [{
    `count` layers, one after another, 1 unless given. Each has so many
    `parameters`. For one sample, a `forward` takes so many operations, a
    `backward` twice as many unless given, half of them for the gradient of the
    input and half for that of the weights. The forward keeps `stash` bytes for
    the backward; the input gradient of a split backward keeps `weight_stash`, as
    many as the stash unless given, for the weight gradient; the next layer gets
    `boundary` bytes, which the last layer of a model need not say.

    Invalid where `count`, `parameters`, `forward` or `stash` is not positive, and
    where another is negative.

    Example: `<count = 48, forward = 3.4 GFLOP, parameters = 12596224, stash = 16
    MiB, boundary = 512 KiB>`
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
    I32EnumAttrCase<"SGD", 1, "sgd">]> {
  let cppNamespace = "::chimera";
}

def Chimera_DataType : I32EnumAttr<"DataType", "type of values", [
    I32EnumAttrCase<"F32", 0, "f32">,
    I32EnumAttrCase<"F64", 1, "f64">,
    I32EnumAttrCase<"BF16", 2, "bf16">]> {
  let cppNamespace = "::chimera";
}

#endif // CHIMERA_DIALECT_ATTRIBUTES_TD
