//===- arrays-mutants.cpp - Randomly changed files of arrays --------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Changes files of arrays (.npy, safetensors) at random and loads samples from
// those that are accepted. See Mutants.h.
//
//===----------------------------------------------------------------------===//

#include "test/runtime/data/ArraysFixture.h"
#include "test/runtime/model/Mutants.h"

using namespace chimera;
using namespace chimera::runtime;
using namespace chimera::runtime::test;

namespace {

struct Opened {
  std::unique_ptr<ArrayData> data;
  std::vector<std::string> names;
};

/// Changes the text of a .npy header: a word is replaced by another one.
void changeWords(std::string &bytes, Random &random) {
  static const char *words[] = {"'descr'",
                                "'shape'",
                                "False",
                                "True",
                                "(",
                                ")",
                                ",",
                                "{",
                                "}",
                                "'",
                                "'<f4'",
                                "'<i8'",
                                "'|b1'",
                                "0",
                                "-1",
                                "2",
                                "18446744073709551616",
                                "4611686018427387904",
                                "'fortran_order'",
                                "[",
                                "\n",
                                "\"",
                                ":",
                                " ",
                                "999999999"};
  const std::string from = oneOf(words, random), to = oneOf(words, random);
  std::vector<size_t> places;
  for (size_t at = bytes.find(from); at != std::string::npos;
       at = bytes.find(from, at + 1))
    places.push_back(at);
  if (!places.empty())
    bytes.replace(oneOf(places, random), from.size(), to);
}

Opened openMutant(const Folder &folder, Random &random) {
  Opened opened;
  std::vector<ArrayFileName> files;
  const auto add = [&](const std::string &field, const std::string &name,
                       std::string bytes) {
    if (below(random, 4) == 0)
      change(bytes, random);
    files.push_back({field, folder.write(name, bytes, bytes.size())});
    opened.names.push_back(name);
  };
  int first = 0;
  for (uint64_t shard = 0, shards = 1 + below(random, 3); shard < shards;
       ++shard) {
    const int end = first + 3 + static_cast<int>(below(random, 30));
    const std::string at = std::to_string(shard);
    if (below(random, 3) == 0) {
      auto members = npzMembersOf(first, end);
      for (auto &[name, bytes] : members)
        if (below(random, 8) == 0)
          changeWords(bytes, random);
      add("", at + ".npz", zipOf(members, below(random, 2) == 0));
    } else if (below(random, 2)) {
      nlohmann::json header = headerOfSamples(first, end);
      for (uint64_t changes = below(random, 3); changes > 0; --changes)
        change(pick(header, random), header, random);
      add("", at + ".safetensors",
          safetensorsOf(header, dataOfSamples(first, end)));
    } else {
      const std::string n = std::to_string(end - first);
      const auto addNpy = [&](const char *field, const char *descr,
                              const std::string &shape,
                              const std::string &elements) {
        std::string bytes = npyOf(npyHeader(descr, shape), elements,
                                  static_cast<char>(1 + below(random, 3)));
        if (below(random, 8) == 0)
          changeWords(bytes, random);
        add(field, at + field + ".npy", bytes);
      };
      addNpy("pixels", "<f4", "(" + n + ", 2, 3)", pixelsOf(first, end));
      addNpy("known", "|b1", "(" + n + ",)", knownOf(first, end));
      addNpy("classes", "<i8", "(" + n + ",)", classesOf(first, end));
    }
    first = end;
  }
  const program::ProgramT program = programOfArrays();
  static const double shares[] = {0, 0.1, 0.5, 0.999};
  opened.data = std::make_unique<ArrayData>(
      files, program, oneOf(shares, random),
      below(random, 2) ? LastBatch::Drop : LastBatch::Fill);
  return opened;
}

void load(DataSource &data, uint64_t step) {
  for (uint64_t index = 0; index < 4; ++index) {
    Guarded<std::byte> inputs(2 * 25), labels(2 * 8);
    try {
      data.load(program::ValueKind::Tokens, {step, index}, inputs.span());
      data.load(program::ValueKind::Labels, {step, index}, labels.span());
    } catch (...) {
      inputs.check();
      labels.check();
      throw;
    }
    inputs.check();
    labels.check();
    for (std::byte known : inputs.span().subspan(48))
      if (known > std::byte{1})
        fault("expected 0 or 1 as a boolean");
  }
}

void use(Opened opened, const Folder &folder, Random &random) {
  // Sometimes shorten a file that is already open.
  if (below(random, 16) == 0)
    folder.resize(oneOf(opened.names, random), below(random, 300));
  opened.data->digest();
  for (uint64_t step : {0, 1, 7})
    load(*opened.data, step);
  load(*opened.data, random());
  const auto held = opened.data->heldOut(24); // throws if there are none
  for (uint64_t pass : {0, 2})
    load(*held, pass);
}

} // namespace

int main(int argc, char **argv) {
  const Folder folder;
  return mutantsMain(
      argc, argv, "Changes files of arrays and reads what is accepted.",
      [&](uint64_t, Random &random) { return openMutant(folder, random); },
      [&](Opened opened, Random &random) {
        use(std::move(opened), folder, random);
      });
}
