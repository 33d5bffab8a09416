//===- WorkerOps.td - One stream per worker ----------------*- tablegen -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_DIALECT_WORKEROPS_TD
#define CHIMERA_DIALECT_WORKEROPS_TD

include "dialect/OpBase.td"
include "mlir/IR/RegionKindInterface.td"

def Chimera_WorkerOp : Chimera_Op<"worker", [
    HasParent<"PipelineOp">, IsolatedFromAbove, SingleBlock]> {
  let summary = "what one worker does in a step";
  let description = [{
    The worker's part of the step, isolated: only channels and all-reduces
    connect workers. `holds` lists the (pipeline, stage) replicas that it keeps,
    pair by pair; the block's arguments are their weights and optimizer states.

    `window`, of which `place-messages` makes use and which then goes, is how
    many receives of a channel the worker may have outstanding; 1 unless given.

    After `allocate` the block begins with the worker's buffers, the op states
    `arguments`, the buffer of each block argument, and what the worker needs:
    the arena of all buffers, the most bytes of stashes at a time, the peak of
    live bytes and the instruction (counted from 0) that reaches it. A peak that
    is stated is verified with the program, one that is left out is computed for
    it.

    Where steps overlap the worker has a prologue and an epilogue around its
    step, as the pipeline had. Then the states are the prologue's arguments;
    `handed_on` are the buffers of what the step and the epilogue take. Buffers
    are declared in the first region.

    Invalid where a section is not what it is in a pipeline, where the arguments
    are not those of each replica, where `arguments` or `handed_on` do not name a
    buffer for each, and where a peak has no instruction.

    Example:
    ```mlir
    chimera.worker 1 holds [0, 1] {
    ^bb0(%w: !chimera.weights<64>, %o: !chimera.optimizer_state<128>):
      chimera.yield %w, %o : !chimera.weights<64>, !chimera.optimizer_state<128>
    }
    ```
  }];
  let arguments = (ins
    Chimera_Index:$index,
    DenseI32ArrayAttr:$holds,
    OptionalAttr<DenseI32ArrayAttr>:$arguments,
    OptionalAttr<DenseI32ArrayAttr>:$handed_on,
    OptionalAttr<Chimera_Positive>:$receive_window,
    OptionalAttr<Chimera_Size>:$arena_bytes,
    OptionalAttr<Chimera_Size>:$stash_bytes,
    OptionalAttr<Chimera_Size>:$peak_bytes,
    OptionalAttr<Chimera_Index>:$peak_instruction);
  let regions = (region MaxSizedRegion<1>:$prologue, SizedRegion<1>:$body,
                        MaxSizedRegion<1>:$epilogue);
  let assemblyFormat = [{
    $index `holds` $holds (`window` $receive_window^)?
    (`arguments` $arguments^)? (`handed_on` $handed_on^)?
    (`arena` $arena_bytes^)? (`stashes` $stash_bytes^)?
    (`peak` $peak_bytes^ `at` $peak_instruction)?
    attr-dict-with-keyword (`prologue` $prologue^ `step`)? $body
    (`epilogue` $epilogue^)?
  }];
  let extraClassDeclaration = [{
    /// Its step alone, or its prologue, step and epilogue.
    ::llvm::SmallVector<::mlir::Block *, 3> getSections();
    /// What `memory_cap` holds: the arena, and the most bytes of stashes at a
    /// time. None before it is allocated.
    std::optional<uint64_t> allocatedBytes();
  }];
  let hasVerifier = 1;
}

def Chimera_BufferOp : Chimera_Op<"buffer", [HasParent<"WorkerOp">]> {
  let summary = "a place in a worker's memory";
  let description = [{
    Buffer `index` holds values of one type. Bytes begin at `offset` of the
    worker's arena; a stash of either type is opaque and has no offset.

    Invalid where a stash has an offset or another value has none, where the
    type has no size, and where an instruction stands before it.

    Example:
    ```mlir
    chimera.buffer 0 : !chimera.weights<64> at 0
    chimera.buffer 7 : !chimera.stash<64>
    ```
  }];
  let arguments = (ins
    Chimera_Index:$index,
    TypeAttr:$type,
    OptionalAttr<Chimera_Size>:$offset);
  let assemblyFormat = "$index `:` $type (`at` $offset^)? attr-dict";
  let hasVerifier = 1;
}

#endif // CHIMERA_DIALECT_WORKEROPS_TD
