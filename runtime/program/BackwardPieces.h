//===- BackwardPieces.h - How micro-batches are divided ---------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A table of the division of micro-batches: for each micro-batch, the
// micro-batches that its forward covers, and the parts that its backwards
// cover. The table is made from the `forwards` and `backward_parts` of the
// pipelines (program.fbs). A *piece* is the part of a micro-batch, or the whole
// micro-batch, that one backward covers.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_PROGRAM_BACKWARDPIECES_H
#define CHIMERA_RUNTIME_PROGRAM_BACKWARDPIECES_H

#include "runtime/program/Program.h"

#include <vector>

namespace chimera::program {

/// The numbers [first, first + count).
struct Range {
  uint32_t first;
  uint32_t count;

  bool operator==(const Range &) const = default;
};

class BackwardPieces {
public:
  /// Requires pipelines that verifyProgram accepts.
  explicit BackwardPieces(const ProgramT &program);

  /// N is the number of micro-batches of a step. All functions accept
  /// micro-batches below 2N. Micro-batch N + m is micro-batch m of the next
  /// step, which is divided in the same way as m. `microBatchInStep` returns m
  /// for both.
  uint32_t microBatchInStep(uint32_t m) const {
    return m < size() ? m : m - size();
  }
  uint32_t pipelineOf(uint32_t m) const {
    return byMicroBatch[microBatchInStep(m)].pipeline;
  }
  /// The index of the micro-batch in its pipeline, from 0.
  uint32_t indexInPipeline(uint32_t m) const {
    return byMicroBatch[microBatchInStep(m)].index;
  }
  /// The micro-batches that the forward of `m` covers, as numbers below N.
  Range forwardOf(uint32_t m) const {
    return byMicroBatch[microBatchInStep(m)].forward;
  }
  /// The number of pieces of a micro-batch.
  uint32_t partsOf(uint32_t m) const {
    return byMicroBatch[microBatchInStep(m)].parts;
  }
  /// The number of a piece. Pieces are numbered by micro-batch, then part.
  uint64_t pieceNumberOf(uint32_t m, uint32_t part = 0) const {
    return byMicroBatch[microBatchInStep(m)].firstPiece + part;
  }
  uint64_t pieceCount() const { return total; }
  /// The micro-batch of a piece.
  uint32_t microBatchOf(uint64_t piece) const;

private:
  uint32_t size() const { return static_cast<uint32_t>(byMicroBatch.size()); }

  struct MicroBatchPieces {
    Range forward = {0, 1};
    uint64_t firstPiece = 0;
    uint32_t pipeline = 0;
    uint32_t index = 0; ///< in the pipeline
    uint32_t parts = 1;
  };
  std::vector<MicroBatchPieces> byMicroBatch; ///< by micro-batch
  uint64_t total = 0;
};

} // namespace chimera::program

#endif // CHIMERA_RUNTIME_PROGRAM_BACKWARDPIECES_H
