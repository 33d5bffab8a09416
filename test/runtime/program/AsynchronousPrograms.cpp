//===- AsynchronousPrograms.cpp - Valid programs without a flush ----------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/runtime/program/AsynchronousPrograms.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

namespace chimera::program {

namespace {

constexpr uint64_t kLossBytes = 8;

using Buffers = std::vector<uint32_t>;

/// A forward, and the values that it left for its backward.
struct InFlight {
  uint32_t stash, weights;
  uint16_t age; ///< updates of the weights between its read and its backward
};

class AsynchronousBuilder {
public:
  AsynchronousBuilder(const SampleOptions &options, Updates updates)
      : options(options), last(options.workers - 1),
        each(updates == Updates::EachMicroBatch),
        program(samplePipeline(options)), stages(options.workers) {
    program.updates = updates;
    program.schedule = each ? "pipedream" : "pipedream-2bw";
    for (auto &worker : program.workers)
      *worker = WorkerT();
    program.communicators.clear();
    for (uint32_t s = 0; s <= last; ++s)
      addCommunicator(ValueKind::WeightGradient, s, 1);
    addCommunicator(ValueKind::Loss, last, options.microBatches);
    for (uint32_t s = 0; s <= last; ++s)
      allocate(s);
  }

  ProgramT build() {
    for (section = Prologue; section <= Epilogue; ++section) {
      for (uint32_t s = 0; s <= last; ++s)
        begin(s);
      walk();
      for (uint32_t s = 0; s <= last; ++s)
        receiveLast(s);
      for (uint32_t s = 0; s <= last; ++s)
        end(s);
    }
    return std::move(program);
  }

private:
  enum Sections { Prologue, Body, Epilogue };
  struct Action {
    bool isForward;
    uint32_t microBatch; ///< counted from the start of the section's step
  };
  struct Message {
    uint32_t buffer, receivePost, sendPost;
  };
  /// The lifetime of a value in the present section (prologue, body or
  /// epilogue), as the indices of its first and last instruction.
  struct Life {
    uint32_t buffer, first, last;
  };
  struct StageState {
    uint32_t optimizer, gradient, sum;
    Buffers weights; ///< at the start of a section, oldest version first
    Buffers stashes; ///< at the start of a section, of the forwards in flight
    std::optional<uint32_t> activation; ///< at the start of a section, received
    Buffers versions; ///< buffers of the weights now, oldest first
    std::map<uint32_t, InFlight> inFlight;
    /// Messages to this stage, by micro-batch.
    std::map<uint32_t, Message> activations, gradients;
    std::vector<Action> actions;
    Buffers losses;
    size_t next = 0;
    bool hasSum = false; ///< whether `gradient` has a sum for the next update
    std::vector<Life> lives;
  };

  uint32_t ahead(uint32_t s) const { return last - s; }
  WorkerT &worker(uint32_t s) { return *program.workers[s]; }
  uint32_t now(uint32_t s) {
    return static_cast<uint32_t>(worker(s).instructions.size());
  }

  void addCommunicator(ValueKind kind, uint32_t stage, uint32_t keys) {
    auto communicator = std::make_unique<CommunicatorT>();
    communicator->kind = kind;
    for (uint32_t key = 0; key < keys; ++key)
      communicator->contributions.emplace_back(stage, key, stage);
    program.communicators.push_back(std::move(communicator));
  }

  uint32_t newBuffer(uint32_t s, ValueKind kind, uint64_t bytes) {
    WorkerT &stream = worker(s);
    uint64_t offset = 0;
    if (!isStash(kind)) {
      offset = stream.arena_bytes;
      stream.arena_bytes = (offset + bytes + 63) / 64 * 64;
    }
    stream.buffers.emplace_back(kind, offset, bytes);
    return static_cast<uint32_t>(stream.buffers.size() - 1);
  }

  void allocate(uint32_t s) {
    StageState &stage = stages[s];
    uint64_t bytes = program.stages[s].weights_bytes();
    uint32_t versions = each ? ahead(s) + 1 : 2;
    for (uint32_t v = 0; v < versions; ++v)
      stage.weights.push_back(newBuffer(s, ValueKind::Weights, bytes));
    for (uint32_t k = 0; k < ahead(s); ++k)
      stage.stashes.push_back(
          newBuffer(s, ValueKind::Stash, options.stashBytes));
    if (s > 0)
      stage.activation =
          newBuffer(s, ValueKind::Activation, options.boundaryBytes);
    stage.optimizer = newBuffer(s, ValueKind::OptimizerState,
                                program.stages[s].optimizer_bytes());
    stage.gradient = newBuffer(s, ValueKind::WeightGradient, bytes);
    stage.sum = newBuffer(s, ValueKind::WeightGradient, bytes);
    worker(s).states.emplace_back(0, static_cast<uint16_t>(s), stage.weights[0],
                                  stage.optimizer);
  }

  // Lifetimes, from which the peak is computed. A value, as defined in
  // program.fbs, lives from its definition (or the section's start) to its last
  // use (or the section's end).

  void define(uint32_t s, uint32_t buffer) {
    stages[s].lives.push_back({buffer, now(s), now(s)});
  }
  void use(uint32_t s, uint32_t buffer) {
    if (Life *life = lifeOf(s, buffer))
      life->last = now(s);
  }
  Life *lifeOf(uint32_t s, uint32_t buffer) {
    auto &lives = stages[s].lives;
    auto life = std::find_if(lives.rbegin(), lives.rend(),
                             [&](Life each) { return each.buffer == buffer; });
    return life == lives.rend() ? nullptr : &*life;
  }

  /// An input gradient replaces the stash `stash` by the stash `kept`. During
  /// the instruction, only the larger one counts.
  void replaceStash(uint32_t s, uint32_t stash, uint32_t kept) {
    const auto &buffers = worker(s).buffers;
    if (buffers[stash].bytes() <= buffers[kept].bytes())
      lifeOf(s, stash)->last = now(s) - 1;
    else
      lifeOf(s, kept)->first = now(s) + 1;
  }

  /// Appends an instruction and returns its index.
  uint32_t append(uint32_t s, Opcode opcode, ValueKind kind, uint32_t stage,
                  uint32_t microBatch, uint32_t microBatches, uint32_t target,
                  const Buffers &operands, const Buffers &results,
                  uint16_t age = 0) {
    WorkerT &stream = worker(s);
    for (uint32_t buffer : operands)
      use(s, buffer);
    for (uint32_t buffer : results)
      if (std::ranges::find(operands, buffer) == operands.end())
        define(s, buffer);
    if (opcode == Opcode::InputGradient)
      replaceStash(s, operands[0], results[0]);
    auto first = static_cast<uint32_t>(stream.operands.size());
    stream.operands.insert(stream.operands.end(), operands.begin(),
                           operands.end());
    stream.operands.insert(stream.operands.end(), results.begin(),
                           results.end());
    stream.instructions.emplace_back(
        opcode, kind, 0, 1, 0, static_cast<uint16_t>(stage), microBatch,
        microBatches, target, first, static_cast<uint16_t>(operands.size()),
        static_cast<uint16_t>(results.size()), age, s);
    return static_cast<uint32_t>(stream.instructions.size() - 1);
  }

  void wait(uint32_t s, uint32_t post) {
    const WorkerT &stream = worker(s);
    const Instruction posted = stream.instructions[post];
    for (uint32_t buffer : operandsOf(stream, posted))
      use(s, buffer);
    for (uint32_t buffer : resultsOf(stream, posted))
      use(s, buffer);
    append(s, Opcode::Wait, posted.kind(), posted.stage(), posted.micro_batch(),
           1, post, {}, {});
  }

  void begin(uint32_t s) {
    StageState &stage = stages[s];
    uint32_t d = ahead(s), count = options.microBatches;
    if (section == Body)
      worker(s).body_begin = now(s);
    if (section == Epilogue)
      worker(s).body_end = now(s);
    stage.lives.clear();
    stage.actions.clear();
    stage.losses.clear();
    stage.next = 0;
    stage.versions = stage.weights;
    stage.inFlight.clear();
    if (section == Prologue) {
      for (uint32_t m = 0; m < d; ++m)
        stage.actions.push_back({true, m});
      for (size_t v = 1; v < stage.weights.size(); ++v)
        append(s, Opcode::Copy, ValueKind::Weights, s, 0, 0, 0,
               {stage.weights[0]}, {stage.weights[v]});
      return;
    }
    for (uint32_t buffer : stage.weights)
      define(s, buffer);
    for (uint32_t m = 0; m < d; ++m) {
      define(s, stage.stashes[m]);
      stage.inFlight[m] = {stage.stashes[m], stage.weights[each ? m : 0], 0};
    }
    if (stage.activation) {
      define(s, *stage.activation);
      stage.activations[d] = {*stage.activation, UINT32_MAX, UINT32_MAX};
    }
    for (uint32_t j = 0; j < count; ++j) {
      if (section == Body || j + d < count)
        stage.actions.push_back({true, j + d});
      stage.actions.push_back({false, j});
    }
    stage.hasSum = false;
    if (!each && !options.firstBackwardOverwrites)
      zero(s);
  }

  void zero(uint32_t s) {
    stages[s].hasSum = true;
    append(s, Opcode::ZeroGradient, ValueKind::WeightGradient, s, 0, 1, 0, {},
           {stages[s].gradient});
  }

  /// Appends all actions of the section. An action follows the actions whose
  /// values it reads.
  void walk() {
    for (bool moved = true; moved;) {
      moved = false;
      for (uint32_t s = 0; s <= last; ++s) {
        StageState &stage = stages[s];
        while (stage.next < stage.actions.size()) {
          Action action = stage.actions[stage.next];
          uint32_t m = action.microBatch;
          if (action.isForward ? s > 0 && !stage.activations.contains(m)
                               : s < last && !stage.gradients.contains(m))
            break;
          action.isForward ? forward(s, m) : backward(s, m);
          ++stage.next;
          moved = true;
        }
      }
    }
  }

  void send(ValueKind kind, uint32_t from, uint32_t to, uint32_t microBatch,
            uint32_t buffer, std::map<uint32_t, Message> &messages) {
    Message &message = messages[microBatch];
    message.buffer = newBuffer(to, kind, options.boundaryBytes);
    message.receivePost = append(to, Opcode::PostRecv, kind, from, microBatch,
                                 1, from, {}, {message.buffer});
    message.sendPost = append(from, Opcode::PostSend, kind, from, microBatch, 1,
                              to, {buffer}, {});
  }

  /// Waits for a message at both workers. Does nothing if the message was
  /// received in the previous section. Returns the buffer of the receiver.
  uint32_t receive(const Message &message, uint32_t from, uint32_t to) {
    if (message.receivePost != UINT32_MAX) {
      wait(to, message.receivePost);
      wait(from, message.sendPost);
    }
    return message.buffer;
  }

  uint32_t load(uint32_t s, ValueKind kind, uint32_t m) {
    uint32_t buffer = newBuffer(s, kind, options.tokenBytes);
    append(s, Opcode::Load, kind, s, m, 1, 0, {}, {buffer});
    return buffer;
  }

  void forward(uint32_t s, uint32_t m) {
    StageState &stage = stages[s];
    uint32_t input;
    if (s == 0) {
      input = load(s, ValueKind::Tokens, m);
    } else {
      input = receive(stage.activations.at(m), s - 1, s);
      stage.activations.erase(m);
    }
    // PipeDream reads the newest version. In the prologue, all versions are
    // new, and forward m reads version m. PipeDream-2BW reads the version
    // before the newest throughout a step.
    bool isNext = m >= options.microBatches;
    size_t version = stage.versions.size() - 1;
    uint16_t age = 0;
    if (section == Prologue)
      version = each ? m : 0;
    else if (!each && !isNext)
      version = 0, age = 1;
    uint32_t weights = stage.versions[version];
    Buffers operands = {input, weights};
    if (s == last)
      operands.push_back(load(s, ValueKind::Labels, m));
    ValueKind kind = s == last ? ValueKind::Loss : ValueKind::Activation;
    uint32_t output =
        newBuffer(s, kind, s == last ? kLossBytes : options.boundaryBytes);
    uint32_t stash = newBuffer(s, ValueKind::Stash, options.stashBytes);
    append(s, Opcode::Forward, kind, s, m, 1, 0, operands, {output, stash},
           age);
    stage.inFlight[m] = {stash, weights, 0};
    if (s == last)
      stage.losses.push_back(output);
    else
      send(ValueKind::Activation, s, s + 1, m, output,
           stages[s + 1].activations);
  }

  void backward(uint32_t s, uint32_t m) {
    StageState &stage = stages[s];
    uint32_t incoming;
    if (s == last) {
      incoming = stage.losses[m];
    } else {
      incoming = receive(stage.gradients.at(m), s + 1, s);
      stage.gradients.erase(m);
    }
    InFlight flight = stage.inFlight.at(m);
    stage.inFlight.erase(m);
    auto age = static_cast<uint16_t>(each ? ahead(s) : 1);
    if (each)
      stage.hasSum = false;
    if (each && !options.firstBackwardOverwrites)
      zero(s);
    Buffers before; // the gradient buffer, if it has a sum
    if (std::exchange(stage.hasSum, true))
      before.push_back(stage.gradient);
    Buffers outgoing;
    if (s > 0)
      outgoing.push_back(
          newBuffer(s, ValueKind::Gradient, options.boundaryBytes));
    if (options.splitBackward) {
      Buffers results = {
          newBuffer(s, ValueKind::WeightStash, options.weightStashBytes)};
      results.insert(results.end(), outgoing.begin(), outgoing.end());
      append(s, Opcode::InputGradient, ValueKind::Stash, s, m, 1, 0,
             {flight.stash, incoming, flight.weights}, results, age);
      Buffers operands = {results[0], flight.weights};
      operands.insert(operands.end(), before.begin(), before.end());
      append(s, Opcode::WeightGradient, ValueKind::WeightGradient, s, m, 1, 0,
             operands, {stage.gradient}, age);
    } else {
      Buffers results = {stage.gradient};
      results.insert(results.end(), outgoing.begin(), outgoing.end());
      Buffers operands = {flight.stash, incoming, flight.weights};
      operands.insert(operands.end(), before.begin(), before.end());
      append(s, Opcode::Backward, ValueKind::WeightGradient, s, m, 1, 0,
             operands, results, age);
    }
    if (s > 0)
      send(ValueKind::Gradient, s, s - 1, m, outgoing[0],
           stages[s - 1].gradients);
    if (each)
      update(s, m, 1);
  }

  /// Sums the gradients of all data-parallel copies and updates the weights.
  /// The new version replaces the oldest one.
  void update(uint32_t s, uint32_t first, uint32_t count) {
    StageState &stage = stages[s];
    wait(s, append(s, Opcode::AllReduceStart, ValueKind::WeightGradient, s, 0,
                   1, s, {stage.gradient}, {stage.sum}));
    uint32_t newest = stage.versions.back(), oldest = stage.versions.front();
    append(s, Opcode::OptimizerStep, ValueKind::Weights, s, first, count, 0,
           {newest, stage.optimizer, stage.sum}, {oldest, stage.optimizer});
    std::ranges::rotate(stage.versions, stage.versions.begin() + 1);
  }

  /// No message may be in flight between two sections. So receive activations
  /// that are not used yet, and keep them.
  void receiveLast(uint32_t s) {
    for (auto &[microBatch, message] : stages[s].activations) {
      receive(message, s - 1, s);
      message.receivePost = UINT32_MAX;
    }
  }

  void end(uint32_t s) {
    StageState &stage = stages[s];
    uint32_t d = ahead(s);
    if (section != Prologue) {
      if (!each)
        update(s, 0, options.microBatches);
      if (s == last)
        wait(s, append(s, Opcode::AllReduceStart, ValueKind::Loss, s, 0, 1,
                       last + 1, stage.losses,
                       {newBuffer(s, ValueKind::Loss, kLossBytes)}));
    }
    // The values that the next section needs: the buffer that each one must
    // have in the next section, and its present buffer.
    std::map<uint32_t, uint32_t> sourceOf;
    if (section == Epilogue) {
      sourceOf[stage.weights[0]] = stage.versions.back();
    } else {
      uint32_t offset = section == Prologue ? 0 : options.microBatches;
      for (size_t v = 0; v < stage.weights.size(); ++v)
        sourceOf[stage.weights[v]] = stage.versions[v];
      for (uint32_t m = 0; m < d; ++m)
        sourceOf[stage.stashes[m]] = stage.inFlight.at(m + offset).stash;
      if (s > 0) {
        sourceOf[*stage.activation] = stage.activations.at(d + offset).buffer;
        stage.activations.clear();
      }
    }
    rename(s, sourceOf);
  }

  void rename(uint32_t s, std::map<uint32_t, uint32_t> sourceOf) {
    for (const auto &[to, from] : sourceOf)
      use(s, from);
    // Complete each chain of moves to a cycle: the buffer at the start of the
    // chain gets the content of the buffer at its end. So the renaming is a
    // permutation.
    std::map<uint32_t, uint32_t> targetOf;
    for (const auto &[to, from] : sourceOf)
      targetOf[from] = to;
    for (const auto &[from, to] : targetOf) {
      if (sourceOf.contains(from))
        continue;
      uint32_t end = to;
      while (targetOf.contains(end))
        end = targetOf[end];
      sourceOf[from] = end;
    }
    WorkerT &stream = worker(s);
    Buffers operands, results;
    for (const auto &[to, from] : sourceOf)
      if (to != from) {
        results.push_back(to);
        operands.push_back(from);
      }
    if (!operands.empty()) {
      auto first = static_cast<uint32_t>(stream.operands.size());
      stream.operands.insert(stream.operands.end(), operands.begin(),
                             operands.end());
      stream.operands.insert(stream.operands.end(), results.begin(),
                             results.end());
      stream.instructions.emplace_back(
          Opcode::Rename, ValueKind::Weights, 0, 1, 0, static_cast<uint16_t>(s),
          0, 0, 0, first, static_cast<uint16_t>(operands.size()),
          static_cast<uint16_t>(results.size()), 0, s);
    }
    measure(s);
  }

  /// Raises the worker's peak to the peak of the present section, if this is
  /// higher.
  void measure(uint32_t s) {
    WorkerT &stream = worker(s);
    uint32_t size = now(s);
    std::vector<int64_t> change(size + 1);
    auto bytesOf = [&](uint32_t buffer) {
      return static_cast<int64_t>(stream.buffers[buffer].bytes());
    };
    for (const Life &life : stages[s].lives) {
      if (life.buffer == stages[s].weights[0] ||
          life.buffer == stages[s].optimizer)
        continue;
      change[life.first] += bytesOf(life.buffer);
      change[std::min(life.last + 1, size)] -= bytesOf(life.buffer);
    }
    int64_t held = bytesOf(stages[s].weights[0]) + bytesOf(stages[s].optimizer);
    for (uint32_t i = 0; i < size; ++i) {
      held += change[i];
      if (static_cast<uint64_t>(held) > stream.peak_bytes) {
        stream.peak_bytes = static_cast<uint64_t>(held);
        stream.peak_instruction = i;
      }
    }
  }

  SampleOptions options;
  uint32_t last; ///< the last stage
  bool each;     ///< whether to update after each micro-batch
  ProgramT program;
  std::vector<StageState> stages;
  int section = Prologue;
};

} // namespace

ProgramT sampleAsynchronous(const SampleOptions &options, Updates updates) {
  return AsynchronousBuilder(options, updates).build();
}

} // namespace chimera::program
