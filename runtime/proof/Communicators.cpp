//===- Communicators.cpp - Members of the all-reduces ---------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/proof/Facts.h"

#include <algorithm>

namespace chimera::program::verify {

namespace {

/// Checks the stages of the contributions. All contributions of losses come
/// from the last stage. For the gradients of tied parameters, the first and the
/// last stage alternate. For other gradients, all contributions come from one
/// stage. Squared norms come from all stages of each pipeline in turn.
void verifyStages(const ProgramT &program, const CommunicatorT &communicator,
                  const std::string &name, Report &report) {
  const std::vector<Contribution> &list = communicator.contributions;
  auto last = static_cast<uint32_t>(program.stages.size() - 1);
  if (list.front().stage() > last)
    return reportStructure(report, name + "expected a stage below " +
                                       text(last + 1) + ", got " +
                                       text(list.front().stage()));
  bool ofNorms = communicator.kind == ValueKind::SquaredNorm;
  const size_t replicas = program.pipelines.size() * program.stages.size();
  if (ofNorms && list.size() != replicas)
    return reportStructure(
        report, name + "expected the squared norms of " + text(replicas) +
                    " stage replicas, got " + text(list.size()));
  bool ofTied = !ofNorms && reducesTiedParameters(communicator);
  if (ofTied && (!program.tied || communicator.kind == ValueKind::Loss))
    return reportStructure(report,
                           name +
                               "expected contributions of one stage, got "
                               "stages " +
                               text(list.front().stage()) + " and " +
                               text(list.back().stage()));
  for (size_t i = 0; i < list.size(); ++i) {
    uint32_t expected = communicator.kind == ValueKind::Loss ? last
                        : ofNorms    ? static_cast<uint32_t>(i % (last + 1))
                        : !ofTied    ? list.front().stage()
                        : i % 2 == 0 ? 0
                                     : last;
    if (list[i].stage() != expected)
      return reportStructure(report, name + "expected contribution " + text(i) +
                                         " from stage " + text(expected) +
                                         ", got " + text(list[i].stage()));
  }
}

void verifyCommunicator(const ProgramT &program,
                        const CommunicatorT &communicator,
                        const std::string &name, Facts &facts, Report &report) {
  bool ofLosses = communicator.kind == ValueKind::Loss;
  if (!ofLosses && communicator.kind != ValueKind::WeightGradient &&
      communicator.kind != ValueKind::SquaredNorm)
    reportStructure(report, name +
                                "expected weight gradients, losses or squared "
                                "norms, got " +
                                nameOf(communicator.kind));
  std::vector<Member> &members = facts.members.emplace_back();
  if (communicator.contributions.empty())
    return reportStructure(report, name + "expected contributions, got none");
  verifyStages(program, communicator, name, report);
  std::vector<uint32_t> accepted; // indices in communicator.contributions
  uint64_t keys = ofLosses ? program.micro_batches : program.pipelines.size();
  const char *what = ofLosses ? "micro-batch " : "pipeline ";
  const Contribution *before = nullptr;
  const std::vector<Contribution> &list = communicator.contributions;
  for (uint32_t k = 0; k < list.size() && !report.full(); ++k) {
    const Contribution &each = list[k];
    uint32_t worker = each.worker(), key = each.key();
    if (key >= keys) {
      reportStructure(report, name + "expected a " + what + "below " +
                                  text(keys) + ", got " + text(key));
      continue;
    }
    if (each.stage() >= program.stages.size())
      continue; // reported by verifyStages
    if (before && std::pair(key, each.stage()) <=
                      std::pair(before->key(), before->stage()))
      reportStructure(report, name + "expected ascending contributions, got " +
                                  what + text(key) + " after " +
                                  text(before->key()));
    before = &each;
    uint32_t pipeline = ofLosses ? facts.pieces->pipelineOf(key) : key;
    uint32_t holder = program.pipelines[pipeline]->workers[each.stage()];
    if (worker != holder)
      reportStructure(report, name + "expected the contribution of " + what +
                                  text(key) + " from worker " + text(holder) +
                                  ", which holds stage " + text(each.stage()) +
                                  ", got " + text(worker));
    else
      accepted.push_back(k);
  }
  std::ranges::stable_sort(accepted, {},
                           [&](uint32_t k) { return list[k].worker(); });
  for (uint32_t k : accepted) {
    if (members.empty() || members.back().worker != list[k].worker())
      members.push_back({list[k].worker(), {}});
    members.back().contributions.push_back(k);
  }
}

/// The worker and the index of the first instruction that starts an all-reduce
/// in a communicator. kNone twice if there is no such instruction.
std::pair<uint32_t, uint32_t> firstStart(const ProgramT &program,
                                         uint32_t communicator) {
  for (uint32_t w = 0; w < program.workers.size(); ++w) {
    const std::vector<Instruction> &stream = program.workers[w]->instructions;
    for (uint32_t i = 0; i < stream.size(); ++i)
      if (stream[i].opcode() == Opcode::AllReduceStart &&
          stream[i].target() == communicator)
        return {w, i};
  }
  return {kNone, kNone};
}

} // namespace

void verifyCommunicators(const ProgramT &program, Facts &facts,
                         Report &report) {
  for (uint32_t c = 0; c < program.communicators.size() && !report.full();
       ++c) {
    size_t before = report.list.size();
    verifyCommunicator(program, *program.communicators[c],
                       "communicator " + text(c) + ": ", facts, report);
    if (report.list.size() == before)
      continue;
    auto [w, i] = firstStart(program, c);
    for (size_t k = before; k < report.list.size(); ++k) {
      report.list[k].worker = w;
      report.list[k].instruction = i;
    }
  }
}

} // namespace chimera::program::verify
