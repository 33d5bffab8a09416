//===- Buffers.h - The buffer of a value ------------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_PASSES_ALLOCATE_BUFFERS_H
#define CHIMERA_PASSES_ALLOCATE_BUFFERS_H

#include "dialect/Chimera.h"

namespace chimera {

/// Calls `visit` for each instruction of a worker's section, in the order of
/// the block. Buffer ops and the terminator are not instructions. A group is
/// visited before its posts.
void forEachInstruction(mlir::Block &section,
                        llvm::function_ref<void(mlir::Operation *)> visit);

/// For each value that the section yields, the buffer in which the next section
/// expects the value. After an epilogue, this is the prologue of the next run.
/// After a step without an epilogue, it is the next step. None before
/// allocation.
std::optional<llvm::ArrayRef<int32_t>>
buffersInNextSection(WorkerOp worker, mlir::Block &section);

/// Pairs (from, to) of buffers.
using BufferRenames = llvm::SmallVector<std::pair<int32_t, int32_t>>;

/// The buffers to rename at the end of an allocated section, so that each value
/// is in the buffer where the next section expects it. Buffer `from` gets the
/// name `to`. The pairs form a permutation: buffers without a value get the
/// names that remain. None if two values share a buffer, if a value has no
/// buffer, or if there is no permutation in which the types match.
std::optional<BufferRenames> buffersToRename(WorkerOp worker,
                                             mlir::Block &section);

/// The operand that the op updates in place to make `result`, so that operand
/// and result have one buffer. Null if there is none.
mlir::OpOperand *updatedOperand(mlir::OpResult result);

/// The buffer of a value of an allocated worker. For a receive or an all-reduce
/// in flight, the buffer of the value that will arrive. None for a posted send,
/// and before allocation.
std::optional<int32_t> bufferOf(WorkerOp worker, mlir::Value value);

} // namespace chimera

#endif // CHIMERA_PASSES_ALLOCATE_BUFFERS_H
