//===- Interpreter.cpp - Runs one worker's instructions -------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/interpreter/Interpreter.h"

#include "runtime/interpreter/ArenaUse.h"
#include "runtime/interpreter/Scale.h"

#include <algorithm>
#include <cstring>
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

void copyBytes(ConstBytes from, Bytes to) {
  std::copy(from.begin(), from.end(), to.begin());
}

Block allocate(uint64_t bytes) try {
  Block block = makeBlock(bytes);
  // Touches every page now, so that the first step is no slower than others.
  std::memset(block.get(), 0, blockBytes(bytes));
  return block;
} catch (const std::bad_alloc &) {
  throw std::runtime_error("cannot allocate " + std::to_string(bytes) +
                           " bytes of the worker's memory");
}

/// Whether an instruction may take long without calling the transport.
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

std::vector<ReduceGroup>
chimera::runtime::groupsOf(const program::ProgramT &program) {
  auto workers = static_cast<uint32_t>(program.workers.size());
  std::vector<ReduceGroup> groups;
  for (const auto &communicator : program.communicators) {
    ReduceGroup &group = groups.emplace_back();
    group.id = static_cast<uint32_t>(groups.size() - 1);
    for (uint32_t c = 0; c < program.data_parallel; ++c)
      for (const program::Contribution &summand : communicator->contributions)
        group.contributions.push_back(c * workers + summand.worker());
  }
  return groups;
}

Interpreter::Interpreter(const program::ProgramT &program,
                         std::span<const ReduceGroup> groups,
                         const StageFactory &factory, DataSource &data,
                         Transport &transport, Status &status,
                         const Options &options)
    : program(program), groups(groups),
      worker(*program.workers.at(transport.rank() % program.workers.size())),
      options(options), data(data), transport(transport), status(status),
      copy(transport.rank() / static_cast<uint32_t>(program.workers.size())),
      firstRank(copy * static_cast<uint32_t>(program.workers.size())),
      pieces(program), blocks(blocksOf(worker)) {
  status.enter(Status::Starting);
  findRecomputes();
  for (uint64_t bytes : blocks.bytes) {
    arena.push_back(allocate(bytes));
    allocated += blockBytes(bytes);
  }
  handsOver = findHandOvers(program, worker, blocks);
  stashes.resize(worker.buffers.size());
  places.resize(worker.buffers.size());
  std::iota(places.begin(), places.end(), 0);
  requests.resize(worker.instructions.size());

  std::optional<ElementType> weightType, lossType;
  for (const program::State &state : worker.states) {
    std::unique_ptr<Stage> stage = factory(program, state.stage());
    stage->initialize(bytesOf(state.weights()),
                      bytesOf(state.optimizer_state()));
    weightType = stage->weightType();
    lossType = stage->lossType();
    stages[{state.pipeline(), state.stage()}] = std::move(stage);
  }

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

Stage &Interpreter::stageOf(const Instruction &instruction) {
  return *stages.at({instruction.pipeline(), instruction.stage()});
}

void Interpreter::run(uint64_t steps, const OnStep &onStep) {
  begin(steps, onStep);
  while (next())
    advance();
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
      onStep(step, loss);
      ++step;
      if (step < steps && options.mayBegin && !options.mayBegin(step))
        steps = flushes ? step : step + 1;
      if (step == steps)
        return;
    }
    inPrologue = false;
    loss.reset();
    if (flushes || step + 1 < steps)
      enter(worker.body_begin, worker.body_end);
    else
      enter(worker.body_end, static_cast<uint32_t>(worker.instructions.size()));
  }
}

void Interpreter::advance() {
  const Instruction &instruction = worker.instructions[index];
  status.at(step, index);
  if (computes(instruction.opcode()))
    transport.computing();
  if (options.profile)
    executeTimed(instruction);
  else
    executeOne(instruction, index, step);
  if (index + 1 == groupEnd) {
    transport.endGroup();
    groupEnd = 0;
  }
  uint64_t stashAfter = stashBytes();
  uint64_t stash = std::max(stashBefore, stashAfter);
  peakStash = std::max(peakStash, stash);
  peak = std::max(peak, arenaInUse[index] + stash);
  stashBefore = stashAfter;
  ++executed;
  ++index;
  leaveSections();
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
  case Opcode::ZeroGradient: {
    Bytes gradient = bytesOf(out[0]);
    std::fill(gradient.begin(), gradient.end(), std::byte(0));
    return;
  }
  case Opcode::Forward:
    return forward(instruction, step);
  case Opcode::Recompute:
    return recompute(instruction, step);
  case Opcode::Backward:
    return stageOf(instruction)
        .backward(microBatch, std::move(stashOf(in[0])), bytesOf(in[1]),
                  bytesOf(in[2]), bytesOf(out[0]), optional(out, 1));
  case Opcode::InputGradient:
    stashOf(out[0]) =
        stageOf(instruction)
            .inputGradient(microBatch, std::move(stashOf(in[0])),
                           bytesOf(in[1]), bytesOf(in[2]), optional(out, 1));
    return;
  case Opcode::WeightGradient:
    return stageOf(instruction)
        .weightGradient(microBatch, std::move(stashOf(in[0])), bytesOf(in[1]),
                        bytesOf(out[0]));
  case Opcode::PostSend:
  case Opcode::PostRecv:
    return post(instruction, index);
  case Opcode::Group:
    transport.beginGroup();
    groupEnd = index + 1 + instruction.target();
    return;
  case Opcode::Wait:
    transport.wait(std::move(requests[instruction.target()]), options.timeout);
    return finishWait(worker.instructions[instruction.target()]);
  case Opcode::AllReduceStart:
    return startAllReduce(instruction, index);
  case Opcode::OptimizerStep:
    return update(instruction, step);
  case Opcode::Split:
  case Opcode::Join:
    return; // the same bytes under other numbers
  case Opcode::Copy:
    return copyBytes(bytesOf(in[0]), bytesOf(out[0]));
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
    data.load(instruction.kind(),
              pieceOf(step, instruction.micro_batch() + k, 0, 1),
              slice(all, k, count));
}

void Interpreter::forward(const Instruction &instruction, uint64_t step) {
  std::span<const uint32_t> in = program::operandsOf(worker, instruction);
  std::span<const uint32_t> out = program::resultsOf(worker, instruction);
  Stage &stage = stageOf(instruction);
  bool last = instruction.stage() + size_t(1) == program.stages.size();
  uint32_t count = instruction.micro_batches();
  uint32_t parts = pieces.partsOf(instruction.micro_batch());
  uint64_t cuts = uint64_t(count) * parts;
  Bytes input = bytesOf(in[0]);
  Bytes labels = last ? bytesOf(in[2]) : Bytes();
  size_t nextStash = last ? count : 1;
  for (uint32_t k = 0; k < count; ++k) {
    uint32_t m = instruction.micro_batch() + k;
    Bytes loss = last ? bytesOf(out[k]) : Bytes();
    // A micro-batch that is not cut has one share: its loss.
    if (last && parts > 1)
      shares.resize(loss.size() * parts);
    for (uint32_t part = 0; part < parts; ++part) {
      uint64_t cut = uint64_t(k) * parts + part;
      Bytes output = !last       ? slice(bytesOf(out[0]), cut, cuts)
                     : parts > 1 ? slice(Bytes(shares), part, parts)
                                 : loss;
      bool again = recomputed[instruction.stage() * pieces.count() +
                              pieces.numberOf(m, part)];
      std::unique_ptr<Stash> stash =
          stage.forward(pieceOf(step, m, part, parts), slice(input, cut, cuts),
                        slice(labels, cut, cuts), bytesOf(in[1]), output,
                        again ? Wanted::Output : Wanted::Both);
      if (!again)
        stashOf(out[nextStash++]) = std::move(stash);
    }
    if (last && parts > 1)
      addShares(stage.lossType(), shares, parts, loss);
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
  Bytes labels = in.size() > 2 ? bytesOf(in[2]) : Bytes();
  stashOf(program::resultsOf(worker, instruction)[0]) =
      stageOf(instruction)
          .forward(pieceOf(step, m, instruction.part(), instruction.parts()),
                   slice(bytesOf(in[0]), cut, cuts), slice(labels, cut, cuts),
                   bytesOf(in[1]), {}, Wanted::Stash);
}

void Interpreter::post(const Instruction &instruction, uint32_t index) {
  bool isSend = instruction.opcode() == Opcode::PostSend;
  uint32_t peer = rankOf(instruction.target());
  uint32_t buffer = (isSend ? program::operandsOf(worker, instruction)
                            : program::resultsOf(worker, instruction))[0];
  Bytes bytes = bytesOf(buffer);
  if (handsOver[index]) {
    Block &memory = arena[blocks.places[buffer].block];
    requests[index] = isSend ? transport.handOver(peer, memory, bytes.size())
                             : transport.takeOver(peer, memory, bytes.size());
    return;
  }
  requests[index] = isSend ? transport.postSend(peer, bytes)
                           : transport.postReceive(peer, bytes);
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
    copyBytes(bytesOf(in[0]), bytesOf(out[0]));
  stageOf(instruction)
      .optimizerStep(program::updateOf(program, instruction, step), scale,
                     bytesOf(in[2]), bytesOf(out[0]), bytesOf(out[1]));
}

void Interpreter::startAllReduce(const Instruction &instruction,
                                 uint32_t index) {
  std::vector<ConstBytes> contributions;
  for (uint32_t buffer : program::operandsOf(worker, instruction))
    contributions.push_back(bytesOf(buffer));
  requests[index] = transport.startAllReduce(
      groups[instruction.target()], reduceTypes[instruction.target()],
      std::move(contributions),
      bytesOf(program::resultsOf(worker, instruction)[0]));
}

void Interpreter::finishWait(const Instruction &waited) {
  if (waited.opcode() != Opcode::AllReduceStart ||
      waited.kind() != ValueKind::Loss)
    return;
  loss = readLoss(bytesOf(program::resultsOf(worker, waited)[0]),
                  reduceTypes[waited.target()],
                  static_cast<uint64_t>(program.micro_batches) *
                      program.data_parallel);
}

void Interpreter::keepGradient(const Instruction &instruction, ConstBytes sum,
                               double scale) {
  std::vector<std::byte> &copy =
      kept[{instruction.pipeline(), instruction.stage()}];
  copy.assign(sum.begin(), sum.end());
  scaleElements(stageOf(instruction).weightType(), copy, scale);
}

Replicas Interpreter::weights() const {
  Replicas replicas;
  for (const program::State &state : worker.states)
    replicas[{state.pipeline(), state.stage()}] = bytesOf(state.weights());
  return replicas;
}

Replicas Interpreter::gradients() const {
  Replicas replicas;
  for (const auto &[key, bytes] : kept)
    replicas[key] = bytes;
  return replicas;
}
