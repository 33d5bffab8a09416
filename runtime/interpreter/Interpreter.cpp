//===- Interpreter.cpp - Runs one worker's instructions -------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/interpreter/Interpreter.h"

#include "runtime/interpreter/ArenaUse.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>

using namespace chimera;
using namespace chimera::runtime;
using program::Instruction;
using program::Opcode;
using program::ValueKind;

namespace {
/// The k-th of `count` equal slices.
template <typename AnyBytes>
AnyBytes slice(AnyBytes bytes, uint64_t k, uint64_t count) {
  size_t size = bytes.size() / count;
  return bytes.subspan(k * size, size);
}

Block allocate(Device &device, uint64_t bytes, uint64_t alignment) try {
  return device.allocate(bytes, alignment);
} catch (const std::bad_alloc &) {
  throw std::runtime_error("cannot allocate " + std::to_string(bytes) +
                           " bytes of the worker's memory");
}

/// The bytes of a loss on the host: one element of any type.
constexpr uint64_t kLossBytes = 8;

/// Whether an instruction may take long without calling the channels.
bool computes(Opcode opcode) {
  switch (opcode) {
  case Opcode::Load:
  case Opcode::ZeroGradient:
  case Opcode::Forward:
  case Opcode::Recompute:
  case Opcode::Backward:
  case Opcode::InputGradient:
  case Opcode::WeightGradient:
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
} // namespace

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
  findRecomputes();
  for (uint64_t bytes : blocks.bytes) {
    arena.push_back(allocate(device, bytes, program.buffer_alignment));
    allocated += blockBytes(bytes, program.buffer_alignment);
  }
  // Exchanged at once: no device that executes later may still use the block.
  handsOver = device.executesAtOnce()
                  ? findHandOvers(program, worker, blocks)
                  : std::vector<bool>(worker.instructions.size());
  stashes.resize(worker.buffers.size());
  places.resize(worker.buffers.size());
  std::iota(places.begin(), places.end(), 0);
  requests.resize(worker.instructions.size());
  for (size_t i = 0; i < kMostAhead + 2; ++i)
    losses.push_back(makeBlock(kLossBytes));
  uint32_t parts = 1;
  for (const auto &pipeline : program.pipelines)
    parts = std::max(parts, pipeline->backward_parts);
  shares = allocate(device, parts * kLossBytes, program.buffer_alignment);

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
      lastUses.note(buffer, true, initialized);

  for (const auto &communicator : program.communicators)
    reduceTypes.push_back(
        (communicator->kind == ValueKind::Loss ? lossType : weightType)
            .value_or(ElementType::UInt64));
  arenaInUse = arenaBytesInUse(worker);
  if (options.meter)
    meterStart = options.meter->currentBytes();
}

Interpreter::~Interpreter() {
  requests.clear();
  compute.reset(); // nothing on it may use stashes and stages any more
  stashes.clear();
}

void Interpreter::findRecomputes() {
  recomputed.resize(program.stages.size() * pieces.count());
  for (const Instruction &instruction : worker.instructions)
    if (instruction.opcode() == Opcode::Recompute)
      recomputed[instruction.stage() * pieces.count() +
                 pieces.numberOf(instruction.micro_batch(),
                                 instruction.part())] = true;
}

MicroBatch Interpreter::pieceOf(uint64_t step, uint32_t m, uint32_t part,
                                uint32_t parts) const {
  // Without a flush N + m is the number of micro-batch m of the next step.
  return {step + m / program.micro_batches,
          static_cast<uint64_t>(copy) * program.micro_batches +
              m % program.micro_batches,
          part, parts};
}

uint64_t Interpreter::stashBytes() const {
  if (!options.meter)
    return 0;
  return static_cast<uint64_t>(
      std::max<int64_t>(0, options.meter->currentBytes() - meterStart));
}

Bytes Interpreter::bytesOf(uint32_t buffer) const {
  Blocks::Place place = blocks.places[places[buffer]];
  return {arena[place.block].get() + place.offset,
          worker.buffers[places[buffer]].bytes()};
}

std::unique_ptr<Stash> &Interpreter::stashOf(uint32_t buffer) {
  return stashes[places[buffer]];
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
  steps = count;
  status.at(0, 0);
  status.enter(Status::Running);
  if (steps == 0)
    return;
  inPrologue = true;
  if (options.profile)
    stepBegin = steadyNanoseconds();
  enter(0, worker.body_begin);
  leaveSections();
}

std::optional<Interpreter::Position> Interpreter::next() const {
  if (step == steps)
    return std::nullopt;
  return Position{step, index};
}

void Interpreter::enter(uint32_t sectionBegin, uint32_t sectionEnd) {
  index = sectionBegin;
  end = sectionEnd;
  stashBefore = stashBytes();
}

/// Goes on to the next section with an instruction where this one has no more.
void Interpreter::leaveSections() {
  bool flushes = program.updates == program::Updates::Flush;
  while (index == end) {
    if (!inPrologue) {
      if (options.profile) {
        int64_t stepEnd = steadyNanoseconds();
        options.profile->addStep(stepEnd - std::exchange(stepBegin, stepEnd));
      }
      endStep();
      ++step;
      if (step < steps && options.mayBegin && !options.mayBegin(step))
        steps = flushes ? step : step + 1;
      if (step == steps)
        return;
    }
    inPrologue = false;
    lossOfStep.reset();
    if (flushes || step + 1 < steps)
      enter(worker.body_begin, worker.body_end);
    else
      enter(worker.body_end, static_cast<uint32_t>(worker.instructions.size()));
  }
}

bool Interpreter::isTooFarAhead() const {
  return ended.size() > kMostAhead && !device.isDone(ended.front().end);
}

void Interpreter::endStep() {
  ended.push_back({step, lossOfStep, compute->record()});
  // Those that have ended by now, without waiting.
  tellOfSteps(SIZE_MAX);
}

/// Waits until no more than so many steps are not known to have ended.
void Interpreter::tellOfSteps(size_t mostAhead) {
  while (!ended.empty() &&
         (ended.size() > mostAhead || device.isDone(ended.front().end))) {
    device.waitFor(ended.front().end, options.timeout);
    Ended first = ended.front();
    ended.pop_front();
    std::optional<Loss> loss;
    if (first.lossType)
      loss = readLoss({losses[first.step % losses.size()].get(), kLossBytes},
                      *first.lossType,
                      static_cast<uint64_t>(program.micro_batches) *
                          program.data_parallel);
    onStep(first.step, loss);
  }
}

void Interpreter::finish() { tellOfSteps(0); }

void Interpreter::advance() {
  tellOfSteps(kMostAhead);
  const Instruction &instruction = worker.instructions[index];
  status.at(step, index);
  device.enter(step, index);
  uint64_t blocksBefore = device.hostBlocks();
  if (computes(instruction.opcode()))
    channels.computing();
  if (options.profile)
    executeTimed(instruction);
  else
    executeOne(instruction, index, step);
  if (index + 1 == groupEnd) {
    channels.endGroup();
    groupEnd = 0;
  }
  if (!device.executesAtOnce())
    noteUses(instruction);
  blocksInSteps += device.hostBlocks() - blocksBefore;
  uint64_t stashAfter = stashBytes();
  uint64_t stash = std::max(stashBefore, stashAfter);
  peakStash = std::max(peakStash, stash);
  peak = std::max(peak, arenaInUse[index] + stash);
  stashBefore = stashAfter;
  ++executed;
  ++index;
  leaveSections();
}

/// Remembers which memory the compute queue has used for an instruction. A wait
/// uses what the operation that it completes has used.
void Interpreter::noteUses(const Instruction &instruction) {
  const Instruction *used = &instruction;
  switch (instruction.opcode()) {
  case Opcode::Wait:
    used = &worker.instructions[instruction.target()];
    break;
  case Opcode::PostSend:
  case Opcode::PostRecv:
  case Opcode::Group:
  case Opcode::AllReduceStart:
  case Opcode::Split:
  case Opcode::Join:
  case Opcode::Rename:
    return;
  default:
    break;
  }
  Event event = compute->record();
  for (uint32_t buffer : program::operandsOf(worker, *used))
    lastUses.note(places[buffer], false, event);
  for (uint32_t buffer : program::resultsOf(worker, *used))
    lastUses.note(places[buffer], true, event);
}

void Interpreter::executeTimed(const Instruction &instruction) {
  const Instruction *posted = instruction.opcode() == Opcode::Wait
                                  ? &worker.instructions[instruction.target()]
                                  : nullptr;
  int64_t begin = steadyNanoseconds();
  executeOne(instruction, index, step);
  options.profile->add(instruction, posted, steadyNanoseconds() - begin);
}

void Interpreter::executeOne(const Instruction &instruction, uint32_t index,
                             uint64_t step) {
  std::span<const uint32_t> in = program::operandsOf(worker, instruction);
  std::span<const uint32_t> out = program::resultsOf(worker, instruction);
  MicroBatch microBatch = pieceOf(step, instruction.micro_batch(),
                                  instruction.part(), instruction.parts());
  auto optional = [&](std::span<const uint32_t> buffers, size_t i) {
    return i < buffers.size() ? bytesOf(buffers[i]) : Bytes();
  };

  switch (instruction.opcode()) {
  case Opcode::Load:
    return load(instruction, step);
  case Opcode::ZeroGradient:
    return compute->zero(bytesOf(out[0]));
  case Opcode::Forward:
    return forward(instruction, step);
  case Opcode::Recompute:
    return recompute(instruction, step);
  case Opcode::Backward: {
    auto *stash = &stashOf(in[0]);
    ConstBytes outputGradient = bytesOf(in[1]), weights = bytesOf(in[2]);
    Bytes weightGradient = bytesOf(out[0]), inputGradient = optional(out, 1);
    return compute->launch(
        {reads(outputGradient), reads(weights), updates(weightGradient),
         writes(inputGradient)},
        [=, stage = stageOf(instruction)](const AddressMap &at) {
          stage->backward(microBatch, std::move(*stash), at(outputGradient),
                          at(weights), at(weightGradient), at(inputGradient));
        });
  }
  case Opcode::InputGradient: {
    auto *stash = &stashOf(in[0]), *rest = &stashOf(out[0]);
    ConstBytes outputGradient = bytesOf(in[1]), weights = bytesOf(in[2]);
    Bytes inputGradient = optional(out, 1);
    return compute->launch(
        {reads(outputGradient), reads(weights), writes(inputGradient)},
        [=, stage = stageOf(instruction)](const AddressMap &at) {
          *rest = stage->inputGradient(microBatch, std::move(*stash),
                                       at(outputGradient), at(weights),
                                       at(inputGradient));
        });
  }
  case Opcode::WeightGradient: {
    auto *stash = &stashOf(in[0]);
    ConstBytes weights = bytesOf(in[1]);
    Bytes weightGradient = bytesOf(out[0]);
    return compute->launch(
        {reads(weights), updates(weightGradient)},
        [=, stage = stageOf(instruction)](const AddressMap &at) {
          stage->weightGradient(microBatch, std::move(*stash), at(weights),
                                at(weightGradient));
        });
  }
  case Opcode::PostSend:
  case Opcode::PostRecv:
    return post(instruction, index);
  case Opcode::Group:
    channels.beginGroup();
    groupEnd = index + 1 + instruction.target();
    return;
  case Opcode::Wait:
    channels.wait(*compute, std::move(requests[instruction.target()]),
                  options.timeout);
    return finishWait(worker.instructions[instruction.target()]);
  case Opcode::AllReduceStart:
    return startAllReduce(instruction, index);
  case Opcode::OptimizerStep:
    return update(instruction, step);
  case Opcode::Split:
  case Opcode::Join:
    return; // the same bytes under other numbers
  case Opcode::Copy:
    return compute->copy(bytesOf(in[0]), bytesOf(out[0]));
  case Opcode::Rename: {
    std::vector<uint32_t> from;
    for (uint32_t buffer : in)
      from.push_back(places[buffer]);
    for (size_t i = 0; i < out.size(); ++i)
      places[out[i]] = from[i];
    return;
  }
  }
  throw std::invalid_argument(
      "expected a known opcode, got " +
      std::to_string(static_cast<unsigned>(instruction.opcode())));
}

void Interpreter::load(const Instruction &instruction, uint64_t step) {
  Bytes all = bytesOf(program::resultsOf(worker, instruction)[0]);
  uint32_t count = instruction.micro_batches();
  for (uint32_t k = 0; k < count; ++k)
    compute->load(slice(all, k, count), [&](Bytes host) {
      data.load(instruction.kind(),
                pieceOf(step, instruction.micro_batch() + k, 0, 1), host);
    });
}

void Interpreter::forward(const Instruction &instruction, uint64_t step) {
  std::span<const uint32_t> in = program::operandsOf(worker, instruction);
  std::span<const uint32_t> out = program::resultsOf(worker, instruction);
  Stage *stage = stageOf(instruction);
  bool last = instruction.stage() + size_t(1) == program.stages.size();
  uint32_t count = instruction.micro_batches();
  uint32_t parts = pieces.partsOf(instruction.micro_batch());
  uint64_t cuts = uint64_t(count) * parts;
  ConstBytes weights = bytesOf(in[1]);
  size_t nextStash = last ? count : 1;
  for (uint32_t k = 0; k < count; ++k) {
    uint32_t m = instruction.micro_batch() + k;
    Bytes loss = last ? bytesOf(out[k]) : Bytes();
    // A micro-batch that is not cut has one share: its loss.
    auto shareOf = [&](uint32_t part) {
      return Bytes(shares.get() + part * loss.size(), loss.size());
    };
    for (uint32_t part = 0; part < parts; ++part) {
      uint64_t cut = uint64_t(k) * parts + part;
      ConstBytes input = slice(bytesOf(in[0]), cut, cuts);
      ConstBytes labels =
          last ? slice(bytesOf(in[2]), cut, cuts) : ConstBytes();
      Bytes output = !last       ? slice(bytesOf(out[0]), cut, cuts)
                     : parts > 1 ? shareOf(part)
                                 : loss;
      bool again = recomputed[instruction.stage() * pieces.count() +
                              pieces.numberOf(m, part)];
      auto *stash = again ? nullptr : &stashOf(out[nextStash++]);
      compute->launch(
          {reads(input), reads(labels), reads(weights), writes(output)},
          [=, piece = pieceOf(step, m, part, parts)](const AddressMap &at) {
            auto made = stage->forward(piece, at(input), at(labels),
                                       at(weights), at(output),
                                       stash ? Wanted::Both : Wanted::Output);
            if (stash)
              *stash = std::move(made);
          });
    }
    if (last && parts > 1) {
      std::vector<ConstBytes> summands;
      for (uint32_t part = 0; part < parts; ++part)
        summands.push_back(shareOf(part));
      compute->fold(stage->lossType(), std::move(summands), loss);
    }
  }
}

void Interpreter::recompute(const Instruction &instruction, uint64_t step) {
  std::span<const uint32_t> in = program::operandsOf(worker, instruction);
  uint32_t m = instruction.micro_batch();
  program::Range range = pieces.forwardOf(m);
  uint64_t cuts = uint64_t(range.count) * instruction.parts();
  uint64_t cut =
      uint64_t(pieces.inStep(m) - range.first) * instruction.parts() +
      instruction.part();
  ConstBytes input = slice(bytesOf(in[0]), cut, cuts);
  ConstBytes labels =
      in.size() > 2 ? slice(bytesOf(in[2]), cut, cuts) : ConstBytes();
  ConstBytes weights = bytesOf(in[1]);
  auto *stash = &stashOf(program::resultsOf(worker, instruction)[0]);
  MicroBatch piece = pieceOf(step, m, instruction.part(), instruction.parts());
  compute->launch({reads(input), reads(labels), reads(weights)},
                  [=, stage = stageOf(instruction)](const AddressMap &at) {
                    *stash = stage->forward(piece, at(input), at(labels),
                                            at(weights), {}, Wanted::Stash);
                  });
}

void Interpreter::post(const Instruction &instruction, uint32_t index) {
  bool isSend = instruction.opcode() == Opcode::PostSend;
  uint32_t peer = rankOf(instruction.target());
  uint32_t buffer = (isSend ? program::operandsOf(worker, instruction)
                            : program::resultsOf(worker, instruction))[0];
  Bytes bytes = bytesOf(buffer);
  if (handsOver[index]) {
    Block &memory = arena[blocks.places[buffer].block];
    requests[index] = isSend ? channels.handOver(peer, memory, bytes.size())
                             : channels.takeOver(peer, memory, bytes.size());
    return;
  }
  requests[index] =
      isSend
          ? channels.postSend(peer, bytes, lastUses.lastWrite(places[buffer]))
          : channels.postReceive(peer, bytes, lastUses.lastUse(places[buffer]));
}

void Interpreter::update(const Instruction &instruction, uint64_t step) {
  std::span<const uint32_t> in = program::operandsOf(worker, instruction);
  std::span<const uint32_t> out = program::resultsOf(worker, instruction);
  double scale = gradientScale(program, instruction.micro_batches());
  // Any step may turn out to be the last.
  if (options.keepGradients)
    keepGradient(instruction, bytesOf(in[2]), scale);
  // Where the old weights are still needed, the new ones have a buffer of their
  // own.
  if (out[0] != in[0])
    compute->copy(bytesOf(in[0]), bytesOf(out[0]));
  ConstBytes gradient = bytesOf(in[2]);
  Bytes weights = bytesOf(out[0]), optimizerState = bytesOf(out[1]);
  uint64_t number = program::updateOf(program, instruction, step);
  compute->launch({reads(gradient), updates(weights), updates(optimizerState)},
                  [=, stage = stageOf(instruction)](const AddressMap &at) {
                    stage->optimizerStep(number, scale, at(gradient),
                                         at(weights), at(optimizerState));
                  });
}

void Interpreter::startAllReduce(const Instruction &instruction,
                                 uint32_t index) {
  std::vector<ConstBytes> contributions;
  uint32_t result = program::resultsOf(worker, instruction)[0];
  Event after = lastUses.lastUse(places[result]);
  for (uint32_t buffer : program::operandsOf(worker, instruction)) {
    contributions.push_back(bytesOf(buffer));
    after = later(after, lastUses.lastWrite(places[buffer]));
  }
  requests[index] = channels.startAllReduce(
      groups[instruction.target()], reduceTypes[instruction.target()],
      std::move(contributions), bytesOf(result), after);
}

void Interpreter::finishWait(const Instruction &waited) {
  if (waited.opcode() != Opcode::AllReduceStart ||
      waited.kind() != ValueKind::Loss)
    return;
  lossOfStep = reduceTypes[waited.target()];
  ConstBytes sum = bytesOf(program::resultsOf(worker, waited)[0]);
  compute->readBack(sum, {losses[step % losses.size()].get(),
                          std::min<uint64_t>(sum.size(), kLossBytes)});
}

void Interpreter::keepGradient(const Instruction &instruction, ConstBytes sum,
                               double scale) {
  Kept &copy = kept[{instruction.pipeline(), instruction.stage()}];
  if (!copy.block) {
    copy.block = allocate(device, sum.size(), program.buffer_alignment);
    copy.bytes = {copy.block.get(), sum.size()};
  }
  compute->copy(sum, copy.bytes);
  compute->scale(stageOf(instruction)->weightType(), copy.bytes, scale);
}

Replicas Interpreter::weights() const {
  Replicas replicas;
  Event now = compute->record();
  for (const program::State &state : worker.states)
    replicas[{state.pipeline(), state.stage()}] =
        device.readBack(bytesOf(state.weights()), now, options.timeout);
  return replicas;
}

Replicas Interpreter::gradients() const {
  Replicas replicas;
  Event now = compute->record();
  for (const auto &[key, copy] : kept)
    replicas[key] = device.readBack(copy.bytes, now, options.timeout);
  return replicas;
}
