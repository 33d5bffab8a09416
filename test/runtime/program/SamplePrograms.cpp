//===- SamplePrograms.cpp - Valid programs for tests ----------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/runtime/program/SamplePrograms.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace chimera::program {

namespace {

constexpr uint64_t kLossBytes = 8;

/// Where an action is: pipeline, stage and (where it has one) micro-batch.
struct Place {
  uint32_t pipeline;
  uint32_t stage;
  uint32_t microBatch = 0;

  bool operator<(const Place &other) const {
    return std::tie(pipeline, stage, microBatch) <
           std::tie(other.pipeline, other.stage, other.microBatch);
  }
};

using Buffers = std::vector<uint32_t>;

class Builder {
public:
  explicit Builder(const SampleOptions &options) : options(options) {}

  ProgramT build() {
    describe();
    for (uint32_t p = 0; p < program.pipelines.size(); ++p)
      for (uint32_t s = 0; s < options.workers; ++s)
        start({p, s});
    walk([this](Place place) { forward(place); }, false);
    walk([this](Place place) { backward(place); }, true);
    reduceAndStep();
    for (auto &worker : program.workers)
      finish(*worker);
    return std::move(program);
  }

private:
  void describe() {
    program.producer = "samplePipeline";
    program.name = options.bidirectional ? "bidirectional" : "one-way";
    program.schedule = options.bidirectional ? "sample-bidirectional" : "gpipe";
    program.optimizer = std::make_unique<OptimizerT>();
    program.optimizer->name = "adamw";
    program.optimizer->learning_rate = 1e-3;
    program.optimizer->beta1 = 0.9;
    program.optimizer->beta2 = 0.999;
    program.optimizer->epsilon = 1e-8;
    program.data_type = DataType::Float64;
    program.micro_batch_size = 1;
    program.seed = 1;
    program.time_unit = "slot";
    program.micro_batches = options.microBatches;
    program.data_parallel = options.dataParallel;
    program.files = {"sample.mlir"};
    for (uint32_t s = 0; s < options.workers; ++s) {
      program.stages.emplace_back(s, 1, 1, 2, 1, 1, 1,
                                  options.weightsBytes + 8 * s,
                                  options.optimizerBytes + 16 * s,
                                  options.stashBytes, options.boundaryBytes);
      // Instructions of stage s come from line s+1.
      program.locations.emplace_back(0, s + 1, 3);
      program.workers.push_back(std::make_unique<WorkerT>());
    }
    uint32_t down = options.bidirectional ? (options.microBatches + 1) / 2
                                          : options.microBatches;
    addPipeline(Direction::Down, 0, down);
    if (options.bidirectional)
      addPipeline(Direction::Up, down, options.microBatches);
  }

  void addPipeline(Direction direction, uint32_t first, uint32_t last) {
    auto pipeline = std::make_unique<PipelineT>();
    pipeline->direction = direction;
    for (uint32_t s = 0; s < options.workers; ++s)
      pipeline->workers.push_back(
          direction == Direction::Down ? s : options.workers - 1 - s);
    for (uint32_t m = first; m < last; ++m)
      pipeline->micro_batches.push_back(m);
    program.pipelines.push_back(std::move(pipeline));
  }

  /// Visits every action: the k-th micro-batch of each pipeline after the
  /// (k-1)-th, and its stages in the order in which data flows.
  template <typename Visit> void walk(Visit visit, bool fromLastStage) {
    for (uint32_t k = 0; k < options.microBatches; ++k)
      for (uint32_t p = 0; p < program.pipelines.size(); ++p) {
        if (k >= program.pipelines[p]->micro_batches.size())
          continue;
        uint32_t m = program.pipelines[p]->micro_batches[k];
        for (uint32_t i = 0; i < options.workers; ++i)
          visit({p, fromLastStage ? options.workers - 1 - i : i, m});
      }
  }

  uint32_t workerOf(Place place) const {
    return program.pipelines[place.pipeline]->workers[place.stage];
  }

  uint32_t newBuffer(uint32_t worker, ValueKind kind, uint64_t bytes) {
    WorkerT &stream = *program.workers[worker];
    uint64_t offset = 0;
    if (kind != ValueKind::Stash) {
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
    stream.instructions.emplace_back(
        opcode, kind, 0, 1, static_cast<uint16_t>(place.pipeline),
        static_cast<uint16_t>(place.stage), place.microBatch, 1, target, first,
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
    compute(Opcode::ZeroGradient, ValueKind::WeightGradient, place, {},
            {gradient});
  }

  uint32_t load(ValueKind kind, Place place) {
    uint32_t buffer = newBuffer(workerOf(place), kind, options.tokenBytes);
    compute(Opcode::Load, kind, place, {}, {buffer});
    return buffer;
  }

  /// A message in flight: posted right after the value's producer, the receive
  /// next to the send.
  struct Message {
    uint32_t source, sendPost;
    uint32_t destination, receivePost;
    uint32_t buffer; ///< where the receiver has it
  };

  /// Hands `buffer`, made by `from`, to `to`.
  void produce(ValueKind kind, Place from, Place to, uint32_t buffer) {
    Message &message = messages[{kind, to}];
    message.source = workerOf(from);
    message.destination = workerOf(to);
    message.buffer = buffer;
    if (message.source == message.destination)
      return;
    message.buffer =
        newBuffer(message.destination, kind, options.boundaryBytes);
    message.receivePost = append(message.destination, Opcode::PostRecv, kind,
                                 from, message.source, {}, {message.buffer});
    message.sendPost = append(message.source, Opcode::PostSend, kind, from,
                              message.destination, {buffer}, {});
  }

  /// The buffer of a value that `place` is about to read.
  uint32_t consume(ValueKind kind, Place place) {
    const Message &message = messages.at({kind, place});
    if (message.source != message.destination)
      append(message.destination, Opcode::Wait, kind, place,
             message.receivePost, {}, {});
    return message.buffer;
  }

  /// Completes the send of the value that `place` has read.
  void release(ValueKind kind, Place place) {
    const Message &message = messages.at({kind, place});
    if (message.source != message.destination)
      append(message.source, Opcode::Wait, kind, place, message.sendPost, {},
             {});
  }

  bool isLast(Place place) const { return place.stage + 1 == options.workers; }

  void forward(Place place) {
    uint32_t worker = workerOf(place);
    Place replica{place.pipeline, place.stage};
    Buffers operands = {place.stage == 0
                            ? load(ValueKind::Tokens, place)
                            : consume(ValueKind::Activation, place),
                        weightsOf[replica]};
    ValueKind kind = ValueKind::Activation;
    uint64_t bytes = options.boundaryBytes;
    if (isLast(place)) {
      operands.push_back(load(ValueKind::Labels, place));
      kind = ValueKind::Loss;
      bytes = kLossBytes;
    }
    uint32_t output = newBuffer(worker, kind, bytes);
    uint32_t stash = newBuffer(worker, ValueKind::Stash, options.stashBytes);
    compute(Opcode::Forward, kind, place, operands, {output, stash});
    stashOf[place] = stash;
    if (isLast(place))
      lossOf[place.microBatch] = {worker, output};
    else
      produce(ValueKind::Activation, place,
              {place.pipeline, place.stage + 1, place.microBatch}, output);
    if (place.stage > 0)
      release(ValueKind::Activation, place);
  }

  void backward(Place place) {
    uint32_t worker = workerOf(place);
    Place replica{place.pipeline, place.stage};
    uint32_t incoming = isLast(place) ? lossOf[place.microBatch].second
                                      : consume(ValueKind::Gradient, place);
    uint32_t weights = weightsOf[replica];
    uint32_t sum = gradientOf[replica];
    Buffers outgoing;
    if (place.stage > 0)
      outgoing.push_back(
          newBuffer(worker, ValueKind::Gradient, options.boundaryBytes));
    if (options.splitBackward) {
      uint32_t kept = newBuffer(worker, ValueKind::Stash, options.stashBytes);
      Buffers results = {kept};
      results.insert(results.end(), outgoing.begin(), outgoing.end());
      compute(Opcode::InputGradient, ValueKind::Gradient, place,
              {stashOf[place], incoming, weights}, results);
      compute(Opcode::WeightGradient, ValueKind::WeightGradient, place,
              {kept, weights, sum}, {sum});
    } else {
      Buffers results = {sum};
      results.insert(results.end(), outgoing.begin(), outgoing.end());
      compute(Opcode::Backward, ValueKind::WeightGradient, place,
              {stashOf[place], incoming, weights, sum}, results);
    }
    if (place.stage > 0)
      produce(ValueKind::Gradient, place,
              {place.pipeline, place.stage - 1, place.microBatch},
              outgoing.front());
    if (!isLast(place))
      release(ValueKind::Gradient, place);
  }

  struct Start {
    uint32_t index, sum;
  };

  /// Adds a communicator and its start on every member. `given` holds each
  /// contribution's buffer.
  std::map<uint32_t, Start> reduce(ValueKind kind, uint32_t stage,
                                   uint64_t bytes,
                                   const std::vector<Contribution> &summands,
                                   const Buffers &given) {
    auto id = static_cast<uint32_t>(program.communicators.size());
    auto communicator = std::make_unique<CommunicatorT>();
    communicator->kind = kind;
    communicator->stage = stage;
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
    for (uint32_t s = 0; s < options.workers; ++s) {
      std::vector<Contribution> summands;
      Buffers given;
      for (uint32_t p = 0; p < program.pipelines.size(); ++p) {
        summands.emplace_back(workerOf({p, s}), p);
        given.push_back(gradientOf[{p, s}]);
      }
      starts.push_back(reduce(ValueKind::WeightGradient, s,
                              program.stages[s].weights_bytes(), summands,
                              given));
    }
    std::vector<Contribution> summands;
    Buffers given;
    for (const auto &[microBatch, loss] : lossOf) {
      summands.emplace_back(loss.first, microBatch);
      given.push_back(loss.second);
    }
    starts.push_back(reduce(ValueKind::Loss, options.workers - 1, kLossBytes,
                            summands, given));
    for (uint32_t s = 0; s < options.workers; ++s) {
      for (const auto &[worker, start] : starts[s])
        append(worker, Opcode::Wait, ValueKind::WeightGradient, {0, s},
               start.index, {}, {});
      for (uint32_t p = 0; p < program.pipelines.size(); ++p) {
        Place place{p, s};
        Buffers updated = {weightsOf[place], optimizerOf[place]};
        Buffers operands = updated;
        operands.push_back(starts[s].at(workerOf(place)).sum);
        compute(Opcode::OptimizerStep, ValueKind::Weights, place, operands,
                updated);
      }
    }
    for (const auto &[worker, start] : starts.back())
      append(worker, Opcode::Wait, ValueKind::Loss, {0, options.workers - 1},
             start.index, {}, {});
  }

  /// Sections and memory. Every buffer holds one value, so it is live from the
  /// first instruction that names it to the last, waits included.
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
  ProgramT program;
  std::map<Place, uint32_t> weightsOf, optimizerOf, gradientOf, stashOf;
  std::map<uint32_t, std::pair<uint32_t, uint32_t>> lossOf;
  std::map<std::pair<ValueKind, Place>, Message> messages;
};

} // namespace

ProgramT samplePipeline(const SampleOptions &options) {
  return Builder(options).build();
}

} // namespace chimera::program
