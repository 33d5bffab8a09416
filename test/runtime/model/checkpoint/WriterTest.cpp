//===- WriterTest.cpp - Writing checkpoints and reading them --------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/checkpoint/Writer.h"

#include "runtime/model/checkpoint/SavedState.h"
#include "test/runtime/model/SmallModel.h"
#include "test/runtime/model/checkpoint/TestFolder.h"

#include <algorithm>
#include <limits>
#include <numeric>

using namespace chimera;
using namespace chimera::runtime;
using namespace chimera::runtime::test;

namespace {
/// The state of one part: numbers that differ for each part and each element.
struct PartState {
  std::vector<double> parameters, optimizer;
};

class WriterTest : public TestFolder {
protected:
  WriterTest() { useModel({}); }

  /// A model in two stages, with layers 0 to 1 and 2 to 3.
  void useModel(const Sizes &sizes) {
    model = sizes;
    program = smallProgram(sizes, {2, 2});
    program.name = "small";
    program.schedule = "1f1b";
    parts.clear();
    states.clear();
    for (uint32_t part : {0u, 1u}) {
      parts.push_back({.number = part, .first = 2 * part, .layers = 2});
      PartState state;
      state.parameters.resize(elementsOf(2 * part, 2));
      state.optimizer.resize(2 * state.parameters.size());
      std::iota(state.parameters.begin(), state.parameters.end(),
                10'000.0 * part);
      std::iota(state.optimizer.begin(), state.optimizer.end(),
                50'000.0 * part + 0.5);
      states.push_back(std::move(state));
    }
  }

  size_t elementsOf(uint32_t first, uint32_t layers) const {
    return static_cast<size_t>(
        program::parameterCount(*program.model, first, layers));
  }

  std::unique_ptr<CheckpointWriter> writer(std::vector<CheckpointPart> own,
                                           bool isRoot, uint64_t keep = 0) {
    return std::make_unique<CheckpointWriter>(
        program, tensorNames, std::move(own),
        CheckpointWriter::Options{.folder = folder,
                                  .keep = keep,
                                  .nonce = 7,
                                  .parts = 2,
                                  .dataDigest = 0x1234,
                                  .isRoot = isRoot});
  }

  void begin(CheckpointWriter &writer, uint64_t step,
             const std::vector<uint32_t> &own, const std::string &fault = "") {
    writer.begin(step, fault, [&](size_t i, Bytes parameters, Bytes optimizer) {
      const PartState &state = states[own[i]];
      std::ranges::copy(std::as_bytes(std::span(state.parameters)),
                        parameters.begin());
      std::ranges::copy(std::as_bytes(std::span(state.optimizer)),
                        optimizer.begin());
    });
  }

  void writeAll(uint64_t step) {
    auto root = writer(parts, true);
    begin(*root, step, {0, 1});
    EXPECT_EQ(root->awaitOwnParts(), "");
    EXPECT_EQ(root->finish("").value().error, "");
  }

  /// The state of layers [first, first + count) as their stage reads it from
  /// the newest checkpoint.
  PartState readLayers(uint32_t first, uint32_t count) {
    std::vector<uint32_t> stages;
    for (uint32_t each : {first, count, 4 - first - count})
      if (each > 0)
        stages.push_back(each);
    const program::ProgramT other = smallProgram(model, stages);
    PartState state;
    state.parameters.resize(elementsOf(first, count));
    state.optimizer.resize(2 * state.parameters.size());
    makeGraphStage(other, first == 0 ? 0 : 1,
                   std::make_shared<SavedState>(
                       other, findCheckpoint(folder).value(), tensorNames))
        ->initialize(bytesOf(state.parameters), bytesOf(state.optimizer));
    return state;
  }

  Sizes model;
  program::ProgramT program;
  WeightNames tensorNames;
  std::vector<CheckpointPart> parts;
  std::vector<PartState> states;
};

TEST_F(WriterTest, isCompleteWhenAllPartsAreWritten) {
  auto root = writer({parts[1]}, true), other = writer({parts[0]}, false);
  begin(*root, 30, {1});
  EXPECT_EQ(root->awaitOwnParts(), "");
  EXPECT_FALSE(root->poll());
  EXPECT_FALSE(findCheckpoint(folder));
  begin(*other, 30, {0});
  EXPECT_EQ(other->awaitOwnParts(), "");
  EXPECT_FALSE(other->finish(""));
  const CheckpointOutcome outcome = root->finish("").value();
  EXPECT_EQ(outcome.step, 30u);
  EXPECT_EQ(outcome.path, folder / "step-00000030");
  EXPECT_EQ(outcome.error, "");
  EXPECT_FALSE(root->poll());
  EXPECT_EQ(names("step-00000030"),
            (std::set<std::string>{"model-00001-of-00002.safetensors",
                                   "model-00002-of-00002.safetensors",
                                   "model.safetensors.index.json",
                                   "optimizer-00001-of-00002.safetensors",
                                   "optimizer-00002-of-00002.safetensors",
                                   "optimizer.safetensors.index.json",
                                   "training.json"}));
  const CheckpointDescription found = readDescription(outcome.path);
  EXPECT_EQ(found.step, 30u);
  EXPECT_EQ(found.updates, 30u);
  EXPECT_EQ(found.data, "0000000000001234");
  EXPECT_EQ(found.program, "small (1f1b)");
  EXPECT_EQ(outcome.bytes, 3 * sizeof(double) * elementsOf(0, 4));
}

// Without a flush, a step may have several updates. A run that resumes may have
// another number of them in a step than the runs before it.
TEST_F(WriterTest, countsUpdates) {
  program.updates = program::Updates::EachMicroBatch;
  program.micro_batches = 8;
  CheckpointWriter root(program, tensorNames, parts,
                        {.folder = folder,
                         .nonce = 7,
                         .parts = 2,
                         .firstStep = 20,
                         .firstUpdate = 20,
                         .isRoot = true});
  begin(root, 30, {0, 1});
  EXPECT_EQ(root.awaitOwnParts(), "");
  EXPECT_EQ(readDescription(root.finish("").value().path).updates, 20u + 80u);
}

TEST_F(WriterTest, writesNoStateThatIsNotFinite) {
  const std::vector<PartState> good = states;
  for (const bool isWeight : {true, false}) {
    states = good;
    (isWeight ? states[1].parameters : states[1].optimizer).back() =
        std::numeric_limits<double>::infinity();
    auto root = writer(parts, true);
    begin(*root, 30, {0, 1});
    const std::string fault = root->awaitOwnParts();
    EXPECT_EQ(fault, "the weights or the optimizer state of part 2 of 2 are "
                     "not finite: the last update was too large");
    const CheckpointOutcome outcome = root->finish(fault).value();
    EXPECT_EQ(outcome.error, fault);
    EXPECT_EQ(outcome.path, "");
    EXPECT_FALSE(findCheckpoint(folder));
  }
}

TEST_F(WriterTest, isReadForAnyLayers) {
  writeAll(5);
  PartState whole;
  std::vector<double> squares;
  for (const PartState &part : states) {
    const auto middle =
        part.optimizer.begin() + static_cast<ptrdiff_t>(part.parameters.size());
    whole.parameters.insert(whole.parameters.end(), part.parameters.begin(),
                            part.parameters.end());
    whole.optimizer.insert(whole.optimizer.end(), part.optimizer.begin(),
                           middle);
    squares.insert(squares.end(), middle, part.optimizer.end());
  }
  for (uint32_t first = 0; first < 4; ++first)
    for (uint32_t count = 1; first + count <= 4; ++count) {
      const PartState got = readLayers(first, count);
      const size_t begin = first == 0 ? 0 : elementsOf(0, first);
      const size_t size = elementsOf(first, count);
      auto part = [&](const std::vector<double> &of, size_t from) {
        return std::vector(of.begin() + static_cast<ptrdiff_t>(from),
                           of.begin() + static_cast<ptrdiff_t>(from + size));
      };
      EXPECT_EQ(got.parameters, part(whole.parameters, begin));
      EXPECT_EQ(part(got.optimizer, 0), part(whole.optimizer, begin));
      EXPECT_EQ(part(got.optimizer, size), part(squares, begin));
    }
}

TEST_F(WriterTest, writesTiedParametersOnce) {
  useModel({.tied = true});
  writeAll(5);
  const PartState first = readLayers(0, 2), last = readLayers(2, 2);
  EXPECT_EQ(first.parameters, states[0].parameters);
  // The token embedding is the first parameter, and the last stage has its own
  // copy of it.
  const program::Tied &tied = *program.tied;
  const auto elements = static_cast<ptrdiff_t>(tied.bytes() / sizeof(double));
  const auto offset =
      static_cast<ptrdiff_t>(tied.last_offset() / sizeof(double));
  std::vector<double> expected = states[1].parameters;
  std::copy_n(states[0].parameters.begin(), elements,
              expected.begin() + offset);
  EXPECT_EQ(last.parameters, expected);
  expected = states[1].optimizer;
  const auto second = static_cast<ptrdiff_t>(states[1].parameters.size());
  std::copy_n(states[0].optimizer.begin(), elements, expected.begin() + offset);
  std::copy_n(states[0].optimizer.begin() +
                  static_cast<ptrdiff_t>(states[0].parameters.size()),
              elements, expected.begin() + second + offset);
  EXPECT_EQ(last.optimizer, expected);
}

TEST_F(WriterTest, hasNoOptimizerFilesWithoutState) {
  program.optimizer->name = program::kSgd;
  for (PartState &state : states)
    state.optimizer.clear();
  writeAll(5);
  for (const std::string &name : names("step-00000005"))
    EXPECT_FALSE(name.starts_with("optimizer")) << name;
}

TEST_F(WriterTest, givesUpIfARankHasAFault) {
  auto root = writer({parts[0]}, true), other = writer({parts[1]}, false);
  for (uint64_t step : {10, 20}) {
    begin(*root, step, {0});
    begin(*other, step, {1}, step == 10 ? "it is broken" : "");
    EXPECT_EQ(root->awaitOwnParts(), "");
    const std::string fault = other->awaitOwnParts();
    EXPECT_EQ(fault, step == 10 ? "it is broken" : "");
    other->finish(fault);
    const CheckpointOutcome outcome = root->finish(fault).value();
    EXPECT_EQ(outcome.error, fault);
    EXPECT_EQ(outcome.path.empty(), step == 10);
    EXPECT_EQ(names().size(), step == 10 ? 1u : 2u);
  }
}

TEST_F(WriterTest, reportsAFolderThatIsGone) {
  auto root = writer(parts, true);
  std::filesystem::remove_all(folder);
  begin(*root, 10, {0, 1});
  const std::string fault = root->awaitOwnParts();
  EXPECT_NE(fault.find("cannot create '" + folder.string()), std::string::npos);
  EXPECT_EQ(root->finish(fault).value().error, fault);
  std::filesystem::create_directory(folder);
}

TEST_F(WriterTest, endsWithoutTheOtherParts) {
  auto root = writer({parts[0]}, true);
  begin(*root, 10, {0});
  root.reset();
  EXPECT_EQ(names(), (std::set<std::string>{".lock"}));
}

TEST_F(WriterTest, keepsTheNewest) {
  auto root = writer(parts, true, /*keep=*/2);
  for (uint64_t step : {1, 2, 3, 4}) {
    begin(*root, step, {0, 1});
    EXPECT_EQ(root->finish(root->awaitOwnParts()).value().error, "");
  }
  EXPECT_EQ(names(),
            (std::set<std::string>{".lock", "step-00000003", "step-00000004"}));
}

TEST_F(WriterTest, comparesChecksums) {
  writeAll(5);
  const std::string name = "step-00000005/model-00002-of-00002.safetensors";
  std::string text = read(name);
  text[text.size() - 3] ^= 1;
  write(name, text);
  EXPECT_EQ(errorOf([&] { readLayers(0, 2); }), "");
  const std::string error = errorOf([&] { readLayers(2, 2); });
  EXPECT_NE(error.find("cannot resume from '"), std::string::npos) << error;
  EXPECT_NE(error.find("expected the checksum "), std::string::npos) << error;
  EXPECT_NE(error.find("the files are damaged. Resume from another checkpoint"),
            std::string::npos)
      << error;
}
} // namespace
