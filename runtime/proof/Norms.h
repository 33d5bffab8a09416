//===- Norms.h - The contents of squared norms ------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The proof of clipping: which squared norm is in each buffer. Only
// verifyWeights uses this header. A program clips only if its steps end with a
// flush.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_PROOF_NORMS_H
#define CHIMERA_RUNTIME_PROOF_NORMS_H

#include "runtime/proof/Gradients.h"

namespace chimera::program::verify {

/// The contents of a buffer of a squared norm.
struct SquaredNorm {
  uint32_t replica = kNone;   ///< pipeline * stages + stage; kNone: not known
  int64_t update = kNoUpdate; ///< the update whose gradients it has
  bool isReduced = false;     ///< whether it is the sum of all replicas
};

/// The squared norms in the buffers of one worker. `follow` updates them for
/// one instruction after another.
class SquaredNorms {
public:
  /// `sums` are the gradient sums of the same worker.
  SquaredNorms(const ProgramT &program, const Facts &facts,
               const GradientSums &sums, uint32_t w, Report &report);

  /// Forgets all norms.
  void clear() { norms.assign(worker.buffers.size(), SquaredNorm()); }

  /// Updates the norms after instruction `i` of a step. Reports an error if the
  /// norm of an incomplete gradient is computed, or if an all-reduce has the
  /// norm of a wrong replica.
  void follow(const Instruction &instruction, uint32_t i, int64_t step);

  /// An error text if `buffer` does not have the squared norm of the gradients
  /// of all stages for update `number`, otherwise an empty text.
  std::string faultOf(uint32_t buffer, int64_t number) const;

private:
  using Buffers = std::span<const uint32_t>;

  void compute(const Instruction &instruction, uint32_t gradient,
               SquaredNorm &norm, int64_t step);
  void reduce(const Instruction &start, Buffers in, SquaredNorm &norm);
  std::string describe(const SquaredNorm &norm) const;
  void addFault(const std::string &message) {
    report.add(Rule::Weights, w, i, message);
  }

  const ProgramT &program;
  const Facts &facts;
  const GradientSums &sums;
  uint32_t w;
  Report &report;
  const WorkerT &worker;
  uint32_t stages;
  std::vector<SquaredNorm> norms; ///< by buffer
  uint32_t i = 0;                 ///< the current instruction
};

} // namespace chimera::program::verify

#endif // CHIMERA_RUNTIME_PROOF_NORMS_H
