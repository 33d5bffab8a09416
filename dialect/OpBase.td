//===- OpBase.td - Base classes of all ops -----------------*- tablegen -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_DIALECT_OPBASE_TD
#define CHIMERA_DIALECT_OPBASE_TD

include "dialect/Attributes.td"
include "dialect/Interfaces.td"
include "dialect/Types.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class Chimera_Op<string name, list<Trait> traits = []>
    : Op<Chimera_Dialect, name, traits>;

/// A whole number from 1 to `most`. Errors print the summary.
class Chimera_From1To<Attr number, int most>
    : ConfinedAttr<number, [IntPositive, IntMaxValue<most>]> {
  let summary = "a whole number from 1 to " # most;
}
class Chimera_From0<Attr number> : ConfinedAttr<number, [IntNonNegative]> {
  let summary = "a whole number of at least 0";
}

/// A count from 1 up to the largest that fits into the program file.
defvar Chimera_Positive = Chimera_From1To<I64Attr, 2147483647>;
// A number of bytes, or a rate. The limit keeps later sums below 2^63.
defvar Chimera_Amount = Chimera_From1To<I64Attr, 1152921504606846976>;
/// A number of training steps.
defvar Chimera_Steps = Chimera_From1To<I64Attr, 1099511627776>;
def Chimera_StepsOrNone
    : ConfinedAttr<I64Attr, [IntNonNegative, IntMaxValue<1099511627776>]> {
  let summary = "a whole number from 0 to 1099511627776";
}
defvar Chimera_Index = Chimera_From0<I32Attr>;
defvar Chimera_Size = Chimera_From0<I64Attr>;

/// An optional number. Its getter returns `absent` if there is no attribute.
/// The getter of a DefaultValuedOptionalAttr would create an attribute instead.
class Chimera_NumberWithDefault<string absent, Attr number>
    : OptionalAttr<number> {
  let returnType = number.returnType;
  let convertFromStorage =
      "$_self ? " # number.convertFromStorage # " : " # absent;
}

/// The micro-batches that an action or a message covers: `count` consecutive
/// micro-batches from `micro_batch` on, or part `part` of the `parts` equal
/// parts of `micro_batch`. Most ops cover one whole micro-batch and have none
/// of these attributes.
defvar Chimera_Count = Chimera_NumberWithDefault<"1",
    Chimera_From1To<I32Attr, 65535>>;
defvar Chimera_Part = Chimera_NumberWithDefault<"0", Chimera_Index>;
defvar Chimera_Parts = Chimera_NumberWithDefault<"1",
    Chimera_From1To<I32Attr, 255>>;

/// For ops that sum contributions of `stage`, of `stage` and `tied`, or of all
/// stages up to `stage`. Requires that the op has a function summedType().
defvar Chimera_StageOfContribution = [{
  /// True if the op sums squared norms.
  bool sumsNorms() { return ::mlir::isa<SquaredNormType>(summedType()); }
  /// The stage that makes contribution `i` of one copy of the pipeline. If
  /// there is a tied stage, the contributions of the two stages alternate.
  /// Squared norms come from the stages 0 to `stage` of each pipeline in turn.
  uint32_t getStageOf(size_t i) {
    if (sumsNorms())
      return static_cast<uint32_t>(i % (getStage() + size_t(1)));
    return getTied() && i % 2 == 1 ? *getTied() : getStage();
  }
}];

/// An op that a worker runs. It declares nothing about its effects, so no pass
/// merges, drops or reorders it.
class Chimera_PlacedOp<string name, list<Trait> traits = []>
    : Chimera_Op<name, traits # [Chimera_PlacedInterface]> {
  dag placement = (ins OptionalAttr<Chimera_Index>:$worker,
                       OptionalAttr<DenseI32ArrayAttr>:$buffers);
  string placed = "(`on` $worker^)? (`buffers` $buffers^)? attr-dict ";
}

/// A placed op that belongs to one stage of one pipeline.
class Chimera_ReplicaOp<string name, list<Trait> traits = []>
    : Chimera_PlacedOp<name, traits> {
  dag replica = !con((ins Chimera_Index:$pipeline, Chimera_Index:$stage),
                     placement);
  string replicaHead = "`pipeline` $pipeline `stage` $stage ";
}

/// An action. `extent` has the attributes for its count or its part, and
/// `spelling` is their syntax.
class Chimera_ActionOp<string name, dag extent, string spelling,
                       list<Trait> traits = []>
    : Chimera_PlacedOp<name, traits # [Chimera_ActionInterface]> {
  dag action = !con((ins Chimera_Index:$pipeline, Chimera_Index:$stage,
                         Chimera_Index:$micro_batch),
                    extent, (ins OptionalAttr<Chimera_Size>:$slot), placement);
  string actionHead = "`pipeline` $pipeline `stage` $stage `micro_batch` "
                      "$micro_batch " # spelling # " (`slot` $slot^)? " #
                      placed;
  string types = " `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

/// An action on one micro-batch or a part of it.
class Chimera_MicroBatchActionOp<string name>
    : Chimera_ActionOp<name,
                       (ins Chimera_Part:$part, Chimera_Parts:$parts),
                       "(`part` custom<Part>($part) `of` $parts^)?">;

#endif // CHIMERA_DIALECT_OPBASE_TD
