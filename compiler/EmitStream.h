//===- EmitStream.h - One worker of the IR to its stream --------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_EMITSTREAM_H
#define CHIMERA_COMPILER_EMITSTREAM_H

#include "passes/Bridge.h"
#include "runtime/program/Program.h"

#include <memory>
#include <utility>

namespace chimera {

program::ValueKind kindOf(mlir::Type type);

/// The location of what no source names.
inline constexpr uint32_t kNowhere = UINT32_MAX;

/// A worker's stream before it knows of the others: what is numbered across
/// workers has numbers of its own.
struct Stream {
  std::unique_ptr<program::WorkerT> worker;
  /// What the locations of its instructions count.
  llvm::SmallVector<mlir::FileLineColLoc> places;
  /// The instructions that start all-reduces, each without its communicator.
  llvm::SmallVector<std::pair<uint32_t, AllReduceStartOp>> starts;
};

/// Other workers may be emitted at the same time. `microBatches` are those of a
/// step. Fails, with a diagnostic, where the worker is not allocated or names
/// what the file cannot hold.
mlir::FailureOr<Stream> emitStream(WorkerOp worker, const Layout &layout,
                                   uint32_t microBatches);

} // namespace chimera

#endif // CHIMERA_COMPILER_EMITSTREAM_H
