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

/// Counts that fit the program file.
defvar Chimera_Positive =
    ConfinedAttr<I64Attr, [IntPositive, IntMaxValue<2147483647>]>;
defvar Chimera_Index = ConfinedAttr<I32Attr, [IntNonNegative]>;
defvar Chimera_Size = ConfinedAttr<I64Attr, [IntNonNegative]>;

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

class Chimera_ActionOp<string name, list<Trait> traits = []>
    : Chimera_PlacedOp<name, traits # [
        DeclareOpInterfaceMethods<Chimera_ActionInterface,
                                  ["getAccumulator"]>]> {
  dag action = !con((ins Chimera_Index:$pipeline, Chimera_Index:$stage,
                         Chimera_Index:$micro_batch,
                         OptionalAttr<Chimera_Size>:$slot), placement);
  string actionHead = "`pipeline` $pipeline `stage` $stage `micro_batch` "
                      "$micro_batch (`slot` $slot^)? " # placed;
  string types = " `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

#endif // CHIMERA_DIALECT_OPBASE_TD
