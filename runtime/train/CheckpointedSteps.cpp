//===- CheckpointedSteps.cpp - The steps of a rank, with checkpoints ------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/train/CheckpointedSteps.h"

#include "runtime/control/Messages.h"
#include "runtime/model/checkpoint/RunMark.h"
#include "runtime/watch/Report.h"

#include <algorithm>
#include <random>

using namespace chimera;
using namespace chimera::runtime;

uint64_t chimera::runtime::segmentEnd(uint64_t step, uint64_t steps,
                                      uint64_t every) {
  return every == 0 ? steps : std::min(steps, (step / every + 1) * every);
}

void chimera::runtime::reportCheckpoint(
    const TrainingRun &run, const std::optional<CheckpointOutcome> &outcome) {
  if (outcome && run.onCheckpoint)
    run.onCheckpoint(*outcome);
}

std::vector<CheckpointPart>
chimera::runtime::stageParts(const program::ProgramT &program) {
  std::vector<CheckpointPart> parts;
  for (uint32_t s = 0; s < program.stages.size(); ++s)
    parts.push_back({.number = s,
                     .first = program.stages[s].first_layer(),
                     .layers = program.stages[s].layers()});
  return parts;
}

std::vector<CheckpointPart>
chimera::runtime::checkpointParts(const program::ProgramT &program,
                                  uint32_t rank) {
  std::vector<CheckpointPart> parts = stageParts(program);
  std::erase_if(parts, [&](const CheckpointPart &part) {
    return program.pipelines.at(0)->workers.at(part.number) != rank;
  });
  return parts;
}

uint64_t chimera::runtime::checkpointCopyBytes(const program::ProgramT &program,
                                               uint32_t rank) {
  uint64_t bytes = 0;
  for (const CheckpointPart &part : checkpointParts(program, rank))
    bytes += copyBytesOf(program, part);
  return bytes;
}

std::string
chimera::runtime::checkpointMemoryError(const program::ProgramT &program) {
  for (uint32_t w = 0; w < program.workers.size(); ++w) {
    const program::WorkerT &worker = *program.workers[w];
    const uint64_t copy = checkpointCopyBytes(program, w);
    const uint64_t step = std::max(worker.arena_bytes, worker.peak_bytes);
    if (worker.memory_cap == 0 || step + copy <= worker.memory_cap)
      continue;
    return "--checkpoint: expected a memory_cap of at least " +
           std::to_string(step + copy) + " bytes for worker " +
           std::to_string(w) + ", got " + std::to_string(worker.memory_cap) +
           ": the step takes " + std::to_string(step) +
           ", and the copy of the state that is written takes " +
           std::to_string(copy) + ". Raise the memory_cap or use more stages";
  }
  return {};
}

uint64_t
chimera::runtime::largestCheckpointCopy(const program::ProgramT &program) {
  uint64_t largest = 0;
  for (uint32_t w = 0; w < program.workers.size(); ++w)
    largest = std::max(largest, checkpointCopyBytes(program, w));
  return largest;
}

CheckpointWriter::Options
chimera::runtime::writerOptions(const TrainingRun &run, size_t parts,
                                uint64_t nonce, bool isRoot) {
  const CheckpointSettings &settings = *run.checkpoints;
  return {.folder = settings.folder,
          .keep = settings.keep,
          .nonce = nonce,
          .parts = static_cast<uint32_t>(parts),
          .firstStep = run.firstStep,
          .firstUpdate = firstUpdateOf(run),
          .resumedFrom = settings.resumedFrom,
          .steps = run.steps,
          .dataDigest = settings.dataDigest,
          .isRoot = isRoot};
}

std::unique_ptr<CheckpointWriter>
chimera::runtime::makeCheckpointWriter(const TrainingRun &run,
                                       Control &control) {
  const uint32_t root = rootOf(run.program);
  const bool isRoot = control.rank() == root;
  uint64_t nonce = 0;
  if (isRoot) {
    std::random_device random;
    nonce = (uint64_t{random()} << 32) | random();
  } else {
    nonce = broadcastValue(control, root, nonce, run.timeout);
  }
  const CheckpointSettings &settings = *run.checkpoints;
  auto writer = std::make_unique<CheckpointWriter>(
      run.program, *settings.names,
      checkpointParts(run.program, control.rank()),
      writerOptions(run, run.program.stages.size(), nonce, isRoot));
  // The root has removed old partial folders now, so the other ranks may begin.
  if (isRoot) {
    RunMark mark(settings.folder, nonce);
    broadcastValue(control, root, nonce, run.timeout);
    const std::vector<uint8_t> sees =
        gatherValues(control, root, uint8_t{1}, run.timeout);
    if (auto blind = std::ranges::find(sees, 0); blind != sees.end())
      throw std::runtime_error(
          "rank " + std::to_string(blind - sees.begin()) +
          " has another folder '" + settings.folder + "' than rank " +
          std::to_string(root) +
          ": --checkpoint needs an absolute path to a folder that all hosts "
          "share");
  } else {
    gatherValues(control, root,
                 uint8_t{RunMark::isSeen(settings.folder, nonce)}, run.timeout);
  }
  return writer;
}

void chimera::runtime::handleSaveSignal(
    const TrainingRun &run, StatusPage &page,
    const std::function<void()> &askToSave) {
  if (run.checkpoints)
    return askToSave();
  if (page.claimNotice())
    writeReport("SIGUSR2: this run writes no checkpoint, because --checkpoint "
                "is not given. It goes on\n");
}

/// Begins the checkpoint after the steps that have ended.
static void beginCheckpoint(const Interpreter &interpreter,
                            CheckpointWriter &writer,
                            const std::vector<CheckpointPart> &parts,
                            const std::string &fault) {
  writer.begin(
      interpreter.stepsRun(), fault,
      [&](size_t i, Bytes parameters, Bytes optimizer) {
        interpreter.copyState({0, parts[i].number}, parameters, optimizer);
      });
}

void chimera::runtime::finishCheckpoint(const TrainingRun &run,
                                        Control &control,
                                        CheckpointWriter &writer) {
  // A slow disk may take longer than the timeout. So all ranks exchange
  // messages again and again until all parts are written and the root has
  // completed the checkpoint.
  const auto patience = std::min<std::chrono::milliseconds>(
      run.timeout / 4, std::chrono::milliseconds(500));
  const uint32_t root = rootOf(run.program);
  // The text is cut off so that messages have a fixed size.
  struct Report {
    bool isWritten = false;
    char fault[511] = {};
  };
  std::string first;
  for (bool isDone = false; !isDone;) {
    Report own;
    if (const auto fault = writer.awaitOwnParts(patience)) {
      own.isWritten = true;
      fault->copy(own.fault, sizeof own.fault - 1);
    }
    const std::vector<Report> reports =
        gatherValues(control, root, own, run.timeout);
    if (control.rank() == root) {
      for (const Report &report : reports)
        if (first.empty())
          first = report.fault;
      const bool areWritten = std::ranges::all_of(reports, &Report::isWritten);
      if (areWritten && !first.empty())
        writer.giveUp(); // otherwise it waits for a part that never comes
      isDone = areWritten && writer.endsWithin(patience);
    }
    isDone = broadcastValue(control, root, isDone, run.timeout);
  }
  reportCheckpoint(run, writer.finish(first));
}

void chimera::runtime::runSegments(const TrainingRun &run, Control &control,
                                   Interpreter &interpreter, Status &status,
                                   CheckpointWriter *writer,
                                   const Interpreter::OnStep &onStep,
                                   StepGate &gate,
                                   const std::function<void()> &afterSteps,
                                   const std::function<std::string()> &fault) {
  const uint64_t every = writer ? run.checkpoints->every : 0;
  const std::vector<CheckpointPart> parts =
      checkpointParts(run.program, control.rank());
  if (evaluatesAtStart(run))
    interpreter.evaluate();
  bool isFirst = true;
  for (uint64_t step = run.firstStep;;) {
    const uint64_t end = segmentEnd(step, run.steps, every);
    gate.forget();
    interpreter.run(end - step, onStep);
    const bool hasRun = interpreter.stepsRun() > step;
    step = interpreter.stepsRun();
    // With a flush, a segment that ended early has already asked about `step`.
    // If the answer is Save, the checkpoint is written below.
    const bool hasAsked =
        step < end && run.program.updates == program::Updates::Flush;
    const bool stops = step == run.steps ||
                       gate.lastDecision() == StepDecision::Stop ||
                       (!hasAsked && !gate.mayBegin(step) &&
                        gate.lastDecision() == StepDecision::Stop);
    // A run that continues from the checkpoint of this step begins with the
    // next one. So this step is evaluated before its checkpoint.
    if (!stops && hasRun && run.evaluation.isDueAfter(step))
      interpreter.evaluate();
    // A run of no steps writes the state with which a training would begin.
    const bool isStart = run.steps == 0 && run.checkpoints &&
                         run.checkpoints->resumedFrom.empty();
    if (writer && (hasRun || isStart)) {
      if (afterSteps)
        afterSteps();
      status.enter(Status::Saving); // for an unlimited time
      if (!std::exchange(isFirst, false))
        finishCheckpoint(run, control, *writer);
      beginCheckpoint(interpreter, *writer, parts, fault());
    }
    if (stops)
      return;
  }
}
