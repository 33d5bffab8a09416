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

/// Calls `visit` for each op of the worker that is an instruction, in the order
/// of the stream: buffers and the terminator are none, a group comes before its
/// posts.
void forEachInstruction(WorkerOp worker,
                        llvm::function_ref<void(mlir::Operation *)> visit);

/// The operand whose buffer `result` takes over because the op updates it in
/// place, null if it does not.
mlir::OpOperand *updatedOperand(mlir::OpResult result);

/// The buffer of a value of an allocated worker, or that of what a transfer
/// carries. None where it has none: a posted send, or before allocation.
std::optional<int32_t> bufferOf(WorkerOp worker, mlir::Value value);

} // namespace chimera

#endif // CHIMERA_PASSES_BUFFERS_H
