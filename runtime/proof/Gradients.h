//===- Gradients.h - The contents of gradient sums --------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The gradients in each gradient sum. Internal to verifyWeights, which walks
// the streams. Micro-batches are numbered over the whole run: micro-batch m of
// step k has the number k N + m.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_PROOF_GRADIENTS_H
#define CHIMERA_RUNTIME_PROOF_GRADIENTS_H

#include "runtime/proof/Facts.h"

namespace chimera::program::verify {

inline constexpr int64_t kNoUpdate = -1;

/// "pipeline 0 stage 1" for replica number pipeline * stages + stage. kNone is
/// an unknown replica.
std::string nameOfReplica(uint32_t replica, uint32_t stages);

/// The contents of a gradient buffer.
struct GradientSum {
  uint32_t replica = kNone; ///< pipeline * stages + stage; kNone: not known
  // The lowest and the highest micro-batch in the sum, the number of backwards
  // in it, and the update for which the sum over all pipelines is complete.
  int64_t first = INT64_MAX;
  int64_t last = INT64_MIN;
  uint64_t backwards = 0;
  int64_t update = kNoUpdate;
  bool isReduced = false; ///< the sum of several workers or copies
  /// The parameters of the replica that the sum is for. The first and the last
  /// stage sum their tied parameters apart from the rest.
  enum class Part : uint8_t { All, Rest, Tied } part = Part::All;
  // For a bucket: the byte of the part at which it begins, its number, and the
  // number of buckets of the part. A whole part is bucket 0 of 1.
  uint64_t offset = 0;
  uint32_t bucket = 0, buckets = 1;

  bool isWhole() const { return part == Part::All && buckets == 1; }
  /// The sum at the same place one step later, for a step with this many
  /// micro-batches and updates.
  GradientSum later(int64_t microBatches, int64_t updates) const;
  bool operator==(const GradientSum &) const = default;
};

/// The gradient sums in the buffers of one worker. `follow` updates them for
/// one instruction after another.
class GradientSums {
public:
  /// For each all-reduce, the byte at which its bucket begins, if known. All
  /// members must agree, so all workers of a program share this list.
  using BucketOffsets = std::vector<uint64_t>;
  static BucketOffsets unknownOffsets(const Facts &facts);

  GradientSums(const ProgramT &program, const Facts &facts,
               BucketOffsets &bucketOffsets, uint32_t w, Report &report);

  /// Forgets all sums.
  void clear() { sums.assign(worker.buffers.size(), GradientSum()); }

  /// Applies instruction `i` of a step to the sums, and reports what is wrong.
  void follow(const Instruction &instruction, uint32_t i, int64_t step);

  /// The reason why `buffer` does not have the sum that the optimizer step
  /// `update` needs. Empty if it has all gradients of that update, which is
  /// update number `number` of its stage.
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

  int64_t completeUpdateOf(const GradientSum &sum) const;
  int64_t updateFor(const GradientSum &sum) const;

  uint32_t replicaOf(const Instruction &instruction) const {
    return instruction.pipeline() * stages + instruction.stage();
  }
  bool isSumOf(const Instruction &instruction, const GradientSum &sum) const {
    return sum.replica == replicaOf(instruction);
  }
  /// The index of the tied piece among the two pieces of the stage's gradient;
  /// none if the stage has no tied parameters.
  std::optional<unsigned> tiedPieceOf(uint32_t stage) const {
    return indexOfTiedPiece(program.tied.get(), stages, stage);
  }

  std::string name(uint32_t replica) const {
    return nameOfReplica(replica, stages);
  }
  std::string describe(GradientSum::Part part, uint32_t replica) const;
  std::string describe(const GradientSum &sum) const;
  /// Names the micro-batches in `sum`, relative to the first one of the step.
  std::string describeContents(const GradientSum &sum, int64_t step) const;
  void fail(const std::string &message) {
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
