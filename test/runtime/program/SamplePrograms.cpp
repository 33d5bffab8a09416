//===- SamplePrograms.cpp - Valid programs for tests ----------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/runtime/program/SamplePrograms.h"

#include "runtime/program/Layers.h"
#include "test/runtime/program/SampleDescription.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace chimera::program {

namespace {

/// The stage of a pipeline on which an action runs, and the micro-batches that
/// it covers, or the part of one micro-batch. An update has no micro-batches.
struct Place {
  uint32_t pipeline;
  uint32_t stage;
  uint32_t microBatch = 0;
  uint32_t count = 1;
  uint32_t part = 0;
  uint32_t parts = 1;

  bool operator<(const Place &other) const {
    return std::tie(pipeline, stage, microBatch, part) <
           std::tie(other.pipeline, other.stage, other.microBatch, other.part);
  }
  Place at(uint32_t other) const {
    Place place = *this;
    place.stage = other;
    return place;
  }
};

using Buffers = std::vector<uint32_t>;

class SampleBuilder {
public:
  explicit SampleBuilder(const SampleOptions &options)
      : options(options), stages(stagesOf(options)),
        program(describeSample(this->options)) {}

  ProgramT build() {
    for (uint32_t p = 0; p < program.pipelines.size(); ++p)
      for (uint32_t s = 0; s < stages; ++s)
        start({p, s});
    walkForwards();
    walkBackwards();
    reduceAndStep();
    for (auto &worker : program.workers)
      finish(*worker);
    return std::move(program);
  }

private:
  /// Appends the forwards: the k-th forward of each pipeline on all its stages,
  /// for k = 0, 1, ....
  void walkForwards() {
    uint32_t step = options.doubledForwards ? 2 : 1;
    for (uint32_t k = 0; k < options.microBatches; k += step)
      for (uint32_t p = 0; p < program.pipelines.size(); ++p) {
        const auto &own = program.pipelines[p]->micro_batches;
        if (k >= own.size())
          continue;
        auto count = std::min(step, static_cast<uint32_t>(own.size() - k));
        for (uint32_t s = 0; s < stages; ++s)
          forward({p, s, own[k], count});
      }
  }

  /// Appends the backwards: those of the k-th micro-batch of each pipeline on
  /// all its stages, for k = 0, 1, ....
  void walkBackwards() {
    uint32_t parts = options.backwardParts;
    for (uint32_t k = 0; k < options.microBatches; ++k)
      for (uint32_t p = 0; p < program.pipelines.size(); ++p)
        for (uint32_t part = 0; part < parts; ++part) {
          const auto &own = program.pipelines[p]->micro_batches;
          if (k >= own.size())
            continue;
          for (uint32_t s = stages; s-- > 0;)
            backward({p, s, own[k], 1, part, parts});
        }
  }

  uint32_t workerOf(Place place) const {
    return program.pipelines[place.pipeline]->workers[place.stage];
  }

  uint32_t newBuffer(uint32_t worker, ValueKind kind, uint64_t bytes) {
    WorkerT &stream = *program.workers[worker];
    uint64_t offset = 0;
    if (!isStash(kind)) {
      offset = stream.arena_bytes;
      stream.arena_bytes = (offset + bytes + 63) / 64 * 64;
    }
    stream.buffers.emplace_back(kind, offset, bytes);
    return static_cast<uint32_t>(stream.buffers.size() - 1);
  }

  /// Appends an instruction to `worker` and returns its index there.
  uint32_t append(uint32_t worker, Opcode opcode, ValueKind kind, Place place,
                  uint32_t target, const Buffers &operands,
                  const Buffers &results) {
    WorkerT &stream = *program.workers[worker];
    auto first = static_cast<uint32_t>(stream.operands.size());
    stream.operands.insert(stream.operands.end(), operands.begin(),
                           operands.end());
    stream.operands.insert(stream.operands.end(), results.begin(),
                           results.end());
    bool ofAll = opcode == Opcode::OptimizerStep;
    stream.instructions.emplace_back(
        opcode, kind, static_cast<uint8_t>(place.part),
        static_cast<uint8_t>(place.parts),
        static_cast<uint16_t>(place.pipeline),
        static_cast<uint16_t>(place.stage), place.microBatch,
        ofAll ? options.microBatches : place.count, target, first,
        static_cast<uint16_t>(operands.size()),
        static_cast<uint16_t>(results.size()), 0, place.stage);
    return static_cast<uint32_t>(stream.instructions.size() - 1);
  }

  void compute(Opcode opcode, ValueKind kind, Place place,
               const Buffers &operands, const Buffers &results) {
    append(workerOf(place), opcode, kind, place, 0, operands, results);
  }

  void start(Place place) {
    uint32_t worker = workerOf(place);
    const Stage &stage = program.stages[place.stage];
    uint32_t weights =
        newBuffer(worker, ValueKind::Weights, stage.weights_bytes());
    uint32_t optimizer =
        newBuffer(worker, ValueKind::OptimizerState, stage.optimizer_bytes());
    uint32_t gradient =
        newBuffer(worker, ValueKind::WeightGradient, stage.weights_bytes());
    program.workers[worker]->states.emplace_back(
        static_cast<uint16_t>(place.pipeline),
        static_cast<uint16_t>(place.stage), weights, optimizer);
    weightsOf[place] = weights;
    optimizerOf[place] = optimizer;
    gradientOf[place] = gradient;
    if (options.firstBackwardOverwrites &&
        !program.pipelines[place.pipeline]->micro_batches.empty())
      notBegun.insert(place);
    else
      compute(Opcode::ZeroGradient, ValueKind::WeightGradient, place, {},
              {gradient});
  }

  uint32_t load(ValueKind kind, Place place) {
    uint32_t buffer =
        newBuffer(workerOf(place), kind, options.tokenBytes * place.count);
    compute(Opcode::Load, kind, place, {}, {buffer});
    return buffer;
  }

  /// A message in flight. The send is posted directly after the action that
  /// makes the value. The receive is posted at the same time.
  struct Message {
    uint32_t source, sendPost;
    uint32_t destination, receivePost;
    uint32_t buffer; ///< of the receiver
  };

  /// Sends the value in `buffer` from the action `from` to the action `to`.
  /// Sends no message if both are on the same worker.
  void produce(ValueKind kind, Place from, Place to, uint32_t buffer) {
    Message &message = messages[{kind, to}];
    message.source = workerOf(from);
    message.destination = workerOf(to);
    message.buffer = buffer;
    if (message.source == message.destination)
      return;
    message.buffer = newBuffer(message.destination, kind, boundaryBytes(from));
    message.receivePost = append(message.destination, Opcode::PostRecv, kind,
                                 from, message.source, {}, {message.buffer});
    message.sendPost = append(message.source, Opcode::PostSend, kind, from,
                              message.destination, {buffer}, {});
  }

  /// The buffer of a value that the action `place` reads. If the value comes
  /// from another worker, first appends the wait for its receive.
  uint32_t consume(ValueKind kind, Place place) {
    const Message &message = messages.at({kind, place});
    if (message.source != message.destination)
      append(message.destination, Opcode::Wait, kind, place,
             message.receivePost, {}, {});
    return message.buffer;
  }

  /// If the action `place` has read a value from another worker, appends the
  /// wait for its send.
  void release(ValueKind kind, Place place) {
    const Message &message = messages.at({kind, place});
    if (message.source != message.destination)
      append(message.source, Opcode::Wait, kind, place, message.sendPost, {},
             {});
  }

  bool isLast(Place place) const { return place.stage + 1 == stages; }

  void forward(Place place) {
    uint32_t worker = workerOf(place);
    Place replica{place.pipeline, place.stage};
    Buffers operands = {place.stage == 0
                            ? load(ValueKind::Tokens, place)
                            : consume(ValueKind::Activation, place),
                        weightsOf[replica]};
    if (isLast(place))
      operands.push_back(load(ValueKind::Labels, place));
    Buffers results;
    if (!isLast(place))
      results.push_back(
          newBuffer(worker, ValueKind::Activation, boundaryBytes(place)));
    else
      for (uint32_t k = 0; k < place.count; ++k) {
        results.push_back(newBuffer(worker, ValueKind::Loss, kLossBytes));
        lossOf[place.microBatch + k] = {worker, results.back()};
      }
    bool isFirst = true;
    for (uint32_t k = 0; k < place.count; ++k)
      for (uint32_t part = 0; part < options.backwardParts; ++part) {
        Place piece{
            place.pipeline, place.stage,          place.microBatch + k, 1,
            part,           options.backwardParts};
        using Recompute = SampleOptions::Recompute;
        if (options.recompute == Recompute::None ||
            (options.recompute == Recompute::AllButFirst && isFirst))
          results.push_back(stashOf[piece] = newStash(worker));
        else
          inputsOf[piece] = operands;
        isFirst = false;
      }
    compute(Opcode::Forward,
            isLast(place) ? ValueKind::Loss : ValueKind::Activation, place,
            operands, results);
    if (!isLast(place))
      produce(ValueKind::Activation, place, place.at(place.stage + 1),
              results.front());
    if (place.stage > 0)
      release(ValueKind::Activation, place);
  }

  /// The size in bytes of the activation between two stages, for the
  /// micro-batches or the part that `place` covers.
  uint64_t boundaryBytes(Place place) const {
    return options.boundaryBytes * place.count / place.parts;
  }
  uint32_t newStash(uint32_t worker) {
    return newBuffer(worker, ValueKind::Stash,
                     options.stashBytes / options.backwardParts);
  }

  void backward(Place place) {
    uint32_t worker = workerOf(place);
    Place replica{place.pipeline, place.stage};
    uint32_t incoming = isLast(place) ? lossOf[place.microBatch].second
                                      : consume(ValueKind::Gradient, place);
    uint32_t weights = weightsOf[replica];
    uint32_t sum = gradientOf[replica];
    Buffers before; // the gradient buffer, if it has a sum
    if (notBegun.erase(replica) == 0)
      before.push_back(sum);
    if (auto inputs = inputsOf.find(place); inputs != inputsOf.end()) {
      stashOf[place] = newStash(worker);
      compute(Opcode::Recompute, ValueKind::Stash, place, inputs->second,
              {stashOf[place]});
    }
    Buffers outgoing;
    if (place.stage > 0)
      outgoing.push_back(
          newBuffer(worker, ValueKind::Gradient, boundaryBytes(place)));
    if (options.splitBackward) {
      uint32_t kept =
          newBuffer(worker, ValueKind::WeightStash,
                    options.weightStashBytes / options.backwardParts);
      Buffers results = {kept};
      results.insert(results.end(), outgoing.begin(), outgoing.end());
      compute(Opcode::InputGradient, ValueKind::Gradient, place,
              {stashOf[place], incoming, weights}, results);
      Buffers operands = {kept, weights};
      operands.insert(operands.end(), before.begin(), before.end());
      compute(Opcode::WeightGradient, ValueKind::WeightGradient, place,
              operands, {sum});
    } else {
      Buffers operands = {stashOf[place], incoming, weights};
      operands.insert(operands.end(), before.begin(), before.end());
      Buffers results = {sum};
      results.insert(results.end(), outgoing.begin(), outgoing.end());
      compute(Opcode::Backward, ValueKind::WeightGradient, place, operands,
              results);
    }
    if (place.stage > 0)
      produce(ValueKind::Gradient, place, place.at(place.stage - 1),
              outgoing.front());
    if (!isLast(place))
      release(ValueKind::Gradient, place);
  }

  struct Start {
    uint32_t index, sum;
  };

  /// Adds a communicator, and starts its all-reduce on every member. `given`
  /// has the buffer of each contribution.
  std::map<uint32_t, Start> reduce(ValueKind kind, uint32_t stage,
                                   uint64_t bytes,
                                   const std::vector<Contribution> &summands,
                                   const Buffers &given) {
    auto id = static_cast<uint32_t>(program.communicators.size());
    auto communicator = std::make_unique<CommunicatorT>();
    communicator->kind = kind;
    communicator->contributions = summands;
    program.communicators.push_back(std::move(communicator));
    std::map<uint32_t, Buffers> ofWorker;
    for (size_t i = 0; i < summands.size(); ++i)
      ofWorker[summands[i].worker()].push_back(given[i]);
    std::map<uint32_t, Start> starts;
    for (const auto &[worker, operands] : ofWorker) {
      uint32_t sum = newBuffer(worker, kind, bytes);
      uint32_t index = append(worker, Opcode::AllReduceStart, kind, {0, stage},
                              id, operands, {sum});
      starts[worker] = {index, sum};
    }
    return starts;
  }

  void reduceAndStep() {
    std::vector<std::map<uint32_t, Start>> starts;
    for (uint32_t s = 0; s < stages; ++s) {
      std::vector<Contribution> summands;
      Buffers given;
      for (uint32_t p = 0; p < program.pipelines.size(); ++p) {
        summands.emplace_back(workerOf({p, s}), p, s);
        given.push_back(gradientOf[{p, s}]);
      }
      starts.push_back(reduce(ValueKind::WeightGradient, s,
                              program.stages[s].weights_bytes(), summands,
                              given));
    }
    std::vector<Contribution> summands;
    Buffers given;
    for (const auto &[microBatch, loss] : lossOf) {
      summands.emplace_back(loss.first, microBatch, stages - 1);
      given.push_back(loss.second);
    }
    starts.push_back(
        reduce(ValueKind::Loss, stages - 1, kLossBytes, summands, given));
    std::map<uint32_t, Start> norms;
    if (options.clips)
      norms = reduceNorms(starts);
    for (uint32_t s = 0; s < stages; ++s) {
      if (!options.clips)
        awaitGradient(s, starts[s]);
      for (uint32_t p = 0; p < program.pipelines.size(); ++p) {
        Place place{p, s};
        Buffers updated = {weightsOf[place], optimizerOf[place]};
        Buffers operands = updated;
        operands.push_back(starts[s].at(workerOf(place)).sum);
        if (options.clips)
          operands.push_back(norms.at(workerOf(place)).sum);
        compute(Opcode::OptimizerStep, ValueKind::Weights, place, operands,
                updated);
      }
    }
    for (const auto &[worker, start] : starts.back())
      append(worker, Opcode::Wait, ValueKind::Loss, {0, stages - 1},
             start.index, {}, {});
  }

  void awaitGradient(uint32_t stage, const std::map<uint32_t, Start> &starts) {
    for (const auto &[worker, start] : starts)
      append(worker, Opcode::Wait, ValueKind::WeightGradient, {0, stage},
             start.index, {}, {});
  }

  /// Waits for the gradients, and sums the squared norms of all replicas.
  /// Returns the all-reduce of each worker. `gradients` is by stage.
  std::map<uint32_t, Start>
  reduceNorms(const std::vector<std::map<uint32_t, Start>> &gradients) {
    for (uint32_t s = 0; s < stages; ++s)
      awaitGradient(s, gradients[s]);
    std::vector<Contribution> summands;
    Buffers given;
    for (uint32_t p = 0; p < program.pipelines.size(); ++p)
      for (uint32_t s = 0; s < stages; ++s) {
        const uint32_t worker = workerOf({p, s});
        given.push_back(newBuffer(worker, ValueKind::SquaredNorm, kNormBytes));
        compute(Opcode::SquaredNorm, ValueKind::SquaredNorm, {p, s},
                {gradients[s].at(worker).sum}, {given.back()});
        summands.emplace_back(worker, p, s);
      }
    std::map<uint32_t, Start> starts =
        reduce(ValueKind::SquaredNorm, stages - 1, kNormBytes, summands, given);
    for (const auto &[worker, start] : starts)
      append(worker, Opcode::Wait, ValueKind::SquaredNorm, {0, stages - 1},
             start.index, {}, {});
    return starts;
  }

  /// Sets the sections and the stated memory of a worker. Every buffer has one
  /// value. So a buffer is live from the first to the last instruction that
  /// names it; a wait also names the buffers of its post. Of the two stashes of
  /// an input gradient, only the larger one counts.
  static void finish(WorkerT &worker) {
    worker.body_begin = 0;
    worker.body_end = static_cast<uint32_t>(worker.instructions.size());
    struct Range {
      uint32_t first = UINT32_MAX, last = 0;
    };
    std::vector<Range> live(worker.buffers.size());
    for (uint32_t i = 0; i < worker.body_end; ++i) {
      const Instruction *named = &worker.instructions[i];
      if (named->opcode() == Opcode::Wait)
        named = &worker.instructions[named->target()];
      auto touch = [&](uint32_t buffer) {
        live[buffer].first = std::min(live[buffer].first, i);
        live[buffer].last = std::max(live[buffer].last, i);
      };
      std::ranges::for_each(operandsOf(worker, *named), touch);
      std::ranges::for_each(resultsOf(worker, *named), touch);
      if (named->opcode() != Opcode::InputGradient)
        continue;
      uint32_t stash = operandsOf(worker, *named)[0];
      uint32_t kept = resultsOf(worker, *named)[0];
      if (worker.buffers[stash].bytes() <= worker.buffers[kept].bytes())
        live[stash].last = i - 1;
      else
        live[kept].first = i + 1;
    }
    for (const State &state : worker.states)
      live[state.weights()] =
          live[state.optimizer_state()] = {0, worker.body_end};
    std::vector<uint64_t> born(worker.body_end + 2), died(worker.body_end + 2);
    for (size_t b = 0; b < live.size(); ++b) {
      born[live[b].first] += worker.buffers[b].bytes();
      died[live[b].last + 1] += worker.buffers[b].bytes();
    }
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < worker.body_end; ++i) {
      bytes += born[i] - died[i];
      if (bytes > worker.peak_bytes) {
        worker.peak_bytes = bytes;
        worker.peak_instruction = i;
      }
    }
  }

  SampleOptions options;
  uint32_t stages; ///< of each pipeline
  ProgramT program;
  std::map<Place, uint32_t> weightsOf, optimizerOf, gradientOf, stashOf;
  std::set<Place> notBegun; ///< replicas whose gradient sum has no value yet
  /// Inputs of a forward, for its recomputes.
  std::map<Place, Buffers> inputsOf;
  std::map<uint32_t, std::pair<uint32_t, uint32_t>> lossOf;
  std::map<std::pair<ValueKind, Place>, Message> messages;
};

} // namespace

ProgramT samplePipeline(const SampleOptions &options) {
  return SampleBuilder(options).build();
}

} // namespace chimera::program
