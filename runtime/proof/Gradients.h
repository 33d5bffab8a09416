//===- Gradients.h - The contents of gradient sums --------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The proof of gradient sums: which gradients are in each buffer. Only
// verifyWeights uses this header. Micro-batches are numbered over the whole
// run: with N micro-batches per step, micro-batch m of step k has the number
// k*N+m.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_PROOF_GRADIENTS_H
#define CHIMERA_RUNTIME_PROOF_GRADIENTS_H

#include "runtime/proof/Facts.h"

namespace chimera::program::verify {

inline constexpr int64_t kNoUpdate = -1;

/// A text like "pipeline 0 stage 1" for a replica. Replicas are numbered
/// pipeline * stages + stage. kNone means that the replica is unknown.
std::string nameOfReplica(uint32_t replica, uint32_t stages);

/// The contents of a gradient buffer.
struct GradientSum {
  uint32_t replica = kNone; ///< pipeline * stages + stage; kNone: not known
  // The lowest and the highest micro-batch in the sum, and the number of
  // backwards in the sum. If the sum has been all-reduced and is complete for
  // an update, `update` is this update.
  int64_t first = INT64_MAX;
  int64_t last = INT64_MIN;
  uint64_t backwards = 0;
  int64_t update = kNoUpdate;
  bool isReduced = false; ///< whether an all-reduce made the sum
  /// The parameters that the sum covers: all parameters of the replica, or only
  /// the tied ones, or only the others. Tied parameters are summed separately.
  enum class Part : uint8_t { All, Rest, Tied } part = Part::All;
  // If `part` is split into buckets and this is one of them: the byte of the
  // part at which the bucket begins, the index of the bucket, and the number of
  // buckets. If the part is not split, it is bucket 0 of 1.
  uint64_t offset = 0;
  uint32_t bucket = 0, buckets = 1;

  bool isWhole() const { return part == Part::All && buckets == 1; }
  /// The same sum one step later. A step has `microBatches` micro-batches and
  /// `updates` updates.
  GradientSum oneStepLater(int64_t microBatches, int64_t updates) const;
  bool operator==(const GradientSum &) const = default;
};

/// The gradient sums in the buffers of one worker. `follow` updates them for
/// one instruction after another.
class GradientSums {
public:
  /// For each all-reduce, the byte at which its bucket begins, if known. It
  /// must be the same at all members, so the proofs of all workers use one
  /// list.
  using BucketOffsets = std::vector<uint64_t>;
  static BucketOffsets unknownOffsets(const Facts &facts);

  GradientSums(const ProgramT &program, const Facts &facts,
               BucketOffsets &bucketOffsets, uint32_t w, Report &report);

  /// Forgets all sums.
  void clear() { sums.assign(worker.buffers.size(), GradientSum()); }

  /// Updates the sums after instruction `i` of a step. Reports an error if the
  /// instruction uses a wrong sum.
  void follow(const Instruction &instruction, uint32_t i, int64_t step);

  /// An error text if `buffer` does not have the sum of all gradients that the
  /// optimizer step `update` needs, otherwise an empty text. `number` is the
  /// number of this update among the updates of its stage.
  std::string faultOf(const Instruction &update, uint32_t buffer,
                      int64_t number, int64_t step) const;
  /// The update of the stage of `user` for which `buffer` has all gradients.
  /// kNoUpdate if there is none.
  int64_t updateOf(const Instruction &user, uint32_t buffer) const;
  /// A text with the contents of `buffer`, for an error of step `step`.
  std::string contentsOf(uint32_t buffer, int64_t step) const {
    return describeContents(sums[buffer], step);
  }

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

  int64_t completeUpdateOf(const GradientSum &sum) const;
  int64_t updateFor(const GradientSum &sum) const;

  uint32_t replicaOf(const Instruction &instruction) const {
    return instruction.pipeline() * stages + instruction.stage();
  }
  bool isSumOf(const Instruction &instruction, const GradientSum &sum) const {
    return sum.replica == replicaOf(instruction);
  }
  /// The index of the tied piece among the two pieces of the stage's gradient.
  /// None if the stage has no tied parameters.
  std::optional<unsigned> tiedPieceOf(uint32_t stage) const {
    return indexOfTiedPiece(program.tied.get(), stages, stage);
  }

  std::string name(uint32_t replica) const {
    return nameOfReplica(replica, stages);
  }
  std::string describe(GradientSum::Part part, uint32_t replica) const;
  std::string describe(const GradientSum &sum) const;
  /// A text with the number of backwards in `sum`, and with its lowest and
  /// highest micro-batch, counted from the first micro-batch of the step.
  std::string describeContents(const GradientSum &sum, int64_t step) const;
  void addFault(const std::string &message) {
    report.add(Rule::Weights, w, i, message);
  }

  const ProgramT &program;
  const Facts &facts;
  BucketOffsets &bucketOffsets;
  uint32_t w;
  Report &report;
  const WorkerT &worker;
  uint32_t stages;
  int64_t count;                 ///< micro-batches of a step
  std::vector<GradientSum> sums; ///< by buffer

  // The current instruction, and its step.
  uint32_t i = 0;
  int64_t step = 0;
};

} // namespace chimera::program::verify

#endif // CHIMERA_RUNTIME_PROOF_GRADIENTS_H
