//===- Buffers.h - Which buffer holds a value -------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_PASSES_BUFFERS_H
#define CHIMERA_PASSES_BUFFERS_H

#include "dialect/Chimera.h"

namespace chimera {

/// Calls `visit` for each op of a worker's section that is an instruction, in
/// the order of the stream: buffers and the terminator are none, a group comes
/// before its posts.
void forEachInstruction(mlir::Block &section,
                        llvm::function_ref<void(mlir::Operation *)> visit);

/// The buffers in which the next section, or after the last one the next run,
/// finds what this one yields. None before allocation.
std::optional<llvm::ArrayRef<int32_t>> yieldedTo(WorkerOp worker,
                                                 mlir::Block &section);

/// Pairs (from, to) of buffers.
using Renames = llvm::SmallVector<std::pair<int32_t, int32_t>>;

/// Which buffer's place each buffer takes at the end of an allocated section,
/// where values do not lie where the next section finds them: a permutation.
/// Buffers that hold nothing fill it up. None where values have no buffers of
/// their own, or not of the types of those where they are looked for.
std::optional<Renames> renames(WorkerOp worker, mlir::Block &section);

/// The operand whose buffer `result` takes over because the op updates it in
/// place, null if it does not.
mlir::OpOperand *updatedOperand(mlir::OpResult result);

/// The buffer of a value of an allocated worker, or that of what a transfer
/// carries. None where it has none: a posted send, or before allocation.
std::optional<int32_t> bufferOf(WorkerOp worker, mlir::Value value);

} // namespace chimera

#endif // CHIMERA_PASSES_BUFFERS_H
