//===- ProvenFileTest.cpp - Program files that are proven -----------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/proof/ProvenFile.h"

#include "runtime/program/File.h"
#include "test/runtime/program/SamplePrograms.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <unistd.h>

namespace chimera::program {
namespace {

namespace fs = std::filesystem;

bool contains(const std::string &text, const std::string &part) {
  return text.find(part) != std::string::npos;
}

/// A test with a folder, which is removed after the test.
class ProvenFile : public testing::Test {
protected:
  void SetUp() override {
    std::string name = fs::temp_directory_path() / "chimera-proven-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder = name;
  }
  void TearDown() override { fs::remove_all(folder); }

  size_t filesInFolder() {
    return static_cast<size_t>(
        std::distance(fs::directory_iterator(folder), {}));
  }

  fs::path folder;
};

TEST_F(ProvenFile, WrittenFilesReadBack) {
  ProgramT program = samplePipeline();
  fs::path path = folder / "step.chimera";
  std::string error;
  ASSERT_TRUE(writeProgramFile(program, path, error)) << error;
  std::optional<ProgramT> again = readProgramFile(path, error);
  ASSERT_TRUE(again) << error;
  EXPECT_EQ(serialize(*again), serialize(program));
}

TEST_F(ProvenFile, ReadingNamesFileAndEveryViolation) {
  ProgramT program = samplePipeline();
  program.workers[1]->peak_bytes += 1;
  program.workers[2]->peak_bytes += 1;
  fs::path path = folder / "wrong.chimera";
  std::string error;
  ASSERT_TRUE(serializeFile(program, path, error)) << error;
  EXPECT_FALSE(readProgramFile(path, error));
  EXPECT_EQ(error.find(path.string() + ": refused:\n  worker 1 "), 0u) << error;
  EXPECT_TRUE(contains(error, "\n  worker 2 ")) << error;
}

TEST_F(ProvenFile, RefusedProgramLeavesTheOldFile) {
  fs::path path = folder / "step.chimera";
  std::string error;
  ASSERT_TRUE(writeProgramFile(samplePipeline(), path, error)) << error;
  auto size = fs::file_size(path);
  ProgramT program = samplePipeline({.workers = 2});
  program.workers[0]->peak_bytes += 1;
  EXPECT_FALSE(writeProgramFile(program, path, error));
  EXPECT_TRUE(contains(error, "not written, the program is refused"));
  EXPECT_EQ(fs::file_size(path), size);
  EXPECT_EQ(filesInFolder(), 1u);
}

TEST_F(ProvenFile, IncompleteProgramIsNotWritten) {
  std::string error;
  ProgramT program = samplePipeline();
  program.workers[0] = nullptr;
  EXPECT_FALSE(writeProgramFile(program, folder / "step.chimera", error));
  EXPECT_TRUE(contains(error, "not written, the program is refused")) << error;
  program = samplePipeline();
  program.optimizer = nullptr;
  EXPECT_FALSE(writeProgramFile(program, folder / "step.chimera", error));
  EXPECT_TRUE(contains(error, "expected an optimizer")) << error;
  EXPECT_EQ(filesInFolder(), 0u);
}

TEST(ProvenForRendezvous, NeedsNoProofUnlessItWasProvenForBufferedMessages) {
  ProgramT program = samplePipeline();
  // A proof would find this fault. So proveForRendezvous does not prove
  // programs with these message models again.
  program.workers[1]->peak_bytes += 1;
  for (MessageModel model :
       {MessageModel::Rendezvous, MessageModel::StreamPerPair}) {
    program.message_model = model;
    std::string error;
    EXPECT_TRUE(proveForRendezvous(program, "f", error)) << error;
    EXPECT_EQ(program.message_model, model);
  }
}

TEST(ProvenForRendezvous, IsWhatIsRecorded) {
  ProgramT program = samplePipeline();
  program.message_model = MessageModel::Buffered;
  std::string error;
  EXPECT_TRUE(proveForRendezvous(program, "f", error)) << error;
  EXPECT_EQ(program.message_model, MessageModel::Rendezvous);
}

TEST(ProvenForRendezvous, RefusesWithOneViolation) {
  ProgramT program = samplePipeline();
  program.message_model = MessageModel::Buffered;
  program.workers[1]->peak_bytes += 1;
  program.workers[2]->peak_bytes += 1;
  std::string error;
  EXPECT_FALSE(proveForRendezvous(program, "f", error));
  EXPECT_EQ(error.find("f: refused: proven for buffered messages, but here a "
                       "send may wait for its receive: compile it with "
                       "--messages=rendezvous\n  worker 1 "),
            0u)
      << error;
  EXPECT_FALSE(contains(error, "worker 2")) << error;
}

TEST(ProvenForOneOrder, IsWhatIsRecorded) {
  ProgramT program = samplePipeline();
  std::string error;
  EXPECT_TRUE(proveForStreamPerDevice(program, "f", error)) << error;
  EXPECT_EQ(program.message_model, MessageModel::StreamPerDevice);
}

TEST(ProvenForOneOrder, RefusesWithAViolation) {
  ProgramT program = samplePipeline();
  program.workers[1]->peak_bytes += 1;
  std::string error;
  EXPECT_FALSE(proveForStreamPerDevice(program, "f", error));
  EXPECT_EQ(error.find("f: refused: proven for rendezvous messages, but this "
                       "transport executes all communication of a GPU in one "
                       "order: compile it with --messages=stream-per-device\n"),
            0u)
      << error;
}

} // namespace
} // namespace chimera::program
