//===- BackwardPieces.cpp - How micro-batches are divided -----------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/program/BackwardPieces.h"

#include <algorithm>

namespace chimera::program {

BackwardPieces::BackwardPieces(const ProgramT &program)
    : byMicroBatch(program.micro_batches) {
  for (uint32_t p = 0; p < program.pipelines.size(); ++p) {
    const PipelineT &pipeline = *program.pipelines[p];
    size_t forwards = pipeline.forwards.empty() ? pipeline.micro_batches.size()
                                                : pipeline.forwards.size();
    size_t next = 0;
    for (size_t f = 0; f < forwards; ++f) {
      uint32_t count = pipeline.forwards.empty() ? 1 : pipeline.forwards[f];
      Range range{pipeline.micro_batches[next], count};
      for (uint32_t k = 0; k < count; ++k, ++next)
        byMicroBatch[pipeline.micro_batches[next]] = {
            .forward = range,
            .pipeline = p,
            .index = static_cast<uint32_t>(next),
            .parts = pipeline.backward_parts};
    }
  }
  for (MicroBatchPieces &pieces : byMicroBatch) {
    pieces.firstPiece = total;
    total += pieces.parts;
  }
}

uint32_t BackwardPieces::microBatchOf(uint64_t piece) const {
  auto after = std::ranges::upper_bound(byMicroBatch, piece, {},
                                        &MicroBatchPieces::firstPiece);
  return static_cast<uint32_t>(after - byMicroBatch.begin()) - 1;
}

} // namespace chimera::program
