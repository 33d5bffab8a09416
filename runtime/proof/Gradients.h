//===- Gradients.h - What is in every gradient sum --------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Internal to verifyWeights, which walks the streams. Micro-batches are
// numbered through the run: micro-batch m of step k is k N + m.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_PROOF_GRADIENTS_H
#define CHIMERA_RUNTIME_PROOF_GRADIENTS_H

#include "runtime/proof/Facts.h"

namespace chimera::program::verify {

inline constexpr int64_t kNoUpdate = -1;

/// "pipeline 0 stage 1", of pipeline * stages + stage; kNone is not known.
std::string nameOfReplica(uint32_t replica, uint32_t stages);

/// What a buffer of a gradient holds.
struct GradientSum {
  uint32_t replica = kNone; ///< pipeline * stages + stage; kNone: not known
  // The lowest and the highest micro-batch, how many backwards, and, over all
  // pipelines, the update that it is for.
  int64_t first = INT64_MAX;
  int64_t last = INT64_MIN;
  uint64_t backwards = 0;
  int64_t update = kNoUpdate;
  bool isReduced = false; ///< a sum of several workers or copies
  /// Of what of the replica's parameters: on first and last stage those that
  /// are tied go apart from the rest.
  enum class Part : uint8_t { All, Rest, Tied } part = Part::All;
  // Of a bucket of a part: from which byte of it on it is, and which of how
  // many; else 0, and 0 of 1.
  uint64_t begin = 0;
  uint32_t bucket = 0, buckets = 1;

  bool isWhole() const { return part == Part::All && buckets == 1; }
  /// The same a step of `microBatches` and `updates` later.
  GradientSum later(int64_t microBatches, int64_t updates) const;
  bool operator==(const GradientSum &) const = default;
};

/// The gradient sums of one worker, followed through its stream.
class GradientSums {
public:
  /// By all-reduce, from which byte on its buckets are, where known: the same
  /// at every member. Shared by the workers of a program.
  using Begins = std::vector<uint64_t>;
  static Begins unknownBegins(const Facts &facts);

  GradientSums(const ProgramT &program, const Facts &facts, Begins &begins,
               uint32_t w, Report &report);

  /// Forgets all sums.
  void clear() { sums.assign(worker.buffers.size(), GradientSum()); }

  /// Notes what instruction `i` of a step makes of sums, and reports what must
  /// not be.
  void follow(const Instruction &instruction, uint32_t i, int64_t step);

  /// What is wrong with `buffer` as the sum that `update`, the number of an
  /// optimizer step, takes; empty if it is all gradients for it.
  std::string faultOf(const Instruction &update, uint32_t buffer,
                      int64_t number, int64_t step) const;

  const std::vector<GradientSum> &byBuffer() const { return sums; }

private:
  using Buffers = std::span<const uint32_t>;

  void add(const Instruction &instruction, GradientSum &sum);
  void reduce(const Instruction &start, Buffers in, GradientSum &sum);
  void split(const Instruction &instruction, Buffers in, Buffers out);
  void splitTied(const Instruction &instruction, GradientSum piece,
                 Buffers out);
  void join(const Instruction &instruction, Buffers in, GradientSum &result);
  void joinTied(const Instruction &instruction, Buffers in,
                GradientSum &result);
  void copy(const Instruction &instruction, const GradientSum &from,
            GradientSum &to);

  int64_t updateOfSum(const GradientSum &sum) const;
  int64_t takenBy(const GradientSum &sum) const;

  uint32_t replicaOf(const Instruction &instruction) const {
    return instruction.pipeline() * stages + instruction.stage();
  }
  bool isSumOf(const Instruction &instruction, const GradientSum &sum) const {
    return sum.replica == replicaOf(instruction);
  }
  /// Which of two pieces of the stage's gradient is tied, if it has such.
  std::optional<unsigned> tiedPieceOf(uint32_t stage) const {
    return tiedPiece(program.tied.get(), stages, stage);
  }

  std::string name(uint32_t replica) const {
    return nameOfReplica(replica, stages);
  }
  std::string describe(GradientSum::Part part, uint32_t replica) const;
  std::string describe(const GradientSum &sum) const;
  /// By what it sums, counted from the step's first micro-batch.
  std::string describeContents(const GradientSum &sum, int64_t step) const;
  void fail(const std::string &message) {
    report.add(Rule::Weights, w, i, message);
  }

  const ProgramT &program;
  const Facts &facts;
  Begins &begins;
  uint32_t w;
  Report &report;
  const WorkerT &worker;
  uint32_t stages;
  int64_t count;                 ///< micro-batches of a step
  std::vector<GradientSum> sums; ///< by buffer

  // Where the walk is.
  uint32_t i = 0;
  int64_t step = 0;
};

} // namespace chimera::program::verify

#endif // CHIMERA_RUNTIME_PROOF_GRADIENTS_H
