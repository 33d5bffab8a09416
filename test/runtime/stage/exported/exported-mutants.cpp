//===- exported-mutants.cpp - Packages that somebody changed --------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Changes descriptions of packages at random. Each mutant must be refused, when
// it is read or when it runs, or run: the process must not crash, a mutant not
// take longer than its seconds. Prints how many ended in which way.
//
//===----------------------------------------------------------------------===//

#include "runtime/program/Layout.h"
#include "runtime/program/Package.h"
#include "runtime/stage/exported/ExportedStage.h"
#include "runtime/stage/torch/Tensors.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <cmath>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <random>
#include <sys/resource.h>
#include <unistd.h>

using namespace chimera;
using namespace chimera::runtime;
using Json = nlohmann::json;
using Random = std::mt19937_64;

static uint64_t below(Random &random, uint64_t count) {
  return count ? random() % count : 0;
}

/// A value somewhere in `root`, mostly deep down, where the graphs are.
static Json &pick(Json &root, Random &random) {
  Json *at = &root;
  while (at->is_structured() && !at->empty() && below(random, 40) != 0)
    at = &*std::next(at->begin(),
                     static_cast<ptrdiff_t>(below(random, at->size())));
  return *at;
}

static void change(Json &value, Json &root, Random &random) {
  static const int64_t numbers[] = {0,
                                    1,
                                    -1,
                                    2,
                                    3,
                                    -2,
                                    7,
                                    100,
                                    65536,
                                    int64_t{1} << 31,
                                    int64_t{1} << 40,
                                    INT64_MAX,
                                    INT64_MIN};
  if (value.is_number_integer()) {
    value = below(random, 2) ? Json(numbers[below(random, std::size(numbers))])
                             : Json(value.get<int64_t>() +
                                    static_cast<int64_t>(below(random, 5)) - 2);
  } else if (value.is_number_float()) {
    value = below(random, 2) ? value.get<double>() * 1e3 : -1.5;
  } else if (value.is_array() && !value.empty()) {
    const size_t i = below(random, value.size());
    const size_t j = below(random, value.size());
    switch (below(random, 4)) {
    case 0:
      value.erase(i);
      break;
    case 1:
      value.push_back(value[i]);
      break;
    case 2:
      std::swap(value[i], value[j]);
      break;
    default:
      value[i] = value[j];
    }
  } else if (value.is_object() && !value.empty() && below(random, 8) == 0) {
    value.erase(std::next(value.begin(),
                          static_cast<ptrdiff_t>(below(random, value.size()))));
  } else {
    value = pick(root, random);
  }
}

namespace {
/// Small numbers of both signs.
class Values : public InitialValues {
public:
  void read(const std::string &, program::DataType type,
            const std::vector<int64_t> &, Bytes memory) const override {
    auto fill = [&]<typename T>(T *values) {
      for (size_t i = 0; i < memory.size() / sizeof(T); ++i)
        values[i] = static_cast<T>(0.1 * std::sin(static_cast<double>(i)));
    };
    if (type == program::DataType::Float64)
      fill(reinterpret_cast<double *>(memory.data()));
    else
      fill(reinterpret_cast<float *>(memory.data()));
  }
};
} // namespace

/// A step of the package's model as one stage, whole and split. Throws where it
/// is refused.
static void train(std::unique_ptr<program::PackageT> package) {
  program::ProgramT program;
  program.model = std::make_unique<program::ModelT>();
  program.model->architecture = program::kExported;
  program.model->package = std::move(package);
  const program::PackageT &own = *program.model->package;
  program.optimizer = std::make_unique<program::OptimizerT>();
  program.optimizer->name = "adamw";
  program.weight_type = program.activation_type = own.type;
  program.micro_batch_size = program::kindOf(own, 0).graphs[0]->samples;
  const uint32_t layers = program::layerCount(*program.model);
  constexpr int64_t kMost = int64_t{1} << 26;
  const int64_t elements = program::parameterCount(*program.model, 0, layers);
  const int64_t inputs =
      program::inputBytes(*program.model, program.micro_batch_size);
  const int64_t labels =
      program::labelBytes(*program.model, program.micro_batch_size);
  // What a proof would know to be too much for the machine.
  if (elements > kMost || inputs > kMost || labels > kMost)
    throw std::runtime_error("too large");
  const auto bytes = static_cast<size_t>(
      program::parameterBytes(program::typesOf(program), elements));
  std::vector<std::byte> weights(bytes), gradient(bytes), state(2 * bytes);
  std::vector<std::byte> input(static_cast<size_t>(inputs)),
      label(static_cast<size_t>(labels));
  auto stage = makeWholeExportedModel(program, std::make_shared<Values>());
  stage->initialize(weights, state);
  double loss = 0;
  const Bytes lossBytes = std::as_writable_bytes(std::span(&loss, 1));
  auto forward = [&] {
    return stage->forward({}, input, label, weights, lossBytes);
  };
  stage->backward({}, forward(), lossBytes, weights, gradient, {}, Sum::Begin);
  auto rest = stage->inputGradient({}, forward(), lossBytes, weights, {});
  stage->weightGradient({}, std::move(rest), weights, gradient);
  stage->optimizerStep(0, 1, gradient, weights, state);
}

static uint64_t current = 0;

int main(int argc, char **argv) {
  CLI::App app("Changes packages and runs what is accepted.");
  std::vector<std::string> files;
  uint64_t mutants = 1000, first = 0;
  unsigned seconds = 20;
  app.add_option("FILES", files, "Descriptions (model.json)")->required();
  app.add_option("--mutants", mutants)->capture_default_str();
  app.add_option("--first", first)->capture_default_str();
  app.add_option("--seconds", seconds, "A mutant may take")
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  countTensorBytes();
  setThreads(1);
  // What takes more memory than any of these models fails.
  const rlimit memory{uint64_t{8} << 30, uint64_t{8} << 30};
  setrlimit(RLIMIT_AS, &memory);
  auto tell = [](int signal) {
    std::fprintf(stderr, "exported-mutants: signal %d in mutant %llu\n", signal,
                 static_cast<unsigned long long>(current));
    _exit(1);
  };
  for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGABRT, SIGILL, SIGALRM})
    std::signal(signal, tell);

  std::vector<Json> descriptions;
  for (const std::string &file : files)
    descriptions.push_back(Json::parse(std::ifstream(file)));
  uint64_t unreadable = 0, refused = 0, ran = 0;
  for (current = first; current < first + mutants; ++current) {
    Random random(current);
    Json mutant = descriptions[current % descriptions.size()];
    for (uint64_t i = 0, e = below(random, 4); current > 0 && i <= e; ++i)
      change(pick(mutant, random), mutant, random);
    std::string error;
    alarm(seconds);
    auto package = program::parsePackage(mutant.dump(), error);
    if (!package) {
      ++unreadable;
      continue;
    }
    try {
      train(std::move(package));
      ++ran;
    } catch (const std::exception &) {
      ++refused;
    }
  }
  std::printf("%llu mutants: %llu refused when read, %llu when run, %llu ran\n",
              static_cast<unsigned long long>(mutants),
              static_cast<unsigned long long>(unreadable),
              static_cast<unsigned long long>(refused),
              static_cast<unsigned long long>(ran));
  return ran > 0 && refused > 0 && unreadable > 0 ? 0 : 1;
}
