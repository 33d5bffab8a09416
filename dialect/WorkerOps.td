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
  let summary = "the instruction stream of one worker";
  let description = [{
    One worker's part of the step. The region is isolated: channels and
    all-reduces are the only connections between workers. `holds` lists the
    replicas of the worker as pairs (pipeline, stage). The arguments of the
    block are the weights and the optimizer state of each replica.

    `window` is the largest number of receives that the worker may have posted,
    but not completed, on one channel; 1 by default. `chimera-place-messages`
    uses it and removes it.

    After `allocate`, the block begins with the worker's buffers. The op then
    states `arguments`, the buffer of each block argument, and the memory that
    the worker needs:

    - `arena`: the bytes of the arena of all buffers;
    - `stashes`: the largest number of bytes of stashes that are live at the
      same time;
    - `peak`: the largest number of bytes that are live at the same time, with
      the instruction (counted from 0) at which they are. If the op states a
      peak, the verification of the program checks it. Otherwise the peak is
      computed from the program.

    If steps overlap, the worker has a prologue and an epilogue around its step,
    as the pipeline had. The block arguments of the prologue are then the
    weights and optimizer states. `loop_carried` lists the buffers of the block
    arguments of the step and the epilogue. The buffers are declared in the
    first region.

    Invalid if a section is not valid (see `chimera.step`), if the arguments are
    not those of the replicas, if `arguments` or `loop_carried` does not name one
    buffer for each argument, and if a peak has no instruction.

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
    OptionalAttr<DenseI32ArrayAttr>:$loop_carried,
    OptionalAttr<Chimera_Positive>:$receive_window,
    OptionalAttr<Chimera_Size>:$arena_bytes,
    OptionalAttr<Chimera_Size>:$stash_bytes,
    OptionalAttr<Chimera_Size>:$peak_bytes,
    OptionalAttr<Chimera_Index>:$peak_instruction);
  let regions = (region MaxSizedRegion<1>:$prologue, SizedRegion<1>:$body,
                        MaxSizedRegion<1>:$epilogue);
  let assemblyFormat = [{
    $index `holds` $holds (`window` $receive_window^)?
    (`arguments` $arguments^)? (`loop_carried` $loop_carried^)?
    (`arena` $arena_bytes^)? (`stashes` $stash_bytes^)?
    (`peak` $peak_bytes^ `at` $peak_instruction)?
    attr-dict-with-keyword (`prologue` $prologue^ `step`)? $body
    (`epilogue` $epilogue^)?
  }];
  let extraClassDeclaration = [{
    /// The block of the step if there is no prologue. Otherwise the blocks of
    /// the prologue, the step and the epilogue.
    ::llvm::SmallVector<::mlir::Block *, 3> getSections();
    /// The bytes that `memory_cap` limits: the arena plus the largest size of
    /// the live stashes. None before the worker is allocated.
    std::optional<uint64_t> allocatedBytes();
  }];
  let hasVerifier = 1;
}

def Chimera_BufferOp : Chimera_Op<"buffer", [HasParent<"WorkerOp">]> {
  let summary = "a place in a worker's memory";
  let description = [{
    Buffer `index` holds values of one type. It begins at byte `offset` of the
    worker's arena. A stash, or a weight stash, is opaque and not in the arena:
    it has no offset.

    Invalid if a stash has an offset or another value has none, if the type has
    no size, and if an instruction precedes the buffer.

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
