//===- Tables.cpp - Placement, sections and states ------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/program/CheckStages.h"
#include "runtime/program/Layers.h"
#include "runtime/proof/Facts.h"

#include <algorithm>
#include <bit>

namespace chimera::program::verify {

namespace {

/// Checks that all tables exist, that they are not empty if they must not be,
/// and that enumerators are known.
bool verifyPresence(const ProgramT &program, Report &report) {
  auto isNull = [](const auto &entry) { return !entry; };
  if (!program.optimizer)
    reportStructure(report, "expected an optimizer, got none");
  if (std::ranges::any_of(program.pipelines, isNull) ||
      std::ranges::any_of(program.communicators, isNull) ||
      std::ranges::any_of(program.workers, isNull))
    reportStructure(report,
                    "expected every pipeline, communicator and worker to be "
                    "there, got an empty entry");
  auto positive = [&](uint64_t count, const char *what) {
    if (count == 0)
      reportStructure(report, std::string("expected at least one ") + what +
                                  ", got none");
  };
  positive(program.workers.size(), "worker");
  positive(program.stages.size(), "stage");
  positive(program.pipelines.size(), "pipeline");
  positive(program.micro_batches, "micro-batch");
  positive(program.data_parallel, "data-parallel copy");
  for (DataType type : {program.weight_type, program.activation_type})
    if (type > DataType::MAX)
      reportStructure(report, "unknown data type " + text(uint64_t(type)));
  if (program.message_model > MessageModel::MAX)
    reportStructure(report, "unknown message model " +
                                text(uint64_t(program.message_model)));
  if (!std::has_single_bit(program.buffer_alignment) ||
      program.buffer_alignment < kLeastBufferAlignment ||
      program.buffer_alignment > kMaxBufferAlignment)
    reportStructure(report, "expected a buffer alignment of " +
                                text(kLeastBufferAlignment) + ", " +
                                text(2 * kLeastBufferAlignment) + ", ... or " +
                                text(kMaxBufferAlignment) + " bytes, got " +
                                text(program.buffer_alignment));
  if (program.updates > Updates::MAX)
    reportStructure(report,
                    "unknown updates " + text(uint64_t(program.updates)));
  else if (program.updates != Updates::Flush && program.pipelines.size() > 1)
    // Without a flush, versionRead defines the version of the weights only for
    // programs with one pipeline.
    reportStructure(report, "expected one pipeline without a flush, got " +
                                text(program.pipelines.size()));
  if (program.updates != Updates::Flush && program.optimizer &&
      program.optimizer->clip_norm != 0)
    reportStructure(report, "expected steps that end with a flush if gradients "
                            "are clipped by their norm (clip_norm)");
  for (size_t i = 0; i < program.locations.size() && !report.full(); ++i)
    if (program.locations[i].file() >= program.files.size())
      reportStructure(report, "location " + text(i) +
                                  ": expected a file below " +
                                  text(program.files.size()) + ", got " +
                                  text(program.locations[i].file()));
  return report.empty();
}

/// Checks that the forwards of a pipeline cover each of its micro-batches once,
/// and that the number of parts of a backward divides the size of a micro-batch
/// and of a boundary.
void verifyForwardsAndParts(const ProgramT &program, const PipelineT &pipeline,
                            const std::string &name, Report &report) {
  size_t next = 0;
  for (uint32_t count : pipeline.forwards) {
    if (count == 0 || count > pipeline.micro_batches.size() - next)
      return reportStructure(
          report,
          name + "expected forwards that cover its " +
              countWithNoun(pipeline.micro_batches.size(), "micro-batch") +
              ", got one of " + text(count) + " after the first " + text(next));
    for (uint32_t k = 1; k < count; ++k)
      if (pipeline.micro_batches[next + k] !=
          pipeline.micro_batches[next] + uint64_t(k))
        return reportStructure(
            report, name +
                        "expected a forward to cover consecutive "
                        "micro-batches, got " +
                        text(pipeline.micro_batches[next + k]) + " after " +
                        text(pipeline.micro_batches[next + k - 1]));
    next += count;
  }
  if (!pipeline.forwards.empty() && next != pipeline.micro_batches.size())
    reportStructure(report, name + "expected forwards that cover its " +
                                countWithNoun(pipeline.micro_batches.size(),
                                              "micro-batch") +
                                ", got " + text(next));
  // A label has 8 bits for the number of parts.
  uint32_t parts = pipeline.backward_parts;
  if (parts == 0 || parts > UINT8_MAX)
    return reportStructure(report, name +
                                       "expected 1 to 255 parts of a backward, "
                                       "got " +
                                       text(parts));
  if (program.model && program.micro_batch_size % parts != 0)
    reportStructure(report, name +
                                "expected parts of a backward that divide the "
                                "micro-batch size " +
                                text(program.micro_batch_size) + ", got " +
                                text(parts));
  for (size_t s = 0; s + 1 < program.stages.size(); ++s)
    if (program.stages[s].boundary_bytes() % parts != 0)
      reportStructure(report,
                      name + "expected parts of a backward that divide the " +
                          text(program.stages[s].boundary_bytes()) +
                          " boundary bytes of stage " + text(s) + ", got " +
                          text(parts));
}

void verifyPipelines(const ProgramT &program, Report &report) {
  std::vector<uint32_t> owner;
  // Allocate memory for the micro-batches only if the pipelines really list
  // that many: `micro_batches` can be a very large number in a small file.
  uint64_t listed = 0;
  for (const auto &pipeline : program.pipelines)
    listed += pipeline->micro_batches.size();
  if (listed != program.micro_batches)
    reportStructure(report,
                    "expected each of " +
                        countWithNoun(program.micro_batches, "micro-batch") +
                        " in one pipeline, got " + text(listed) +
                        " in all of them");
  else
    owner.assign(program.micro_batches, kNone);
  for (uint32_t p = 0; p < program.pipelines.size(); ++p) {
    const PipelineT &pipeline = *program.pipelines[p];
    std::string name = "pipeline " + text(p) + ": ";
    if (pipeline.direction > Direction::MAX)
      reportStructure(report, name + "unknown direction " +
                                  text(uint64_t(pipeline.direction)));
    if (pipeline.workers.size() != program.stages.size())
      reportStructure(report,
                      name + "expected a worker for each of " +
                          countWithNoun(program.stages.size(), "stage") +
                          ", got " + text(pipeline.workers.size()));
    for (uint32_t worker : pipeline.workers)
      if (worker >= program.workers.size())
        reportStructure(report, name + "expected workers below " +
                                    text(program.workers.size()) + ", got " +
                                    text(worker));
    for (size_t i = 0; i < pipeline.micro_batches.size(); ++i) {
      uint32_t m = pipeline.micro_batches[i];
      if (m >= program.micro_batches) {
        reportStructure(report, name + "expected micro-batches below " +
                                    text(program.micro_batches) + ", got " +
                                    text(m));
        continue;
      }
      if (i > 0 && m <= pipeline.micro_batches[i - 1])
        reportStructure(
            report, name + "expected ascending micro-batches, got " + text(m) +
                        " after " + text(pipeline.micro_batches[i - 1]));
      if (owner.empty())
        continue;
      if (owner[m] != kNone && owner[m] != p)
        reportStructure(report, name + "micro-batch " + text(m) +
                                    " is in pipeline " + text(owner[m]) +
                                    " too");
      owner[m] = p;
    }
    verifyForwardsAndParts(program, pipeline, name, report);
    if (report.full())
      return;
  }
}

/// Checks that the tied parameters are at the beginning or the end of the
/// parameters of the first and of the last stage.
void verifyTied(const ProgramT &program, Report &report) {
  const Tied *tied = program.tied.get();
  if (!tied)
    return;
  if (program.updates != Updates::Flush)
    return reportStructure(report,
                           "expected tied parameters with a flush only: "
                           "without, first and last stage update at "
                           "different times");
  if (program.stages.size() < 2)
    return reportStructure(report,
                           "expected two stages for tied parameters, got 1");
  // The tied parameters must be at one end, so that all other parameters are
  // contiguous.
  auto verifyEnd = [&](uint64_t stage, uint64_t offset) {
    uint64_t whole = gradientBytes(program.stages[stage]);
    if (tied->bytes() == 0 || tied->bytes() >= whole ||
        (offset != 0 && offset != whole - tied->bytes()))
      reportStructure(report, "expected tied parameters at one end of the " +
                                  text(whole) +
                                  " bytes of parameters of stage " +
                                  text(stage) + ", got " + text(tied->bytes()) +
                                  " bytes at " + text(offset));
  };
  verifyEnd(0, tied->first_offset());
  verifyEnd(program.stages.size() - 1, tied->last_offset());
}

void verifySections(const ProgramT &program, const WorkerT &worker,
                    const std::string &name, Report &report) {
  if (worker.body_begin > worker.body_end ||
      worker.body_end > worker.instructions.size()) {
    reportStructure(report, name + "expected a body inside its " +
                                text(worker.instructions.size()) +
                                " instructions, got [" +
                                text(worker.body_begin) + ", " +
                                text(worker.body_end) + ")");
    return;
  }
  bool flushes = program.updates == Updates::Flush;
  if (flushes &&
      (worker.body_begin != 0 || worker.body_end != worker.instructions.size()))
    reportStructure(report,
                    name +
                        "expected all instructions in the body of a program "
                        "whose steps end with a flush, got " +
                        text(worker.body_begin) + " before it and " +
                        text(worker.instructions.size() - worker.body_end) +
                        " after it");
  // The body and the epilogue must not be empty. The prologue can be: some
  // workers need no actions to fill the pipeline.
  if (!flushes && (worker.body_begin == worker.body_end ||
                   worker.body_end == worker.instructions.size()))
    reportStructure(report,
                    name +
                        "expected a body and an epilogue in a program "
                        "without a flush, got " +
                        text(worker.body_end - worker.body_begin) + " and " +
                        text(worker.instructions.size() - worker.body_end) +
                        " instructions");
}

void verifyStates(const ProgramT &program, Report &report) {
  size_t stages = program.stages.size();
  std::vector<bool> kept(program.pipelines.size() * stages);
  for (uint32_t w = 0; w < program.workers.size(); ++w) {
    const WorkerT &worker = *program.workers[w];
    std::vector<bool> taken(worker.buffers.size());
    for (const State &state : worker.states) {
      std::string name = "worker " + text(w) + " state of pipeline " +
                         text(state.pipeline()) + " stage " +
                         text(state.stage()) + ": ";
      if (state.pipeline() >= program.pipelines.size() ||
          state.stage() >= stages) {
        reportStructure(report, name + "no such pipeline or stage");
        continue;
      }
      uint32_t holder =
          program.pipelines[state.pipeline()]->workers[state.stage()];
      if (holder != w)
        reportStructure(report,
                        name + "this stage is on worker " + text(holder));
      std::vector<bool>::reference first =
          kept[state.pipeline() * stages + state.stage()];
      if (first)
        reportStructure(report, name + "given twice");
      first = true;
      const Stage &stage = program.stages[state.stage()];
      auto check = [&](uint32_t buffer, ValueKind kind, uint64_t bytes) {
        if (buffer >= worker.buffers.size()) {
          reportStructure(report, name + "expected a buffer below " +
                                      text(worker.buffers.size()) + ", got " +
                                      text(buffer));
          return;
        }
        const Buffer &found = worker.buffers[buffer];
        if (found.kind() != kind || found.bytes() != bytes)
          reportStructure(report, name + "expected " + text(bytes) +
                                      " bytes of " + nameOf(kind) + ", got " +
                                      text(found.bytes()) + " of " +
                                      nameOf(found.kind()));
        if (taken[buffer])
          reportStructure(report, name + "buffer " + text(buffer) +
                                      " is another state's too");
        taken[buffer] = true;
      };
      check(state.weights(), ValueKind::Weights, stage.weights_bytes());
      check(state.optimizer_state(), ValueKind::OptimizerState,
            stage.optimizer_bytes());
    }
    if (report.full())
      return;
  }
  for (size_t p = 0; p < program.pipelines.size() && !report.full(); ++p)
    for (size_t s = 0; s < stages; ++s)
      if (!kept[p * stages + s])
        reportStructure(report,
                        "worker " + text(program.pipelines[p]->workers[s]) +
                            ": expected a state of pipeline " + text(p) +
                            " stage " + text(s) + ", got none");
}

} // namespace

void verifyTables(const ProgramT &program, Facts &facts, Report &report) {
  if (!verifyPresence(program, report))
    return;
  verifyLimits(program, report);
  if (!report.empty())
    return;
  verifyPipelines(program, report);
  for (uint32_t w = 0; w < program.workers.size(); ++w) {
    const WorkerT &worker = *program.workers[w];
    std::string name = "worker " + text(w) + ": ";
    verifySections(program, worker, name, report);
    if (worker.peak_instruction >=
        std::max<size_t>(worker.instructions.size(), 1))
      reportStructure(report, name + "expected its peak at one of its " +
                                  text(worker.instructions.size()) +
                                  " instructions, got " +
                                  text(worker.peak_instruction));
    if (report.full())
      return;
  }
  if (!report.empty())
    return;
  facts.pieces.emplace(program);
  if (program.model)
    if (std::string problem = checkStages(program); !problem.empty())
      return reportStructure(report, problem);
  verifyTied(program, report);
  verifyCommunicators(program, facts, report);
  verifyStates(program, report);
}

} // namespace chimera::program::verify
