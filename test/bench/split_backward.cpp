//===- split_backward.cpp - The cost of splitting a backward --------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Times the forward, the input gradient, the weight gradient and the whole
// backward of a middle stage of a GPT-2 on one thread. The four take turns, so
// that other load affects all of them alike. Prints medians in milliseconds.
//
//   split_backward [ROUNDS] [BLOCKS WIDTH HEADS CONTEXT MICRO_BATCH [DROPOUT]]
//
//===----------------------------------------------------------------------===//

#include "runtime/model/graph/GraphStage.h"
#include "runtime/model/tensors/Tensors.h"
#include "runtime/program/Gpt2Package.h"
#include "runtime/program/Layers.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using namespace chimera;
using namespace chimera::runtime;

struct Sizes {
  uint32_t blocks = 2, width = 256, heads = 4, context = 128, microBatch = 8;
  double dropout = 0;
};

program::ProgramT describe(const Sizes &sizes) {
  program::ProgramT program;
  std::string error;
  program.model = program::gpt2Package({.layers = sizes.blocks,
                                        .heads = sizes.heads,
                                        .width = sizes.width,
                                        .context = sizes.context,
                                        .vocabulary = 256,
                                        .dropout = sizes.dropout},
                                       program.activation_type, error);
  if (!program.model)
    throw std::invalid_argument(error);
  program.optimizer = std::make_unique<program::OptimizerT>();
  program.optimizer->name = "adamw";
  program.micro_batch_size = sizes.microBatch;
  program.micro_batches = 1;
  program.data_parallel = 1;
  uint32_t first = 0;
  const auto boundary = static_cast<uint64_t>(
      program::boundaryBytes(*program.model, sizes.microBatch, 0));
  for (uint32_t count : {1u, sizes.blocks, 1u}) {
    const auto bytes = static_cast<uint64_t>(program::parameterBytes(
        program::typesOf(program),
        program::parameterCount(*program.model, first, count)));
    program.stages.emplace_back(first, count, 1, 2, 1, 1, 1, 0, bytes,
                                2 * bytes, 0, 0, boundary, 0);
    first += count;
  }
  return program;
}

// Memory that is aligned to 64 bytes, as the interpreter's is.
class Buffer {
public:
  explicit Buffer(uint64_t bytes)
      : bytes(bytes),
        first(static_cast<std::byte *>(std::aligned_alloc(
            64, std::max<uint64_t>(64, (bytes + 63) / 64 * 64)))) {
    if (!first)
      throw std::bad_alloc();
    std::fill_n(first, bytes, std::byte{0});
  }
  Buffer(const Buffer &) = delete;
  Buffer &operator=(const Buffer &) = delete;
  ~Buffer() { std::free(first); }
  operator Bytes() const { return {first, bytes}; }
  operator ConstBytes() const { return {first, bytes}; }

  void fill(double frequency) {
    auto *values = reinterpret_cast<float *>(first);
    for (uint64_t i = 0; i < bytes / sizeof(float); ++i)
      values[i] = std::sin(static_cast<float>(frequency * double(i)));
  }

private:
  uint64_t bytes;
  std::byte *first;
};

double milliseconds(const std::function<void()> &call) {
  const auto start = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration<double, std::milli>(
             std::chrono::steady_clock::now() - start)
      .count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

int run(int rounds, const Sizes &sizes) {
  const program::ProgramT program = describe(sizes);
  TensorMeter meter;
  setThreads(1);
  const program::Stage &declared = program.stages[1];
  std::unique_ptr<Stage> stage = makeGraphStage(program, 1);
  Buffer weights(declared.weights_bytes()), state(declared.optimizer_bytes()),
      gradient(declared.weights_bytes()), input(declared.boundary_bytes()),
      output(declared.boundary_bytes()), incoming(declared.boundary_bytes()),
      outgoing(declared.boundary_bytes());
  stage->initialize(weights, state);
  input.fill(0.7);
  incoming.fill(0.3);

  std::vector<double> forward, whole, first, second;
  int64_t stashBytes = 0, restBytes = 0;
  std::unique_ptr<Stash> stash;
  const int64_t empty = meter.currentBytes();
  for (int round = -2; round < rounds; ++round) {
    const MicroBatch microBatch{0, 0};
    const auto runForward = [&] {
      stash = stage->forward(microBatch, input, {}, weights, output);
    };
    const double f = milliseconds(runForward);
    stashBytes = meter.currentBytes() - empty;
    const double b = milliseconds([&] {
      stage->backward(microBatch, std::move(stash), incoming, weights, gradient,
                      outgoing);
    });
    runForward();
    const double i = milliseconds([&] {
      stash = stage->inputGradient(microBatch, std::move(stash), incoming,
                                   weights, outgoing);
    });
    restBytes = meter.currentBytes() - empty;
    const double w = milliseconds([&] {
      stage->weightGradient(microBatch, std::move(stash), weights, gradient);
    });
    if (round < 0)
      continue; // warming up
    forward.push_back(f);
    whole.push_back(b);
    first.push_back(i);
    second.push_back(w);
  }
  const double f = median(forward), b = median(whole), i = median(first),
               w = median(second);
  std::printf(
      "%u blocks of width %u, %u heads, context %u, micro-batch %u, dropout "
      "%g, float32, 1 thread; medians of %d\n"
      "F %.2f ms\nB %.2f ms\nI %.2f ms\nW %.2f ms\n"
      "(I+W)/B %.3f\nI/B %.3f\nB/F %.3f\n"
      "stash after F %.2f MiB, after I %.2f MiB (%.3f)\n",
      sizes.blocks, sizes.width, sizes.heads, sizes.context, sizes.microBatch,
      sizes.dropout, rounds, f, b, i, w, (i + w) / b, i / b, b / f,
      double(stashBytes) / (1 << 20), double(restBytes) / (1 << 20),
      double(restBytes) / double(stashBytes));
  return 0;
}

int usage(const char *reason) {
  std::fprintf(stderr,
               "%s\nusage: split_backward [ROUNDS] "
               "[BLOCKS WIDTH HEADS CONTEXT MICRO_BATCH [DROPOUT]]\n",
               reason);
  return 2;
}

} // namespace

int main(int count, char **arguments) {
  Sizes sizes;
  if (count > 2 && count != 7 && count != 8)
    return usage("expected none, 1, 6 or 7 arguments");
  const int rounds = count > 1 ? std::atoi(arguments[1]) : 31;
  if (rounds < 1)
    return usage("expected at least one round");
  if (count > 2) {
    uint32_t *const fields[] = {&sizes.blocks, &sizes.width, &sizes.heads,
                                &sizes.context, &sizes.microBatch};
    for (size_t i = 0; i < std::size(fields); ++i)
      *fields[i] = static_cast<uint32_t>(std::atoi(arguments[2 + i]));
    if (count == 8)
      sizes.dropout = std::atof(arguments[7]);
  }
  try {
    return run(rounds, sizes);
  } catch (const std::exception &error) {
    std::fprintf(stderr, "split_backward: %s\n", error.what());
    return 1;
  }
}
