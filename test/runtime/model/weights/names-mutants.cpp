//===- names-mutants.cpp - Randomly changed files of names ----------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Changes files of names (WeightNames.h) at random. If changed names are
// accepted, weights that are saved under these names must be read back
// unchanged. A file that was saved under the original names must be read
// correctly with the changed names, or be refused. See Mutants.h.
//
//===----------------------------------------------------------------------===//

#include "runtime/model/weights/WeightFiles.h"
#include "test/runtime/model/Mutants.h"
#include "test/runtime/model/SmallModel.h"
#include "test/runtime/program/SamplePackages.h"

#include <numeric>

using namespace chimera;
using namespace chimera::runtime;
using namespace chimera::runtime::test;

namespace {

/// A program, names and weights, and a file with the weights under these names.
struct Sample {
  program::ProgramT program;
  std::string names;
  std::vector<uint32_t> weights;
  std::string file;
};

constexpr char kGpt2[] = R"({
  "layers.0.token_embedding": {"name": "wte", "transposed": true},
  "layers.{n}.norm1.weight": "h.{n-1}.ln_1.weight",
  "layers.{n}.attention.weight": {"name": "h.{n}.{n+1}", "transposed": true},
  "layers.1.mlp.weight": {"name": "fc", "transposed": false},
  "layers.{n}.norm.weight": "ln_f",
  "ignored": ["h.{n}.mask", "step"]
})";

constexpr char kExported[] = R"({
  "PATH": {"name": "wte", "transposed": true},
  "ignored": ["scale{n}"]
})";

void save(const Sample &sample, const WeightNames &names,
          const std::string &path) {
  std::string error;
  if (!saveWeights(sample.program, std::as_bytes(std::span(sample.weights)),
                   path, error, names))
    fault(error);
}

Sample sampleOf(program::ProgramT program, std::string names,
                const std::string &name, const Folder &folder) {
  const program::PackageT &model = *program.model;
  const auto bytes = static_cast<size_t>(program::parameterBytes(
      program::typesOf(program),
      program::parameterCount(model, 0, program::layerCount(model))));
  Sample sample{std::move(program), std::move(names),
                std::vector<uint32_t>(bytes / 4), folder.write(name, "", 0)};
  std::iota(sample.weights.begin(), sample.weights.end(), 0x40000000);
  save(sample,
       WeightNames(sample.program,
                   folder.write("names", sample.names, sample.names.size())),
       sample.file);
  return sample;
}

std::vector<Sample> samples(const Folder &folder) {
  std::vector<Sample> all;
  all.push_back(sampleOf(smallProgram({}), kGpt2, "large", folder));
  all.push_back(
      sampleOf(smallProgram({.type = program::DataType::Float32, .tied = true}),
               kGpt2, "tied", folder));
  program::ProgramT exported = smallProgram({});
  exported.model = program::samplePackage();
  std::string names = kExported;
  names.replace(names.find("PATH"), 4,
                program::parameterName(*exported.model, 0, 0));
  all.push_back(sampleOf(std::move(exported), names, "exported", folder));
  return all;
}

const char *const kText[] = {"{n}",
                             "{n-1}",
                             "{n+1}",
                             "{n-9}",
                             "{",
                             "}",
                             "{n",
                             "{n+99999999999}",
                             "\xff",
                             "\\u0000",
                             "\\\"",
                             "__metadata__",
                             "layers.2.mlp.weight",
                             "wte",
                             "1",
                             ""};

void changeText(std::string &names, Random &random) {
  const size_t name = names.find('"', below(random, names.size() + 1));
  switch (below(random, 4)) {
  case 0:
    if (name != std::string::npos)
      names.insert(name + 1, oneOf(kText, random));
    break;
  case 1: {
    const size_t place = names.find('{', 1 + below(random, names.size()));
    if (place != std::string::npos)
      names.replace(place, below(random, 6), oneOf(kText, random));
    break;
  }
  case 2:
    // Insert a long text only rarely, because reading it takes long.
    names.insert(
        below(random, names.size()),
        std::string(size_t{1} << below(random, below(random, 9) ? 8 : 21),
                    " [{\"1"[below(random, 5)]));
    break;
  default:
    change(names, random);
  }
}

struct Opened {
  const Sample *sample;
  WeightNames names;
};

Opened openMutant(const Sample &sample, const Folder &folder, Random &random) {
  std::string names = sample.names;
  if (below(random, 2)) {
    Json root = Json::parse(names);
    for (uint64_t i = below(random, 3) + 1; i > 0; --i)
      change(pick(root, random), root, random);
    names = root.dump();
  }
  for (uint64_t i = below(random, 3); i > 0; --i)
    changeText(names, random);
  return {&sample, WeightNames(sample.program,
                               folder.write("names", names, names.size()))};
}

/// Returns all weights of the file `path`, read with these names.
std::vector<uint32_t> read(const Sample &sample, const WeightNames &names,
                           const std::string &path) {
  const program::PackageT &model = *sample.program.model;
  const LoadedWeights saved(sample.program, path, names);
  saved.digest();
  std::vector<uint32_t> all;
  for (const auto &[layer, number, parameter] :
       program::stageParameters(model, 0, program::layerCount(model))) {
    Guarded<uint32_t> memory(
        static_cast<size_t>(parameter.elements() *
                            program::bytesOf(sample.program.weight_type) / 4));
    saved.read(program::parameterName(model, layer, number),
               sample.program.weight_type, parameter.shape,
               std::as_writable_bytes(memory.span()));
    memory.check();
    all.insert(all.end(), memory.span().begin(), memory.span().end());
  }
  return all;
}

void use(const Opened &opened, const Folder &folder) {
  const std::string path = folder.write("weights", "", 0);
  save(*opened.sample, opened.names, path);
  std::vector<uint32_t> again;
  try {
    again = read(*opened.sample, opened.names, path);
  } catch (const std::runtime_error &error) {
    fault(error.what());
  }
  if (again != opened.sample->weights)
    fault("expected the weights that were saved");
  read(*opened.sample, opened.names, opened.sample->file);
}

} // namespace

int main(int argc, char **argv) {
  const Folder folder;
  const std::vector<Sample> all = samples(folder);
  return mutantsMain(
      argc, argv,
      "Changes files of names, and saves and reads weights by those that are "
      "accepted.",
      [&](uint64_t, Random &random) {
        return openMutant(oneOf(all, random), folder, random);
      },
      [&](const Opened &opened, Random &) { use(opened, folder); });
}
