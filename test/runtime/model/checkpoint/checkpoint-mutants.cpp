//===- checkpoint-mutants.cpp - Randomly changed checkpoints --------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Changes the files of small checkpoints at random, and resumes from those that
// are accepted. Each stage must then have the weights and the optimizer state
// that were saved: all of them have checksums. Often the checksum of a changed
// training.json is made right again, so that its other values are believed. See
// Mutants.h.
//
//===----------------------------------------------------------------------===//

#include "runtime/model/checkpoint/SavedState.h"
#include "runtime/model/checkpoint/Writer.h"
#include "runtime/model/graph/GraphStage.h"
#include "test/runtime/model/Mutants.h"
#include "test/runtime/model/SmallModel.h"

#include <cstring>
#include <map>

using namespace chimera;
using namespace chimera::runtime;
using namespace chimera::runtime::test;

namespace {
using Files = std::map<std::string, std::string>; ///< contents by name
using Memory = std::vector<std::byte>;

constexpr char kCheckpoint[] = "step-00000007";

/// The memory of all stages.
struct State {
  std::vector<Memory> weights, optimizer;
  bool operator==(const State &) const = default;
};

struct Sample {
  program::ProgramT program;
  Files files;
  State state;
};

/// The state of all stages when they begin with this checkpoint.
State stateOf(const program::ProgramT &program,
              const std::shared_ptr<const InitialValues> &values) {
  State state;
  for (uint32_t s = 0; s < program.stages.size(); ++s) {
    Memory &weights =
        state.weights.emplace_back(program.stages[s].weights_bytes());
    Memory &optimizer =
        state.optimizer.emplace_back(program.stages[s].optimizer_bytes());
    makeGraphStage(program, s, values)->initialize(weights, optimizer);
  }
  return state;
}

std::shared_ptr<SavedState> openCheckpoint(const program::ProgramT &program,
                                           const std::string &folder) {
  const std::optional<std::string> found = findCheckpoint(folder);
  if (!found)
    throw std::runtime_error("expected a checkpoint");
  return std::make_shared<SavedState>(program, *found, WeightNames());
}

/// Writes a checkpoint of a program with two stages, and reads its files.
Sample sampleOf(const Sizes &sizes, const Folder &folder) {
  Sample sample{smallProgram(sizes, {2, sizes.layers}), {}, {}};
  const std::string kept = (folder.where() / "kept").string();
  {
    const WeightNames names;
    CheckpointWriter writer(
        sample.program, names,
        {{.number = 0, .first = 0, .layers = 2},
         {.number = 1, .first = 2, .layers = sizes.layers}},
        {.folder = kept, .parts = 2, .dataDigest = 77, .isRoot = true});
    writer.begin(7, "", [](size_t part, Bytes parameters, Bytes optimizer) {
      uint8_t value = static_cast<uint8_t>(part);
      // The highest byte of a number stays 0, so all numbers are finite.
      for (Bytes bytes : {parameters, optimizer})
        for (size_t i = 0; i < bytes.size(); ++i)
          bytes[i] = i % 4 == 3 ? std::byte(0) : std::byte(value++ * 37);
    });
    const auto outcome = writer.finish(writer.awaitOwnParts());
    if (!outcome || !outcome->error.empty())
      fault("cannot write the sample: " + (outcome ? outcome->error : ""));
  }
  sample.state = stateOf(sample.program, openCheckpoint(sample.program, kept));
  for (const auto &entry :
       std::filesystem::directory_iterator(kept + "/" + kCheckpoint)) {
    std::ifstream file(entry.path(), std::ios::binary);
    sample.files[entry.path().filename()] = {
        std::istreambuf_iterator<char>(file), {}};
  }
  std::filesystem::remove_all(kept);
  return sample;
}

std::vector<Sample> samples(const Folder &folder) {
  std::vector<Sample> all;
  all.push_back(sampleOf({.layers = 2}, folder));
  all.push_back(sampleOf(
      {.layers = 2, .type = program::DataType::Float32, .tied = true}, folder));
  return all;
}

void changeJson(std::string &text, Random &random) {
  Json root = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (root.is_discarded())
    return;
  for (uint64_t i = below(random, 3) + 1; i > 0; --i)
    change(pick(root, random), root, random);
  text = root.dump(1) + "\n";
}

/// Makes the checksum of training.json right again (Description.h).
void correctChecksum(std::string &text) {
  constexpr std::string_view kKey = "\"checksum\": \"";
  const size_t at = text.find(kKey) + kKey.size();
  if (text.find(kKey) == std::string::npos || at + 16 > text.size())
    return;
  text.replace(at, 16, 16, '0');
  text.replace(at, 16, checksumOf(std::as_bytes(std::span(text))));
}

/// Changes values of the header of a safetensors file.
void changeHeader(std::string &file, Random &random) {
  uint64_t length = 0;
  if (file.size() < sizeof length)
    return;
  std::memcpy(&length, file.data(), sizeof length);
  if (length > file.size() - sizeof length)
    return;
  std::string header = file.substr(sizeof length, length);
  changeJson(header, random);
  const uint64_t changed = header.size();
  file = std::string(reinterpret_cast<const char *>(&changed), sizeof changed) +
         header + file.substr(sizeof length + length);
}

/// Changes one file, removes it, or gives it the content of another one.
void changeFile(Files &files, Random &random) {
  auto one = [&] {
    return std::next(files.begin(),
                     static_cast<ptrdiff_t>(below(random, files.size())));
  };
  const auto file = one();
  const bool isJson = file->first.ends_with(".json");
  switch (below(random, 16)) {
  case 0:
    files.erase(file);
    return;
  case 1:
    file->second = one()->second;
    return;
  case 2:
  case 3:
  case 4:
    change(file->second, random);
    break;
  default:
    isJson ? changeJson(file->second, random)
           : changeHeader(file->second, random);
  }
  if (file->first == kTrainingFile && below(random, 4) > 0)
    correctChecksum(file->second);
}

/// The folder of the checkpoint. Writes only what differs from the mutant
/// before.
class Disk {
public:
  explicit Disk(const Folder &folder) : folder(folder) {
    std::filesystem::create_directory(path());
  }
  std::string path() const { return (folder.where() / kCheckpoint).string(); }
  void put(const Files &files) {
    for (const auto &[name, text] : written)
      if (!files.contains(name))
        folder.remove(std::string(kCheckpoint) + "/" + name);
    for (const auto &[name, text] : files)
      if (auto old = written.find(name);
          old == written.end() || old->second != text)
        folder.write(std::string(kCheckpoint) + "/" + name, text, text.size());
    written = files;
  }

private:
  const Folder &folder;
  Files written;
};

struct Opened {
  const Sample *sample;
  std::shared_ptr<SavedState> values;
};

Opened openMutant(const Sample &sample, uint64_t number, Disk &disk,
                  Random &random) {
  Files files = sample.files;
  for (uint64_t i = number == 0 ? 0 : below(random, 2) + 1; i > 0; --i)
    changeFile(files, random);
  disk.put(files);
  return {&sample, openCheckpoint(sample.program, disk.path())};
}

void use(const Opened &opened) {
  const program::ProgramT &program = opened.sample->program;
  const CheckpointDescription &saved = opened.values->description();
  opened.values->digest();
  noteOfChanges(saved, describeCheckpoint(program, saved.step, 100, 77));
  if (stateOf(program, opened.values) != opened.sample->state)
    fault("expected the state that was saved");
}
} // namespace

int main(int argc, char **argv) {
  const Folder folder;
  const std::vector<Sample> all = samples(folder);
  Disk disk(folder);
  return mutantsMain(
      argc, argv, "Changes checkpoints and resumes from what is accepted.",
      [&](uint64_t number, Random &random) {
        return openMutant(oneOf(all, random), number, disk, random);
      },
      [](const Opened &opened, Random &) { use(opened); });
}
