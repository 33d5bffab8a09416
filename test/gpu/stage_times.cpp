//===- stage_times.cpp - Times of the actions of a program's stages -------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs each stage of a compiled program alone, many times. Prints the median
// times of forward, backward and optimizer step as JSON, by the clock of the
// device. The host does not wait for the device between these. On a GPU it also
// times a large copy, which runs at memory bandwidth.
//
//===----------------------------------------------------------------------===//

#include "runtime/device/Host.h"
#include "runtime/interpreter/Status.h"
#include "runtime/model/CapturedStage.h"
#include "runtime/model/graph/GraphStage.h"
#include "runtime/model/tensors/Tensors.h"
#include "runtime/program/Fields.h"
#include "runtime/program/Layers.h"
#include "runtime/proof/ProvenFile.h"
#include "runtime/train/Accelerator.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>
#include <stdexcept>

using namespace chimera;
using namespace chimera::runtime;

namespace {
constexpr std::chrono::minutes kTimeout(5);
/// The first rounds are not measured: in them libraries choose their kernels,
/// and graphs are captured.
constexpr int kUntimed = 5;

struct Settings {
  std::string program;
  bool isCuda = false;
  bool graphs = false;
  int repeats = 20;
};

/// A block of memory on a device, and its bytes.
struct Memory {
  Memory(Device &device, uint64_t bytes)
      : block(device.allocate(std::max<uint64_t>(bytes, 1))),
        bytes(block.get(), bytes) {}
  Block block;
  Bytes bytes;
};

/// Fills memory with numbers between -1 and 1, so that it is not all zero.
void fillWithNumbers(Bytes bytes, program::DataType type) {
  const auto size = static_cast<size_t>(program::bytesOf(type));
  for (size_t i = 0; i < bytes.size() / size; ++i) {
    const float value = std::sin(static_cast<float>(i % 1000003));
    const double wide = value;
    const auto narrow =
        static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16);
    const void *from = size == 8   ? static_cast<const void *>(&wide)
                       : size == 4 ? static_cast<const void *>(&value)
                                   : &narrow;
    std::memcpy(bytes.data() + i * size, from, size);
  }
}

void fillWithTokens(Bytes bytes, uint32_t vocabulary) {
  for (size_t i = 0; i < bytes.size() / sizeof(int64_t); ++i) {
    const auto token = static_cast<int64_t>(i * 7919 % vocabulary);
    std::memcpy(bytes.data() + i * sizeof token, &token, sizeof token);
  }
}

/// Measures the time of work on a device. The work is enqueued on a queue.
class Clock {
public:
  Clock(Device &device, Queue &queue) : device(device), queue(queue) {}

  /// The median time of each of the `calls`. A round runs all of them, one
  /// after another.
  std::vector<double>
  milliseconds(const std::vector<std::function<void()>> &calls, int repeats) {
    std::vector<std::vector<double>> all(calls.size());
    std::vector<std::vector<Event>> points;
    for (int round = 0; round < kUntimed + repeats; ++round) {
      std::vector<Event> &own = points.emplace_back();
      for (size_t i = 0; i < calls.size(); ++i) {
        const int64_t begin = steadyNanoseconds();
        own.push_back(queue.recordTime());
        calls[i]();
        if (device.isSynchronous() && round >= kUntimed)
          all[i].push_back(static_cast<double>(steadyNanoseconds() - begin) /
                           1e6);
      }
      own.push_back(queue.recordTime());
      // As in a training run, let the host run ahead of the device by one
      // round.
      if (round > 0)
        device.waitFor(points[static_cast<size_t>(round - 1)].back(), kTimeout);
    }
    device.waitFor(points.back().back(), kTimeout);
    if (!device.isSynchronous())
      for (size_t round = kUntimed; round < points.size(); ++round)
        for (size_t i = 0; i < calls.size(); ++i)
          all[i].push_back(static_cast<double>(device.nanosecondsBetween(
                               points[round][i], points[round][i + 1])) /
                           1e6);
    std::vector<double> medians;
    for (std::vector<double> &times : all) {
      std::ranges::sort(times);
      medians.push_back(times.at(times.size() / 2));
    }
    return medians;
  }

private:
  Device &device;
  Queue &queue;
};

nlohmann::json timesOf(const program::ProgramT &program, uint32_t number,
                       const StageFactory &factory, Device &device,
                       Queue &queue, int repeats) {
  const program::Stage &sizes = program.stages[number];
  const bool isFirst = number == 0;
  const bool isLast = number + 1 == program.stages.size();
  const auto tokenBytes = static_cast<uint64_t>(
      program::inputBytes(*program.model, program.micro_batch_size));
  const uint64_t outputBytes =
      isLast ? uint64_t(program::kLossBytes) : sizes.boundary_bytes();
  const uint64_t inputBytes =
      isFirst ? 0 : program.stages[number - 1].boundary_bytes();
  Memory weights(device, sizes.weights_bytes());
  Memory gradient(device, program::gradientBytes(sizes));
  Memory state(device, sizes.optimizer_bytes());
  Memory input(device, isFirst ? tokenBytes : inputBytes);
  Memory labels(device, isLast ? tokenBytes : 0);
  Memory output(device, outputBytes), outputGradient(device, outputBytes);
  Memory inputGradient(device, inputBytes);

  const auto vocabulary =
      static_cast<uint32_t>(program::vocabularyOf(*program.model).value_or(1));
  queue.loadFromHost(input.bytes, [&](Bytes host) {
    if (isFirst)
      fillWithTokens(host, vocabulary);
    else
      fillWithNumbers(host, program.activation_type);
  });
  queue.loadFromHost(labels.bytes,
                     [&](Bytes host) { fillWithTokens(host, vocabulary); });
  queue.loadFromHost(outputGradient.bytes, [&](Bytes host) {
    fillWithNumbers(host, isLast ? program::DataType::Float64
                                 : program.activation_type);
  });
  // Every backward adds to the sum, as those of stage_times_pytorch.py do.
  queue.zero(gradient.bytes);
  std::unique_ptr<Stage> stage = factory(program, number);
  queue.launch({}, [&](const AddressMap &) {
    stage->initialize(weights.bytes, state.bytes);
  });

  std::unique_ptr<Stash> stash;
  auto launch = [&](auto work) {
    return [&queue, work] {
      queue.launch({}, [&](const AddressMap &) { work(); });
    };
  };
  uint64_t step = 0;
  const std::vector<double> times =
      Clock(device, queue)
          .milliseconds(
              {launch([&] {
                 stash = stage->forward({step, 0}, input.bytes, labels.bytes,
                                        weights.bytes, output.bytes);
               }),
               launch([&] {
                 stage->backward({step, 0}, std::move(stash),
                                 outputGradient.bytes, weights.bytes,
                                 gradient.bytes, inputGradient.bytes,
                                 WgradMode::Add);
               }),
               launch([&] {
                 stage->optimizerStep({step++, 1e-3, 1e-9}, gradient.bytes,
                                      weights.bytes, state.bytes);
               })},
              repeats);
  return {{"stage", number},
          {"parameters",
           program::gradientBytes(sizes) /
               static_cast<uint64_t>(program::bytesOf(program.weight_type))},
          {"forward_ms", times[0]},
          {"backward_ms", times[1]},
          {"optimizer_ms", times[2]}};
}

/// The memory bandwidth of a large copy: the bytes that it reads and writes per
/// second.
double copyBandwidth(Device &device, Queue &queue, int repeats) {
  constexpr uint64_t kBytes = uint64_t(1) << 30;
  Memory from(device, kBytes), to(device, kBytes);
  queue.zero(from.bytes);
  const double milliseconds =
      Clock(device, queue)
          .milliseconds({[&] { queue.copy(from.bytes, to.bytes); }}, repeats)
          .front();
  return 2 * static_cast<double>(kBytes) / milliseconds * 1e3;
}

nlohmann::json measure(const Settings &settings) {
  std::string error;
  std::optional<program::ProgramT> program =
      program::readProgramFile(settings.program, error);
  if (!program)
    throw std::runtime_error(error);
  if (!program->model)
    throw std::runtime_error("expected a program with a model");
  std::unique_ptr<Accelerator> gpus;
  std::unique_ptr<Device> device;
  StageFactory factory = [](const program::ProgramT &whole, uint32_t stage) {
    return makeGraphStage(whole, stage);
  };
  nlohmann::json found;
  if (settings.isCuda) {
    gpus = loadCuda({});
    device = gpus->makeDevice(0, 0);
    factory = [&](const program::ProgramT &whole, uint32_t stage) {
      auto made = makeGraphStage(whole, stage, nullptr, gpus->placement());
      return settings.graphs
                 ? wrapWithGraphs(std::move(made), gpus->makeGraphFactory())
                 : std::move(made);
    };
    const std::string reason =
        settings.graphs ? graphsUnsupportedReason(*program) : "";
    if (!reason.empty())
      throw std::runtime_error("no graphs: " + reason);
  } else {
    setThreads(1);
    device = makeHostDevice();
  }
  const std::unique_ptr<Queue> queue = device->makeQueue("compute");
  for (uint32_t stage = 0; stage < program->stages.size(); ++stage)
    found["stages"].push_back(
        timesOf(*program, stage, factory, *device, *queue, settings.repeats));
  if (settings.isCuda)
    found["copy_bytes_per_second"] =
        copyBandwidth(*device, *queue, settings.repeats);
  return found;
}
} // namespace

int main(int count, char **words) {
  CLI::App app("Times forward, backward and optimizer step of each stage of a "
               "program.");
  Settings settings;
  std::string device = "cuda";
  app.add_option("PROGRAM", settings.program)->required();
  app.add_option("--device", device, "cuda or host")
      ->check(CLI::IsMember({"cuda", "host"}))
      ->capture_default_str();
  app.add_flag("--graphs", settings.graphs, "Launch actions as CUDA graphs");
  app.add_option("--repeats", settings.repeats)
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  CLI11_PARSE(app, count, words);
  settings.isCuda = device == "cuda";
  try {
    if (settings.graphs && !settings.isCuda)
      throw std::runtime_error("--graphs is for --device cuda");
    std::printf("%s\n", measure(settings).dump(1).c_str());
  } catch (const std::exception &error) {
    std::fprintf(stderr, "stage_times: %s\n", error.what());
    return 1;
  }
}
