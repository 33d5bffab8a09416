//===- EmitStream.h - Instruction stream of one worker ----------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_EMITSTREAM_H
#define CHIMERA_COMPILER_EMITSTREAM_H

#include "passes/describe/Bridge.h"
#include "runtime/program/Program.h"

#include <memory>
#include <utility>

namespace chimera {

/// The kind of a value of `type`. For a value that arrives, the kind of the
/// value that `chimera.wait` will yield.
program::ValueKind kindOf(mlir::Type type);

/// The location of an instruction that has no source location.
inline constexpr uint32_t kNoLocation = UINT32_MAX;

/// The instruction stream of one worker, emitted independently of the others.
/// Its source locations are numbers of its own, and its all-reduces have no
/// communicators yet; emitProgram adds the numbers of the program.
struct Stream {
  std::unique_ptr<program::WorkerT> worker;
  /// The source locations. An instruction's location is an index into this
  /// list, or kNoLocation.
  llvm::SmallVector<mlir::FileLineColLoc> locations;
  /// The instructions that start all-reduces, with the op of each.
  llvm::SmallVector<std::pair<uint32_t, AllReduceStartOp>> starts;
};

/// Emits the stream of `worker`. Several workers may be emitted concurrently.
/// `microBatches` is the number of micro-batches of a step. Fails, with a
/// diagnostic, if the worker is not allocated, or if a number in it does not
/// fit into the file.
mlir::FailureOr<Stream> emitStream(WorkerOp worker, const Layout &layout,
                                   uint32_t microBatches);

} // namespace chimera

#endif // CHIMERA_COMPILER_EMITSTREAM_H
