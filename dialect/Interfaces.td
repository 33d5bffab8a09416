//===- Interfaces.td - Op interfaces of the dialect --------*- tablegen -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_DIALECT_INTERFACES_TD
#define CHIMERA_DIALECT_INTERFACES_TD

include "mlir/IR/OpBase.td"

def Chimera_PlacedInterface : OpInterface<"PlacedOp"> {
  let cppNamespace = "::chimera";
  let description = [{
    An op that one worker runs. From `schedule` to `project`, `on` names the
    worker. Later, the op is in the `chimera.worker` op of its worker.
  }];
  let methods = [
    InterfaceMethod<"The worker that the op names, if any.",
                    "::std::optional<uint32_t>", "getWorker">,
    InterfaceMethod<"Names the worker, or none.", "void", "setWorker",
                    (ins "::std::optional<uint32_t>":$worker)>,
    InterfaceMethod<"The buffer of each result, empty before `allocate`.",
                    "::std::optional<::llvm::ArrayRef<int32_t>>",
                    "getBuffers">,
    InterfaceMethod<"Sets the buffer of each result.", "void", "setBuffers",
                    (ins "::std::optional<::llvm::ArrayRef<int32_t>>":$buffers)>
  ];
}

def Chimera_ActionInterface : OpInterface<"ActionOp",
                                          [Chimera_PlacedInterface]> {
  let cppNamespace = "::chimera";
  let description = [{
    A computation of one stage of one pipeline. A schedule is an order of
    actions. An action covers the micro-batches [`getMicroBatch`,
    `getMicroBatch` + `getCount`). If `getParts` is more than 1, it covers part
    `getPart` of that many equal parts of one micro-batch.
  }];
  let methods = [
    InterfaceMethod<"The index of the pipeline.", "uint32_t", "getPipeline">,
    InterfaceMethod<"The index of the stage.", "uint32_t", "getStage">,
    InterfaceMethod<"The first micro-batch.", "uint32_t", "getMicroBatch">,
    InterfaceMethod<"The number of micro-batches.", "uint32_t", "getCount",
                    (ins), "", "return 1;">,
    InterfaceMethod<"The index of the part.", "uint32_t", "getPart", (ins), "",
                    "return 0;">,
    InterfaceMethod<"The number of parts of the micro-batch.", "uint32_t",
                    "getParts", (ins), "", "return 1;">,
    InterfaceMethod<"Whether the worker runs the action as one with its next "
                    "action.", "bool", "getJoined", (ins), "",
                    "return false;">,
    InterfaceMethod<"The slot in the table of the schedule, if there is one.",
                    "::std::optional<uint64_t>", "getSlot">,
    InterfaceMethod<"Sets or removes the slot.", "void", "setSlot",
                    (ins "::std::optional<uint64_t>":$slot)>,
    InterfaceMethod<"The first result: the sum of weight gradients with the "
                    "action's own. Null if the action makes none.",
                    "::mlir::Value", "getNewSum", (ins), "", "return {};">,
    InterfaceMethod<"The sum that the action's weight gradient is added to: "
                    "the last operand. Empty if the action begins a sum.",
                    "::mlir::MutableOperandRange", "getSumMutable", (ins), "",
                    "return ::mlir::MutableOperandRange($_op, 0, 0);">
  ];
  let extraSharedClassDeclaration = [{
    /// The operand that `getSumMutable` returns, or null if there is none.
    ::mlir::OpOperand *getSumOperand() {
      ::mlir::MutableOperandRange sum = $_op.getSumMutable();
      return sum.empty() ? nullptr : &sum[0];
    }
  }];
}

def Chimera_SectionInterface : OpInterface<"SectionOp"> {
  let cppNamespace = "::chimera";
  let description = [{
    A part of a run: `chimera.step`, the body of the loop over steps. If steps
    overlap, `chimera.prologue` before it and `chimera.epilogue` after it are
    sections too.
  }];
  let methods = [
    InterfaceMethod<"Its region, of one block.", "::mlir::Region &", "getBody">
  ];
}

#endif // CHIMERA_DIALECT_INTERFACES_TD
