//===- Gradients.cpp - The contents of gradient sums ----------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/proof/Gradients.h"

#include <algorithm>

namespace chimera::program::verify {

using Part = GradientSum::Part;

static constexpr uint64_t kUnknownOffset = UINT64_MAX;

std::string nameOfReplica(uint32_t replica, uint32_t stages) {
  return replica == kNone ? "another worker"
                          : "pipeline " + text(replica / stages) + " stage " +
                                text(replica % stages);
}

GradientSum GradientSum::oneStepLater(int64_t microBatches,
                                      int64_t updates) const {
  GradientSum sum = *this;
  if (first <= last) {
    sum.first += microBatches;
    sum.last += microBatches;
  }
  if (update != kNoUpdate)
    sum.update += updates;
  return sum;
}

GradientSums::BucketOffsets GradientSums::unknownOffsets(const Facts &facts) {
  return BucketOffsets(facts.communicatorOf.size(), kUnknownOffset);
}

GradientSums::GradientSums(const ProgramT &program, const Facts &facts,
                           BucketOffsets &bucketOffsets, uint32_t w,
                           Report &report)
    : program(program), facts(facts), bucketOffsets(bucketOffsets), w(w),
      report(report), worker(*program.workers[w]),
      stages(static_cast<uint32_t>(program.stages.size())),
      count(program.micro_batches) {}

void GradientSums::follow(const Instruction &instruction, uint32_t index,
                          int64_t ofStep) {
  i = index;
  step = ofStep;
  Buffers in = operandsOf(worker, instruction);
  Buffers out = resultsOf(worker, instruction);
  switch (instruction.opcode()) {
  case Opcode::ZeroGradient:
    sums[out[0]] = GradientSum();
    sums[out[0]].replica = replicaOf(instruction);
    return;
  case Opcode::Backward:
  case Opcode::WeightGradient:
    if (beginsGradientSum(instruction)) {
      sums[out[0]] = GradientSum();
      sums[out[0]].replica = replicaOf(instruction);
    }
    return add(instruction, sums[out[0]]);
  case Opcode::AllReduceStart:
    return reduce(instruction, in, sums[out[0]]);
  case Opcode::Split:
    return split(instruction, in, out);
  case Opcode::Join:
    return join(instruction, in, sums[out[0]]);
  case Opcode::Copy:
    return copy(instruction, sums[in[0]], sums[out[0]]);
  case Opcode::PostRecv:
    sums[out[0]] = GradientSum();
    return;
  case Opcode::Rename:
    return rename(worker, instruction, sums);
  default:
    return;
  }
}

std::string GradientSums::faultOf(const Instruction &update, uint32_t buffer,
                                  int64_t number, int64_t ofStep) const {
  const GradientSum &sum = sums[buffer];
  if (!sum.isWhole())
    return "expected a whole gradient sum, got " + describe(sum);
  if (updateOf(update, buffer) != number)
    return "expected the sum of all gradients that its label names, over all "
           "pipelines and copies, got " +
           describeContents(sum, ofStep);
  return "";
}

int64_t GradientSums::updateOf(const Instruction &user, uint32_t buffer) const {
  const GradientSum &sum = sums[buffer];
  const bool isOfStage = sum.isWhole() && sum.replica != kNone &&
                         sum.replica % stages == user.stage();
  return isOfStage ? updateFor(sum) : kNoUpdate;
}

void GradientSums::add(const Instruction &instruction, GradientSum &sum) {
  if (sum.replica != replicaOf(instruction))
    return addFault("expected the gradient sum of " +
                    name(replicaOf(instruction)) + ", got that of " +
                    name(sum.replica));
  int64_t microBatch = step * count + instruction.micro_batch();
  ++sum.backwards;
  if (sum.isReduced)
    return addFault(
        "expected a gradient sum of this worker alone to add to, got "
        "one that is reduced");
  if (!sum.isWhole())
    return addFault("expected a whole gradient sum to add to, got " +
                    describe(sum));
  sum.first = std::min(sum.first, microBatch);
  sum.last = std::max(sum.last, microBatch);
  sum.update = kNoUpdate;
}

void GradientSums::reduce(const Instruction &start, Buffers in,
                          GradientSum &sum) {
  if (start.kind() != ValueKind::WeightGradient)
    return;
  const CommunicatorT &communicator = *program.communicators[start.target()];
  bool ofTied = reducesTiedParameters(communicator);
  GradientSum result;
  size_t next = 0;
  for (uint32_t own : facts.memberOf(start.target(), w)->contributions) {
    const Contribution &contribution = communicator.contributions[own];
    const GradientSum &given = sums[in[next++]];
    uint32_t replica = contribution.key() * stages + contribution.stage();
    if (given.replica != replica)
      return addFault("expected the gradient sum of " + name(replica) +
                      ", got that of " + name(given.replica));
    if (given.isReduced)
      return addFault("expected the gradient sum of this worker alone, got one "
                      "that is reduced");
    Part part = ofTied                              ? Part::Tied
                : tiedPieceOf(contribution.stage()) ? Part::Rest
                                                    : Part::All;
    if (given.part != part)
      return addFault("expected " + describe(part, replica) + ", got " +
                      describe(given));
    if (given.bucket != start.micro_batch() ||
        given.buckets != std::max<uint32_t>(1, start.micro_batches()) ||
        (next > 1 && given.offset != result.offset))
      return addFault("expected the bucket of the gradient sum that its label "
                      "names, got " +
                      describe(given));
    // Check the contributions here: the check of another member does not know
    // which gradients are in them.
    int64_t update = completeUpdateOf(given);
    if (update == kNoUpdate || (next > 1 && update != result.update))
      return addFault(
          "expected the gradients of a whole update to reduce, got " +
          describeContents(given, step));
    if (next == 1)
      result = given;
    result.update = update;
    result.backwards += next == 1 ? 0 : given.backwards;
    result.first = std::min(result.first, given.first);
    result.last = std::max(result.last, given.last);
  }
  uint64_t &offset = bucketOffsets[facts.match[w][i]];
  if (offset == kUnknownOffset)
    offset = result.offset;
  if (result.offset != offset)
    return addFault("expected a bucket from byte " + text(offset) +
                    " on, as another worker gives, got one from byte " +
                    text(result.offset));
  if (communicator.contributions.size() !=
      program.pipelines.size() * (ofTied ? 2 : 1))
    result.update = kNoUpdate;
  result.isReduced = true;
  sum = result;
}

/// The update for which `sum`, which is not all-reduced, has all gradients of
/// its replica. kNoUpdate if there is none. Requires that the replica of `sum`
/// is known. Each backward occurs once in a step, so the sum is complete if it
/// has as many backwards as the update needs.
int64_t GradientSums::completeUpdateOf(const GradientSum &sum) const {
  const PipelineT &pipeline = *program.pipelines[sum.replica / stages];
  // The sum of a pipeline without micro-batches is zero, and is complete for
  // update 0. There is no other update, because a program with such a pipeline
  // has a flush.
  if (pipeline.micro_batches.empty())
    return 0;
  bool each = program.updates == Updates::EachMicroBatch;
  uint64_t all = each ? 1 : pipeline.micro_batches.size();
  int64_t length = each ? 1 : count;
  if (sum.backwards != all * pipeline.backward_parts ||
      sum.first / length != sum.last / length)
    return kNoUpdate;
  return sum.first / length;
}

/// The update that may use `sum`. kNoUpdate if no update may use it. If there
/// is only one replica of the stage, a sum needs no all-reduce, unless it
/// contains tied parameters.
int64_t GradientSums::updateFor(const GradientSum &sum) const {
  bool alone = program.pipelines.size() == 1 && program.data_parallel == 1;
  bool hasTied = sum.part == Part::All && tiedPieceOf(sum.replica % stages);
  return alone && !sum.isReduced && !hasTied ? completeUpdateOf(sum)
                                             : sum.update;
}

void GradientSums::split(const Instruction &instruction, Buffers in,
                         Buffers out) {
  GradientSum piece = sums[in[0]];
  if (!isSumOf(instruction, piece) || piece.buckets > 1)
    return addFault("expected the gradient sum of " +
                    name(replicaOf(instruction)) +
                    ", whole or a part of it, got " + describe(piece));
  sums[in[0]] = GradientSum();
  if (piece.part == Part::All && tiedPieceOf(instruction.stage()))
    return splitTied(instruction, piece, out);
  piece.buckets = static_cast<uint32_t>(out.size());
  for (uint32_t buffer : out) {
    if (piece.offset % kBucketAlignment != 0)
      addFault("expected buckets that begin at multiples of " +
               text(kBucketAlignment) + " bytes, got byte " +
               text(piece.offset) + " (buffer " + text(buffer) + ")");
    sums[buffer] = piece;
    piece.offset += worker.buffers[buffer].bytes();
    ++piece.bucket;
  }
}

void GradientSums::splitTied(const Instruction &instruction, GradientSum piece,
                             Buffers out) {
  size_t tied = *tiedPieceOf(instruction.stage());
  if (out.size() != 2 ||
      worker.buffers[out[tied]].bytes() != program.tied->bytes())
    return addFault("expected two pieces, the " + text(program.tied->bytes()) +
                    " bytes of tied parameters " +
                    (tied == 0 ? "before" : "after") + " the others, got " +
                    text(out.size()) + ", of " +
                    text(worker.buffers[out[tied]].bytes()) + " bytes there");
  for (size_t k : {0, 1}) {
    piece.part = k == tied ? Part::Tied : Part::Rest;
    sums[out[k]] = piece;
  }
}

void GradientSums::join(const Instruction &instruction, Buffers in,
                        GradientSum &result) {
  GradientSum expected = sums[in[0]];
  // The operands are the tied piece and the rest, if the first operand is one
  // of the two and is not a bucket.
  if (isSumOf(instruction, expected) && expected.part != Part::All &&
      expected.buckets == 1)
    return joinTied(instruction, in, result);
  expected.offset = 0;
  expected.bucket = 0;
  expected.buckets = static_cast<uint32_t>(in.size());
  for (uint32_t buffer : in) {
    if (!isSumOf(instruction, expected) || sums[buffer] != expected)
      return addFault("expected piece " + text(expected.bucket) + " of " +
                      text(expected.buckets) + " of " +
                      describe(expected.part, replicaOf(instruction)) +
                      ", reduced like the others, got " +
                      describe(sums[buffer]));
    expected.offset += worker.buffers[buffer].bytes();
    ++expected.bucket;
    sums[buffer] = GradientSum();
  }
  expected.offset = 0;
  expected.bucket = 0;
  expected.buckets = 1;
  result = expected;
}

/// Joins the tied piece and the rest. If the two pieces are for the same
/// update, the result is for this update. Otherwise no update may use the
/// result.
void GradientSums::joinTied(const Instruction &instruction, Buffers in,
                            GradientSum &result) {
  size_t tied = *tiedPieceOf(instruction.stage());
  for (size_t k = 0; k < in.size(); ++k) {
    const GradientSum &piece = sums[in[k]];
    Part part = k == tied ? Part::Tied : Part::Rest;
    if (in.size() != 2 || !isSumOf(instruction, piece) || piece.part != part ||
        piece.buckets > 1)
      return addFault("expected " + describe(part, replicaOf(instruction)) +
                      " as piece " + text(k) + " of 2, got " + describe(piece));
    if (part == Part::Tied && !piece.isReduced)
      return addFault("expected the gradient of tied parameters reduced over "
                      "first and last stage, got that of one");
  }
  const GradientSum &ofTied = sums[in[tied]], &ofRest = sums[in[1 - tied]];
  GradientSum whole = ofRest;
  whole.part = Part::All;
  whole.update = updateFor(ofRest) == ofTied.update ? ofTied.update : kNoUpdate;
  whole.isReduced = true;
  for (uint32_t buffer : in)
    sums[buffer] = GradientSum();
  result = whole;
}

/// Applies a copy of a tied piece after its all-reduce. The tied pieces of the
/// first and of the last stage have the same sum.
void GradientSums::copy(const Instruction &instruction, const GradientSum &from,
                        GradientSum &to) {
  if (instruction.kind() != ValueKind::WeightGradient)
    return;
  if (from.part != Part::Tied || !from.isReduced ||
      !tiedPieceOf(instruction.stage()))
    return addFault("expected a reduced gradient of tied parameters, got " +
                    describe(from));
  to = from;
  to.replica = replicaOf(instruction);
}

std::string GradientSums::describe(Part part, uint32_t replica) const {
  const char *what = part == Part::All    ? "the gradient sum of "
                     : part == Part::Rest ? "the gradient sum of all "
                                            "but tied parameters of "
                                          : "the gradient sum of the "
                                            "tied parameters of ";
  return what + name(replica);
}

std::string GradientSums::describe(const GradientSum &value) const {
  std::string name = describe(value.part, value.replica);
  if (value.buckets > 1)
    name = "piece " + text(value.bucket) + " of " + text(value.buckets) +
           " of " + name;
  return name + (value.isReduced ? ", reduced" : "");
}

std::string GradientSums::describeContents(const GradientSum &sum,
                                           int64_t ofStep) const {
  if (sum.replica == kNone)
    return "an unknown sum";
  if (sum.backwards == 0)
    return "an empty sum";
  return "one of " + countWithNoun(sum.backwards, "backward") +
         " between micro-batch " + std::to_string(sum.first - ofStep * count) +
         " and " + std::to_string(sum.last - ofStep * count) + " of stage " +
         text(sum.replica % stages);
}

} // namespace chimera::program::verify
