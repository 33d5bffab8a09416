//===- read_ahead.cpp - Reading samples, with and without a thread --------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One rank loads micro-batches from files in the page cache and computes after
// each load. It loads them itself or lets a thread read ahead, in pairs of
// runs. The computation is a loop of a given duration. Prints a table: the time
// for which a step is blocked in loads, the bytes per second of the whole run,
// and the ratio of the blocked times of each pair.
//
//===----------------------------------------------------------------------===//

#include "runtime/data/ArrayData.h"
#include "runtime/data/OpenTokens.h"
#include "runtime/data/ReadAhead.h"
#include "runtime/data/TextData.h"
#include "test/runtime/data/ArraysFixture.h"
#include "test/runtime/model/SmallModel.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <unistd.h>

using namespace chimera;
using namespace chimera::runtime;
using program::ValueKind;

namespace {
using Clock = std::chrono::steady_clock;
double secondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// Computes for `seconds` of this thread's processor time.
void compute(double seconds) {
  const auto cpuSeconds = [] {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) +
           static_cast<double>(time.tv_nsec) * 1e-9;
  };
  for (const double end = cpuSeconds() + seconds; cpuSeconds() < end;)
    ;
}

struct Case {
  const char *name;
  DataSource &data;
  uint64_t microBatches;                             ///< in a step
  std::vector<std::pair<ValueKind, uint64_t>> loads; ///< of a micro-batch
  double computeSeconds;                             ///< after each micro-batch
};

struct Result {
  double blocked; ///< seconds in loads
  double seconds; ///< of the whole run
  double bytes;
};

Result run(const Case &of, uint64_t steps, bool readsAhead) {
  uint64_t stepBytes = 0;
  const auto loadsOf = [&](uint64_t step) {
    std::vector<PlannedLoad> loads;
    for (uint64_t index = 0; index < of.microBatches; ++index)
      for (const auto &[kind, bytes] : of.loads)
        loads.push_back({kind, {{.step = step, .index = index}}, bytes});
    return loads;
  };
  std::vector<Block> blocks; // by load of a step
  for (const PlannedLoad &load : loadsOf(0)) {
    stepBytes += blockBytes(load.bytes);
    blocks.push_back(makeBlock(load.bytes));
  }
  ReadAhead ahead(of.data, 2, 2 * stepBytes);
  const auto step = [&](uint64_t number) {
    double blocked = 0;
    ahead.reach(number);
    const std::vector<PlannedLoad> loads = loadsOf(number);
    for (size_t k = 0; k < loads.size(); ++k) {
      const PlannedLoad &load = loads[k];
      const Clock::time_point begin = Clock::now();
      if (readsAhead)
        ahead.load(load, blocks[k]);
      else
        loadPieces(of.data, load, {blocks[k].get(), load.bytes});
      blocked += secondsSince(begin);
      if (load.kind == ValueKind::Labels)
        compute(of.computeSeconds);
    }
    return blocked;
  };
  if (readsAhead)
    ahead.begin(0, [&](uint64_t number) -> std::optional<ReadAhead::Section> {
      if (number == steps + 1)
        return std::nullopt;
      return ReadAhead::Section{.step = number, .loads = loadsOf(number)};
    });
  step(0); // nothing is ahead of the first step
  Result result{0, 0, static_cast<double>(stepBytes * steps)};
  const Clock::time_point begin = Clock::now();
  for (uint64_t number = 1; number <= steps; ++number)
    result.blocked += step(number);
  result.seconds = secondsSince(begin);
  return result;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

void measure(const Case &of, uint64_t steps, int rounds) {
  std::vector<double> ratios, rates[2], blocked[2];
  for (int round = 0; round < rounds; ++round) {
    double seconds[2];
    for (int k : {round % 2, 1 - round % 2}) {
      const Result result = run(of, steps, /*readsAhead=*/k == 1);
      seconds[k] = result.blocked;
      rates[k].push_back(result.bytes / result.seconds * 1e-9);
      blocked[k].push_back(result.blocked / static_cast<double>(steps) * 1e6);
    }
    ratios.push_back(seconds[1] / seconds[0]);
  }
  std::printf("| %s | %.0f µs, %.2f GB/s | %.0f µs, %.2f GB/s | %.3f "
              "(%.3f-%.3f) |\n",
              of.name, median(blocked[0]), median(rates[0]), median(blocked[1]),
              median(rates[1]), median(ratios),
              *std::ranges::min_element(ratios),
              *std::ranges::max_element(ratios));
  std::fflush(stdout);
}

void write(const std::string &path, const std::string &head, uint64_t bytes) {
  std::ofstream file(path, std::ios::binary);
  file << head;
  std::string block(1 << 20, '\1');
  for (uint64_t written = 0; written < bytes; written += block.size()) {
    block.resize(std::min<uint64_t>(block.size(), bytes - written));
    file << block;
  }
}
} // namespace

int main(int argc, char **argv) {
  CLI::App app("Measures loads of samples with and without reading ahead.");
  uint64_t megabytes = 512, steps = 20;
  int rounds = 5;
  app.add_option("--megabytes", megabytes, "size of the images in files")
      ->capture_default_str();
  app.add_option("--steps", steps, "steps of a run")->capture_default_str();
  app.add_option("--rounds", rounds, "pairs of runs")->capture_default_str();
  CLI11_PARSE(app, argc, argv);

  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() /
      ("chimera-read-ahead-" + std::to_string(getpid()));
  std::filesystem::create_directory(folder);
  const auto path = [&](const char *name) { return (folder / name).string(); };

  // Images of 224 x 224 pixels in micro-batches of 8.
  constexpr int64_t kRows = 8, kPixels = 3 * 224 * 224;
  program::ProgramT images = test::programOfArrays();
  images.micro_batch_size = kRows;
  images.micro_batches = 4;
  images.data_parallel = 1;
  program::PackageT &package = *images.model;
  program::kindOf(package, 0).graphs->inputs[0] =
      program::perSample(program::TensorType::Float32, {3, 224, 224});
  const uint64_t samples =
      std::max<uint64_t>(megabytes * 1'000'000 / (4 * kPixels), 4 * kRows);
  const std::string n = std::to_string(samples);
  write(path("pixels.npy"),
        test::npyOf(test::npyHeader("<f4", "(" + n + ", 3, 224, 224)"), ""),
        samples * 4 * kPixels);
  write(path("known.npy"),
        test::npyOf(test::npyHeader("|b1", "(" + n + ",)"), ""), samples);
  write(path("classes.npy"),
        test::npyOf(test::npyHeader("<i8", "(" + n + ",)"), ""), 8 * samples);
  ArrayData arrays({{"pixels", path("pixels.npy")},
                    {"known", path("known.npy")},
                    {"classes", path("classes.npy")}},
                   images, 0);

  // Tokens in micro-batches of 8 windows of 1024.
  program::ProgramT text = test::smallProgram(
      {.context = 1024, .vocabulary = 50257, .microBatchSize = 8}, {4});
  text.micro_batches = 4;
  write(path("tokens.bin"), "", megabytes * 100'000);
  TextData tokens(
      openTokens({path("tokens.bin")}, {.format = TokenFormat::UInt16,
                                        .vocabulary = 50257,
                                        .trustPlainNumbers = true}),
      text, 0);

  std::printf("| | ranks load | a thread reads ahead | ratio |\n|---|---|---|"
              "---|\n");
  const std::vector<std::pair<ValueKind, uint64_t>> ofImages = {
      {ValueKind::Tokens, kRows * (4 * kPixels + 1)},
      {ValueKind::Labels, kRows * 8}};
  const std::vector<std::pair<ValueKind, uint64_t>> ofTokens = {
      {ValueKind::Tokens, 8 * 1024 * 8}, {ValueKind::Labels, 8 * 1024 * 8}};
  measure({"images, without computation", arrays, 4, ofImages, 0}, steps,
          rounds);
  measure({"images, 3 ms of computation each", arrays, 4, ofImages, 3e-3},
          steps, rounds);
  measure({"tokens, 1 ms of computation each", tokens, 4, ofTokens, 1e-3},
          10 * steps, rounds);
  std::filesystem::remove_all(folder);
  return 0;
}
