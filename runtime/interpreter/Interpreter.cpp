//===- Interpreter.cpp - Runs one worker's instructions -------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/interpreter/Interpreter.h"

#include "runtime/interpreter/ArenaUse.h"
#include "runtime/interpreter/PlannedLoads.h"
#include "runtime/interpreter/Uses.h"
#include "runtime/model/Clipping.h"
#include "runtime/program/Layers.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <stdexcept>

using namespace chimera;
using namespace chimera::runtime;
using program::Instruction;
using program::Opcode;
using program::ValueKind;

bool Interpreter::computes(Opcode opcode) {
  switch (opcode) {
  case Opcode::Load:
  case Opcode::ZeroGradient:
  case Opcode::Forward:
  case Opcode::Recompute:
  case Opcode::Backward:
  case Opcode::InputGradient:
  case Opcode::WeightGradient:
  case Opcode::SquaredNorm:
  case Opcode::OptimizerStep:
  case Opcode::Copy:
    return true;
  case Opcode::PostSend:
  case Opcode::PostRecv:
  case Opcode::Group:
  case Opcode::Wait:
  case Opcode::AllReduceStart:
  case Opcode::Split:
  case Opcode::Join:
  case Opcode::Rename:
    break;
  }
  return false;
}

Block Interpreter::allocate(uint64_t bytes) const try {
  return device.allocate(bytes, program.buffer_alignment);
} catch (const std::bad_alloc &error) {
  throw std::runtime_error("cannot allocate " + std::to_string(bytes) +
                           " bytes of the worker's memory: " + error.what());
}

Interpreter::Interpreter(const program::ProgramT &program,
                         std::span<const ReduceGroup> groups,
                         const StageFactory &factory, DataSource &data,
                         Device &device, Channels &channels, Status &status,
                         const Options &options)
    : program(program), groups(groups),
      worker(*program.workers.at(channels.rank() % program.workers.size())),
      options(options), data(data), device(device), channels(channels),
      status(status),
      copy(channels.rank() / static_cast<uint32_t>(program.workers.size())),
      firstRank(copy * static_cast<uint32_t>(program.workers.size())),
      pieces(program), compute(device.makeQueue("compute")),
      blocks(blocksOf(program, worker)), lastUses(worker) {
  status.enter(Status::Starting);
  step = steps = options.firstStep; // none is left until `begin`
  findRecomputes();
  if (options.evaluation.data)
    findEvaluated();
  for (uint64_t bytes : blocks.bytes) {
    arena.push_back(allocate(bytes));
    allocated += blockBytes(bytes, program.buffer_alignment);
  }
  // An exchange of blocks takes effect on the host immediately. On an
  // asynchronous device, queued operations could still use the old block. So no
  // message is passed without a copy on such a device.
  isZeroCopy = device.isSynchronous()
                   ? findZeroCopyMessages(program, worker, blocks)
                   : std::vector<bool>(worker.instructions.size());
  stashes.resize(worker.buffers.size());
  memoryOf.resize(worker.buffers.size());
  std::iota(memoryOf.begin(), memoryOf.end(), 0);
  requests.resize(worker.instructions.size());
  for (size_t i = 0; i < kMaxStepsAhead + 2; ++i)
    losses.push_back(
        device.allocateHost(kLossBytes + uint64_t{program::kNormBytes}));
  uint32_t parts = 1;
  for (const auto &pipeline : program.pipelines)
    parts = std::max(parts, pipeline->backward_parts);
  shares = allocate(parts * kLossBytes);

  std::optional<ElementType> weightType, lossType;
  for (const program::State &state : worker.states) {
    Stage &stage = *(stages[{state.pipeline(), state.stage()}] =
                         factory(program, state.stage()));
    Bytes weights = bytesOf(state.weights());
    Bytes optimizerState = bytesOf(state.optimizer_state());
    compute->launch({writes(weights), writes(optimizerState)},
                    [&stage, weights, optimizerState](const AddressMap &at) {
                      stage.initialize(at(weights), at(optimizerState));
                    });
    weightType = stage.weightType();
    lossType = stage.lossType();
  }
  Event initialized = compute->record();
  for (const program::State &state : worker.states)
    for (uint32_t buffer : {state.weights(), state.optimizer_state()})
      lastUses.recordUse(buffer, true, initialized);

  for (const auto &communicator : program.communicators)
    reduceTypes.push_back((communicator->kind == ValueKind::WeightGradient
                               ? weightType
                               : lossType)
                              .value_or(ElementType::UInt64));
  expectLoads();
  makeErrorFlags();
  if (options.keepFinite)
    makeHaltFlags();
  if (options.keepGradients)
    for (const Instruction &instruction : worker.instructions)
      if (instruction.opcode() == Opcode::OptimizerStep)
        gradientCopyOf(instruction);
  arenaInUse = arenaBytesInUse(worker);
  if (options.meter)
    meterStart = options.meter->currentBytes();
}

Interpreter::~Interpreter() {
  requests.clear();
  compute.reset(); // waits for operations that use stashes and stages
  stashes.clear();
}

void Interpreter::findRecomputes() {
  recomputed.resize(program.stages.size() * pieces.pieceCount());
  for (const Instruction &instruction : worker.instructions)
    if (instruction.opcode() == Opcode::Recompute)
      recomputed[instruction.stage() * pieces.pieceCount() +
                 pieces.pieceNumberOf(instruction.micro_batch(),
                                      instruction.part())] = true;
}

MicroBatch Interpreter::pieceOf(uint64_t step, uint32_t m, uint32_t part,
                                uint32_t parts) const {
  return pieceOfStep(program, copy, step, m, part, parts);
}

uint64_t Interpreter::stashBytes() const {
  if (!options.meter)
    return 0;
  return static_cast<uint64_t>(
      std::max<int64_t>(0, options.meter->currentBytes() - meterStart));
}

Bytes Interpreter::bytesOf(uint32_t buffer) const {
  Blocks::Location location = blocks.locations[memoryOf[buffer]];
  return {arena[location.block].get() + location.offset,
          worker.buffers[memoryOf[buffer]].bytes()};
}

std::unique_ptr<Stash> &Interpreter::stashOf(uint32_t buffer) {
  return stashes[memoryOf[buffer]];
}

Stage *Interpreter::stageOf(const Instruction &instruction) {
  return stages.at({instruction.pipeline(), instruction.stage()}).get();
}

void Interpreter::run(uint64_t steps, const OnStep &onStep) {
  begin(steps, onStep);
  while (next())
    advance();
  finish();
}

void Interpreter::begin(uint64_t count, OnStep callback) {
  onStep = std::move(callback);
  steps = step + count;
  if (stepsOfTraining == 0)
    stepsOfTraining = options.steps > 0 ? options.steps : steps;
  stepBegin = status.setPosition(step, 0);
  waitedInStep = 0;
  status.enter(Status::Running);
  if (count == 0)
    return;
  readAhead();
  inPrologue = true;
  if (options.profile && !device.isSynchronous())
    stepBeginOnDevice = compute->recordTime();
  enterSection(0, worker.body_begin);
  leaveFinishedSections();
}

std::optional<Interpreter::Position> Interpreter::next() const {
  if (step == steps && !pass)
    return std::nullopt;
  return Position{step, index};
}

void Interpreter::enterSection(uint32_t sectionBegin, uint32_t sectionEnd) {
  index = sectionBegin;
  end = sectionEnd;
  stashBefore = stashBytes();
}

void Interpreter::leaveFinishedSections() {
  bool flushes = program.updates == program::Updates::Flush;
  while (index == end) {
    if (pass) {
      if (!endPass())
        continue;
      if (step == steps)
        return;
      status.enter(Status::Running);
    } else if (!inPrologue) {
      if (device.isSynchronous())
        measureStep();
      endStep();
      ++step;
      if (step < steps && options.mayBeginStep && !options.mayBeginStep(step))
        steps = flushes ? step : step + 1;
      if (step == steps)
        return;
      if (options.evaluation.isDueAfter(step)) {
        enterEvaluation();
        continue;
      }
    }
    inPrologue = false;
    lossOfStep.reset();
    hasNormOfStep = false;
    if (ahead)
      ahead->reach(step);
    if (flushes || step + 1 < steps)
      enterSection(worker.body_begin, worker.body_end);
    else
      enterSection(worker.body_end,
                   static_cast<uint32_t>(worker.instructions.size()));
  }
}

bool Interpreter::isTooFarAhead() const {
  return queuedSteps.size() > kMaxStepsAhead &&
         !device.isDone(queuedSteps.front().end);
}

void Interpreter::endStep() {
  errorFlags.copy(*compute, nextLoss);
  haltFlags.copy(*compute, nextLoss);
  queuedSteps.push_back(
      {step, pass, nextLoss++, lossOfStep, hasNormOfStep,
       options.profile ? compute->recordTime() : compute->record(),
       std::exchange(timed, {})});
  // Report steps that have ended, without waiting.
  reportSteps(SIZE_MAX);
}

/// Reports the queued steps that have ended on the device. Waits until at most
/// `mostAhead` queued steps have not ended.
void Interpreter::reportSteps(size_t mostAhead) {
  while (!queuedSteps.empty() && (queuedSteps.size() > mostAhead ||
                                  device.isDone(queuedSteps.front().end))) {
    device.waitFor(queuedSteps.front().end, options.timeout);
    QueuedStep first = std::move(queuedSteps.front());
    queuedSteps.pop_front();
    expectNoErrors(first);
    if (first.pass) {
      if (options.profile)
        stepBeginOnDevice = first.end;
      reportPass(first);
      continue;
    }
    if (options.profile && !device.isSynchronous())
      profileStep(first);
    if (options.trace && !device.isSynchronous())
      keepForTrace(first);
    noteHalts(first);
    onStep(first.step, lossOf(first));
  }
}

std::optional<Loss> Interpreter::lossOf(const QueuedStep &ofStep) const {
  if (!ofStep.lossType)
    return std::nullopt;
  const std::byte *host = losses[ofStep.losses % losses.size()].get();
  const double weight = totalWeight(program, data, ofStep.step, /*first=*/0,
                                    program.micro_batches);
  Loss loss = readLoss({host, kLossBytes}, *ofStep.lossType, weight);
  // Exact stages have no norm: their values are hashes.
  if (ofStep.hasNorm && ofStep.lossType == ElementType::Float64) {
    double square = 0;
    std::memcpy(&square, host + kLossBytes, sizeof square);
    loss.gradientNorm = gradientNorm(square, weight > 0 ? 1 / weight : 0);
  }
  return loss;
}

void Interpreter::finish() {
  reportSteps(0);
  if (!tracedOnDevice.empty())
    traceDevice();
}

void Interpreter::advance() {
  reportSteps(kMaxStepsAhead);
  const Instruction &instruction = worker.instructions[index];
  const int64_t now = status.setPosition(step, index);
  endWait(now);
  if (instruction.opcode() == Opcode::Wait && device.isSynchronous() && !pass)
    waitBegin = now;
  device.setInstruction(step, index);
  uint64_t blocksBefore = device.blockingWaitCount();
  if (computes(instruction.opcode()))
    channels.beginComputing();
  if (isTimed())
    executeTimed(instruction);
  else
    executeOne(instruction, index,
               pass ? *pass % options.evaluation.passes : step);
  if (index + 1 == groupEnd) {
    channels.endGroup();
    groupEnd = 0;
  }
  if (!device.isSynchronous())
    noteUses(instruction);
  blocksInSteps += device.blockingWaitCount() - blocksBefore;
  uint64_t stashAfter = stashBytes();
  uint64_t stash = std::max(stashBefore, stashAfter);
  peakStash = std::max(peakStash, stash);
  peak = std::max(peak, arenaInUse[index] + stash);
  stashBefore = stashAfter;
  ++executed;
  ++index;
  if (pass)
    skipToEvaluated();
  leaveFinishedSections();
}

/// Records that the compute queue uses the buffers of an instruction.
void Interpreter::noteUses(const Instruction &instruction) {
  switch (instruction.opcode()) {
  case Opcode::PostSend:
  case Opcode::PostRecv:
  case Opcode::Group:
  case Opcode::AllReduceStart:
  case Opcode::Split:
  case Opcode::Join:
  case Opcode::Rename:
    return; // the compute queue does not use their memory
  default:
    break;
  }
  Event event = compute->record();
  forEachUse(worker, instruction, [&](uint32_t buffer, Use use) {
    bool reads = use == Use::Read || use == Use::EndOfRead;
    lastUses.recordUse(memoryOf[buffer], !reads, event);
  });
}

void Interpreter::copyState(std::pair<uint32_t, uint32_t> key, Bytes parameters,
                            Bytes optimizer) const {
  const auto state =
      std::ranges::find_if(worker.states, [&](const program::State &each) {
        return each.pipeline() == key.first && each.stage() == key.second;
      });
  if (state == worker.states.end())
    throw std::out_of_range("expected a replica of this worker");
  compute->readBack(bytesOf(state->weights()).first(parameters.size()),
                    parameters);
  compute->readBack(bytesOf(state->optimizer_state()), optimizer);
  device.waitFor(compute->record(), options.timeout);
}

ReplicaBytes Interpreter::weights() const {
  ReplicaBytes replicas;
  Event now = compute->record();
  for (const program::State &state : worker.states)
    replicas[{state.pipeline(), state.stage()}] =
        device.readBack(bytesOf(state.weights()), now, options.timeout);
  return replicas;
}

ReplicaBytes Interpreter::gradients() const {
  ReplicaBytes replicas;
  Event now = compute->record();
  for (const auto &[key, copy] : gradientCopies)
    if (copy.isThere)
      replicas[key] = device.readBack(copy.bytes, now, options.timeout);
  return replicas;
}
