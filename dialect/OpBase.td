//===- OpBase.td - What all ops share ----------------------*- tablegen -*-===//
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

/// Numbers of a range, which errors name.
class Chimera_From1To<Attr number, int most>
    : ConfinedAttr<number, [IntPositive, IntMaxValue<most>]> {
  let summary = "a whole number from 1 to " # most;
}
class Chimera_From0<Attr number> : ConfinedAttr<number, [IntNonNegative]> {
  let summary = "a whole number from 0 on";
}

/// Counts that fit the program file.
defvar Chimera_Positive = Chimera_From1To<I64Attr, 2147483647>;
// Of bytes or a rate: what is added up later stays below 2^63.
defvar Chimera_Amount = Chimera_From1To<I64Attr, 1152921504606846976>;
defvar Chimera_Index = Chimera_From0<I32Attr>;
defvar Chimera_Size = Chimera_From0<I64Attr>;

/// A number that is `absent` where the attribute is. Unlike the getter of a
/// DefaultValuedOptionalAttr, this one makes no attribute.
class Chimera_NumberOr<string absent, Attr number> : OptionalAttr<number> {
  let returnType = number.returnType;
  let convertFromStorage =
      "$_self ? " # number.convertFromStorage # " : " # absent;
}

/// What an action or a message covers besides its micro-batch: `count`
/// consecutive ones from it on, or part `part` of `parts` equal parts of it.
/// Most ops cover one whole micro-batch and have no attribute for it.
defvar Chimera_Count = Chimera_NumberOr<"1",
    Chimera_From1To<I32Attr, 65535>>;
defvar Chimera_Part = Chimera_NumberOr<"0", Chimera_Index>;
defvar Chimera_Parts = Chimera_NumberOr<"1",
    Chimera_From1To<I32Attr, 255>>;

/// Of ops that sum gradients of `stage` and maybe of `tied`.
defvar Chimera_StageOfContribution = [{
  /// The stage that makes contribution `i` of a copy.
  uint32_t getStageOf(size_t i) {
    return getTied() && i % 2 == 1 ? *getTied() : getStage();
  }
}];

/// An op that a worker runs. It has effects (none are declared), so that no
/// pass merges, drops or reorders it.
class Chimera_PlacedOp<string name, list<Trait> traits = []>
    : Chimera_Op<name, traits # [Chimera_PlacedInterface]> {
  dag placement = (ins OptionalAttr<Chimera_Index>:$worker,
                       OptionalAttr<DenseI32ArrayAttr>:$buffers);
  string placed = "(`on` $worker^)? (`buffers` $buffers^)? attr-dict ";
}

/// A placed op that concerns a pipeline's stage.
class Chimera_ReplicaOp<string name, list<Trait> traits = []>
    : Chimera_PlacedOp<name, traits> {
  dag replica = !con((ins Chimera_Index:$pipeline, Chimera_Index:$stage),
                     placement);
  string replicaHead = "`pipeline` $pipeline `stage` $stage ";
}

/// An action. `extent` is what it may cover besides its micro-batch.
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
class Chimera_PieceOp<string name>
    : Chimera_ActionOp<name,
                       (ins Chimera_Part:$part, Chimera_Parts:$parts),
                       "(`part` custom<Part>($part) `of` $parts^)?">;

#endif // CHIMERA_DIALECT_OPBASE_TD
