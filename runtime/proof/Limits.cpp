//===- Limits.cpp - Limits of numbers and texts ---------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The check of limits that no real program exceeds. The file is untrusted, so
// this check comes before the allocation of memory whose size depends on
// numbers in the file. After this check, the other rules and the runtime can
// add the bytes of a worker in 64 bits and print every text.
//
//===----------------------------------------------------------------------===//

#include "runtime/program/Optimizer.h"
#include "runtime/program/Printable.h"
#include "runtime/proof/Facts.h"
#include "runtime/proof/Sizes.h"

#include <algorithm>

namespace chimera::program::verify {

namespace {

class LimitsVerifier {
public:
  LimitsVerifier(const ProgramT &program, Report &report)
      : program(program), report(report) {}

  void run() {
    verifyTexts();
    verifyCounts();
    verifyOptimizer();
    for (size_t s = 0; s < program.stages.size() && !report.full(); ++s)
      verifyStage("stage " + text(s) + ": ", program.stages[s]);
    for (size_t w = 0; w < program.workers.size() && !report.full(); ++w)
      verifyWorker(static_cast<uint32_t>(w));
  }

private:
  /// Reports a wrong number or text. If it is in the table of a worker,
  /// `worker` is this worker.
  void fail(std::string message, uint32_t worker = kNone) {
    report.addAt(Rule::Structure, worker, kNone, std::move(message));
  }

  void verifyText(const char *what, const std::string &found) {
    if (found.size() > kMaxStringBytes)
      fail(std::string("expected at most ") + text(kMaxStringBytes) +
           " bytes as the " + what + ", got " + text(found.size()));
    else if (!isPrintable(found))
      fail(std::string("expected a ") + what +
           " of printable UTF-8 characters, got '" + printable(found) + "'");
  }

  void verifyPatterns(const char *what,
                      const std::vector<std::string> &patterns) {
    for (const std::string &pattern : patterns) {
      if (report.full())
        return;
      verifyText(what, pattern);
    }
  }

  void verifyTexts() {
    verifyText("producer", program.producer);
    verifyText("name", program.name);
    verifyText("schedule", program.schedule);
    verifyText("time unit", program.time_unit);
    verifyText("optimizer", program.optimizer->name);
    verifyPatterns("pattern of no_decay", program.optimizer->no_decay);
    verifyPatterns("pattern of no_muon", program.optimizer->no_muon);
    for (const std::string &file : program.files) {
      if (report.full())
        return;
      verifyText("file of locations", file);
    }
  }

  void atMost(uint64_t count, uint64_t most, const char *what) {
    if (count > most)
      fail("expected at most " + text(most) + " " + what + ", got " +
           text(count));
  }

  void verifyCounts() {
    // A label has 16 bits for the stage and 16 bits for the pipeline.
    atMost(program.stages.size(), 65536, "stages");
    atMost(program.pipelines.size(), 65536, "pipelines");
    atMost(program.workers.size() * uint64_t(program.data_parallel), kMaxRanks,
           "ranks (workers times data-parallel copies)");
    for (const auto &worker : program.workers)
      atMost(worker->instructions.size(), INT32_MAX, "instructions a worker");
  }

  void verifyOptimizer() {
    if (std::string fault = faultOfOptimizer(*program.optimizer);
        !fault.empty())
      fail("optimizer: " + fault);
  }

  void verifyBytes(const std::string &name, const char *what, uint64_t bytes,
                   uint32_t worker = kNone) {
    if (bytes > kMaxBytes)
      fail(name + "expected less than 2^48 bytes of " + what + ", got " +
               text(bytes),
           worker);
  }

  void verifyStage(const std::string &name, const Stage &stage) {
    verifyBytes(name, "weights", stage.weights_bytes());
    if (stage.copy_bytes() > 0 && stage.copy_bytes() >= stage.weights_bytes())
      fail(name + "expected a copy of less than the " +
           text(stage.weights_bytes()) + " bytes of weights, got " +
           text(stage.copy_bytes()));
    verifyBytes(name, "optimizer state", stage.optimizer_bytes());
    verifyBytes(name, "stash", stage.stash_bytes());
    verifyBytes(name, "weight stash", stage.weight_stash_bytes());
    verifyBytes(name, "boundary", stage.boundary_bytes());
    for (int64_t cost :
         {stage.forward(), stage.backward(), stage.input_gradient(),
          stage.weight_gradient(), stage.recompute(), stage.update()})
      if (cost < 0)
        fail(name + "expected costs of at least 0, got " +
             std::to_string(cost));
  }

  /// Refuses a worker whose instructions share entries of worker.operands. If
  /// instructions could share entries, a small file could have a very large
  /// number of operands, which all other rules visit.
  void verifyPool(uint32_t w) {
    const WorkerT &worker = *program.workers[w];
    uint64_t used = 0;
    for (const Instruction &instruction : worker.instructions)
      used += uint64_t(instruction.operands()) + instruction.results();
    if (used > worker.operands.size())
      fail("worker " + text(w) + ": expected instructions with at most the " +
               text(worker.operands.size()) +
               " operands and results of its pool in total, got " + text(used),
           w);
  }

  void verifyWorker(uint32_t w) {
    const WorkerT &worker = *program.workers[w];
    const std::string name = "worker " + text(w) + ": ";
    verifyPool(w);
    verifyBytes(name, "arena", worker.arena_bytes, w);
    if (worker.arena_bytes > kMaxBytes)
      return;
    uint64_t stashes = 0;
    for (size_t b = 0; b < worker.buffers.size(); ++b) {
      if (report.full())
        return;
      const Buffer &buffer = worker.buffers[b];
      auto failHere = [&](const std::string &message) {
        fail(name + "buffer " + text(b) + ": " + message, w);
      };
      if (buffer.kind() > ValueKind::MAX)
        failHere("unknown kind " + text(uint64_t(buffer.kind())));
      else if (isStash(buffer.kind()))
        // If the sum exceeds the limit, it is set to limit + 1, so it cannot
        // overflow.
        stashes = std::min(kMaxBytes + 1,
                           stashes + std::min(kMaxBytes + 1, buffer.bytes()));
      else if (buffer.offset() > worker.arena_bytes ||
               buffer.bytes() > worker.arena_bytes - buffer.offset())
        failHere("expected its " + text(buffer.bytes()) +
                 " bytes inside the arena of " + text(worker.arena_bytes) +
                 ", got offset " + text(buffer.offset()));
      else if (std::string fault = alignmentFault(program, buffer);
               buffer.kind() != ValueKind::WeightGradient && !fault.empty())
        // The alignment of weight gradients is not checked here: a buffer may
        // be a piece of a weight gradient, and pieces may have any offset.
        failHere(fault);
    }
    if (stashes > kMaxBytes)
      fail(name + "expected less than 2^48 bytes of stashes together", w);
  }

  const ProgramT &program;
  Report &report;
};

} // namespace

void verifyLimits(const ProgramT &program, Report &report) {
  LimitsVerifier(program, report).run();
}

} // namespace chimera::program::verify
