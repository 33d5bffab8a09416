//===- Types.td - Types of the chimera dialect -------------*- tablegen -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_DIALECT_TYPES_TD
#define CHIMERA_DIALECT_TYPES_TD

include "dialect/Dialect.td"
include "mlir/IR/AttrTypeBase.td"

class Chimera_Type<string name, string typeMnemonic>
    : TypeDef<Chimera_Dialect, name> {
  let mnemonic = typeMnemonic;
}

def Chimera_SizedTypeInterface : TypeInterface<"SizedType"> {
  let cppNamespace = "::chimera";
  let description = "A type of values that occupy bytes on a worker.";
  let methods = [
    InterfaceMethod<"The bytes that a value of this type occupies.",
                    "int64_t", "getBytes">
  ];
}

/// The type of values with a role and a size. The name of the type is the role.
/// So if both ends of a message have equal types, they agree on its role and
/// size.
class Chimera_SizedType<string name, string typeMnemonic, string what>
    : Chimera_Type<name, typeMnemonic> {
  let traits = [Chimera_SizedTypeInterface];
  let summary = what;
  let description = "`!chimera." # typeMnemonic # "<bytes>`: " # what # ".";
  let parameters = (ins "int64_t":$bytes);
  let assemblyFormat = "`<` $bytes `>`";
  let genVerifyDecl = 1;
}

def Chimera_Tokens
    : Chimera_SizedType<"Tokens", "tokens", "input tokens of micro-batches">;
def Chimera_Labels
    : Chimera_SizedType<"Labels", "labels", "target tokens of micro-batches">;
def Chimera_Activation
    : Chimera_SizedType<"Activation", "activation",
                        "the output of a stage, the input of the next one">;
def Chimera_Gradient
    : Chimera_SizedType<"Gradient", "gradient",
                        "the gradient of the loss with respect to an "
                        "activation">;
def Chimera_Stash
    : Chimera_SizedType<"Stash", "stash",
                        "values that a forward saves for a backward">;
def Chimera_WeightStash
    : Chimera_SizedType<"WeightStash", "weight_stash",
                        "values that an input gradient saves for its weight "
                        "gradient">;
def Chimera_Loss
    : Chimera_SizedType<"Loss", "loss", "a micro-batch's mean loss">;
def Chimera_Weights
    : Chimera_SizedType<"Weights", "weights", "the weights of a stage replica">;
def Chimera_WeightGradient
    : Chimera_SizedType<"WeightGradient", "weight_gradient",
                        "a sum of gradients of the loss with respect to "
                        "weights">;
def Chimera_SquaredNorm
    : Chimera_SizedType<"SquaredNorm", "squared_norm",
                        "the sum of the squares of a gradient's elements">;
def Chimera_OptimizerState
    : Chimera_SizedType<"OptimizerState", "optimizer_state",
                        "the state of the optimizer, which may be empty">;

def Chimera_Sending : Chimera_Type<"Sending", "sending"> {
  let summary = "a posted send that is not complete";
  let description = [{
    Until `chimera.wait`, the transfer owns the operand of the post: no op may
    change this value.
  }];
}

def Chimera_Arriving : Chimera_Type<"Arriving", "arriving"> {
  let summary = "a value on its way: a posted receive or a started all-reduce";
  let description = [{
    `!chimera.arriving<T>`: the result of a posted receive or of a started
    all-reduce. `chimera.wait` turns it into a `T`.
  }];
  let parameters = (ins "::mlir::Type":$value);
  let assemblyFormat = "`<` $value `>`";
  let genVerifyDecl = 1;
}

def Chimera_Input : AnyTypeOf<[Chimera_Tokens, Chimera_Activation],
                              "tokens or an activation">;
def Chimera_ForwardResult
    : AnyTypeOf<[Chimera_Activation, Chimera_Loss, Chimera_Stash],
                "an activation, a loss or a stash">;
def Chimera_OutputGradient : AnyTypeOf<[Chimera_Gradient, Chimera_Loss],
                                       "a gradient or a loss">;
def Chimera_Data : AnyTypeOf<[Chimera_Tokens, Chimera_Labels],
                             "tokens or labels">;
def Chimera_Sendable : AnyTypeOf<[Chimera_Activation, Chimera_Gradient],
                                 "an activation or a gradient">;
def Chimera_Reducible
    : AnyTypeOf<[Chimera_WeightGradient, Chimera_Loss, Chimera_SquaredNorm],
                "a weight gradient, a loss or a squared norm">;
def Chimera_Transfer : AnyTypeOf<[Chimera_Sending, Chimera_Arriving],
                                 "a transfer in flight">;

#endif // CHIMERA_DIALECT_TYPES_TD
