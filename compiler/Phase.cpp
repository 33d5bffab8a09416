//===- Phase.cpp - The phases of a module ---------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Phase.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace chimera {

std::span<const Phase> phases() {
  static constexpr Phase all[] = {Phase::Described,    Phase::Partitioned,
                                  Phase::Unrolled,     Phase::Scheduled,
                                  Phase::Communicated, Phase::Synchronised,
                                  Phase::Projected,    Phase::Allocated};
  return all;
}

StringRef nameOf(Phase phase) {
  switch (phase) {
  case Phase::Described:
    return "described";
  case Phase::Partitioned:
    return "partitioned";
  case Phase::Unrolled:
    return "unrolled";
  case Phase::Scheduled:
    return "scheduled";
  case Phase::Communicated:
    return "communicated";
  case Phase::Synchronised:
    return "synchronised";
  case Phase::Projected:
    return "projected";
  case Phase::Allocated:
    return "allocated";
  }
  llvm_unreachable("a phase of the enumeration");
}

/// The earliest phase in which a step, prologue or epilogue may contain `op`.
static Phase phaseOf(Operation &op) {
  if (isa<AllReduceStartOp>(op))
    return Phase::Synchronised;
  if (isa<PostSendOp, PostReceiveOp, GroupOp, WaitOp>(op))
    return Phase::Communicated;
  auto placed = dyn_cast<PlacedOp>(op);
  return placed && placed.getWorker() ? Phase::Scheduled : Phase::Unrolled;
}

Phase phaseOf(PipelineOp pipeline) {
  Phase phase = Phase::Described;
  if (pipeline.getBody().empty())
    return phase;
  for (Operation &op : pipeline.getBody().front()) {
    Phase found = llvm::TypeSwitch<Operation *, Phase>(&op)
                      .Case([&](DirectionOp) {
                        // A pipeline that names a schedule gets its directions
                        // from the pass `partition`. Without a schedule, the
                        // description itself has directions.
                        return pipeline.getSchedule() ? Phase::Partitioned
                                                      : Phase::Described;
                      })
                      .Case([](SectionOp section) {
                        Phase latest = Phase::Unrolled;
                        for (Operation &inner : section.getBody().front())
                          latest = std::max(latest, phaseOf(inner));
                        return latest;
                      })
                      .Case([](WorkerOp worker) {
                        bool allocated =
                            worker.getArguments() ||
                            isa<BufferOp>(worker.getSections()[0]->front());
                        return allocated ? Phase::Allocated : Phase::Projected;
                      })
                      .Default(Phase::Described);
    phase = std::max(phase, found);
  }
  return phase;
}

} // namespace chimera
