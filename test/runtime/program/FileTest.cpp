//===- FileTest.cpp - Reading and writing program files -------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/program/File.h"
#include "test/runtime/program/Framed.h"
#include "test/runtime/program/SamplePrograms.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

namespace chimera::program {
namespace {

namespace fs = std::filesystem;

constexpr size_t kHeader = 32;

/// A program whose fields differ from their default values. FlatBuffers stores
/// only such fields.
ProgramT fullProgram() {
  ProgramT program = samplePipeline({.workers = 4,
                                     .microBatches = 4,
                                     .bidirectional = true,
                                     .splitBackward = true,
                                     .dataParallel = 2,
                                     .ofModel = true});
  program.optimizer->weight_decay = 0.01;
  program.message_model = MessageModel::Buffered;
  for (auto &worker : program.workers)
    worker->memory_cap = worker->arena_bytes + worker->peak_bytes;
  return program;
}

std::string refusalOf(std::span<const std::byte> bytes) {
  std::string error;
  EXPECT_FALSE(deserialize(bytes, error).has_value());
  return error;
}

/// A test with a folder, which is removed after the test.
class File : public testing::Test {
protected:
  void SetUp() override {
    std::string name = fs::temp_directory_path() / "chimera-file-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder = name;
  }
  void TearDown() override { fs::remove_all(folder); }

  void put(const fs::path &path, std::span<const std::byte> bytes) {
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char *>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  }
  std::string readError(const fs::path &path) {
    std::string error;
    EXPECT_FALSE(deserializeFile(path, error).has_value());
    return error;
  }
  size_t filesInFolder() {
    return static_cast<size_t>(
        std::distance(fs::directory_iterator(folder), {}));
  }

  fs::path folder;
};

bool contains(const std::string &text, const std::string &part) {
  return text.find(part) != std::string::npos;
}

TEST_F(File, RoundTripKeepsEveryField) {
  for (const ProgramT &program : {fullProgram(), samplePipeline()}) {
    std::string error;
    std::vector<std::byte> bytes = serialize(program);
    std::optional<ProgramT> again = deserialize(bytes, error);
    ASSERT_TRUE(again) << error;
    // Compare the JSON dumps, because a dump contains every field. So it shows
    // a field that serialize has lost.
    EXPECT_EQ(dumpJson(*again), dumpJson(program));
    EXPECT_EQ(serialize(*again), bytes);
  }
}

TEST_F(File, WrittenFilesReadBack) {
  ProgramT program = fullProgram();
  fs::path path = folder / "step.chimera";
  std::string error;
  ASSERT_TRUE(serializeFile(program, path, error)) << error;
  EXPECT_EQ(filesInFolder(), 1u);
  std::optional<ProgramT> again = deserializeFile(path, error);
  ASSERT_TRUE(again) << error;
  EXPECT_EQ(dumpJson(*again), dumpJson(program));
}

TEST_F(File, HeaderIsAsDocumented) {
  std::vector<std::byte> bytes = serialize(samplePipeline());
  EXPECT_EQ(std::memcmp(bytes.data(), "CHIMERA\n", 8), 0);
  uint32_t version[2];
  uint64_t size;
  std::memcpy(version, bytes.data() + 8, 8);
  std::memcpy(&size, bytes.data() + 16, 8);
  EXPECT_EQ(version[0], kMajorVersion);
  EXPECT_EQ(version[1], kMinorVersion);
  EXPECT_EQ(size + kHeader, bytes.size());
}

TEST_F(File, EveryTruncationIsRefused) {
  std::vector<std::byte> bytes =
      serialize(samplePipeline({.workers = 2, .microBatches = 2}));
  for (size_t length = 1; length < bytes.size(); ++length) {
    std::string expected =
        "truncated: expected " +
        std::to_string(length < kHeader ? kHeader : bytes.size()) +
        " bytes, got " + std::to_string(length);
    ASSERT_EQ(refusalOf(std::span(bytes).first(length)), expected);
  }
}

TEST_F(File, EmptyFileIsRefused) {
  EXPECT_EQ(refusalOf({}),
            "not a chimera program (expected magic "
            "\"CHIMERA\\n\", got an empty file): chimera-compile writes one");
}

TEST_F(File, ForeignFileIsRefused) {
  std::vector<std::byte> bytes(1000, std::byte('x'));
  EXPECT_EQ(refusalOf(bytes),
            "not a chimera program (expected magic \"CHIMERA\\n\"): "
            "chimera-compile writes one");
}

TEST_F(File, OtherMajorVersionIsRefused) {
  std::vector<std::byte> bytes = serialize(samplePipeline());
  bytes[8] = std::byte(kMajorVersion + 1);
  EXPECT_EQ(refusalOf(bytes), "version " + std::to_string(kMajorVersion + 1) +
                                  ".0: this reader understands major version " +
                                  std::to_string(kMajorVersion));
}

TEST_F(File, OtherMinorVersionIsAccepted) {
  std::vector<std::byte> bytes = serialize(samplePipeline());
  bytes[12] = std::byte(7);
  std::string error;
  EXPECT_TRUE(deserialize(bytes, error)) << error;
}

TEST_F(File, HugeClaimedSizeIsRefused) {
  std::vector<std::byte> bytes = serialize(samplePipeline());
  for (size_t i = 16; i < 24; ++i)
    bytes[i] = std::byte(0xff);
  EXPECT_TRUE(contains(refusalOf(bytes), "bytes of content, got"));
}

TEST_F(File, AppendedBytesAreRefused) {
  std::vector<std::byte> bytes = serialize(samplePipeline());
  bytes.push_back(std::byte(0));
  EXPECT_TRUE(contains(refusalOf(bytes), "appended"));
}

TEST_F(File, EveryFlippedByteIsRefused) {
  std::vector<std::byte> bytes =
      serialize(samplePipeline({.workers = 2, .microBatches = 2}));
  std::mt19937 random(7);
  for (int round = 0; round < 5000; ++round) {
    size_t at = random() % bytes.size();
    // Any minor version is accepted.
    if (at >= 12 && at < 16)
      continue;
    auto change = std::byte(1 + random() % 255);
    bytes[at] ^= change;
    std::string error;
    ASSERT_FALSE(deserialize(bytes, error)) << "byte " << at;
    ASSERT_FALSE(error.empty());
    bytes[at] ^= change;
  }
}

TEST_F(File, MissingFileIsRefused) {
  EXPECT_EQ(readError(folder / "none"),
            (folder / "none").string() +
                ": cannot open: No such file or directory");
}

TEST_F(File, DirectoryIsRefused) {
  EXPECT_EQ(readError(folder),
            folder.string() + ": cannot read: Is a directory");
  std::string error;
  EXPECT_FALSE(serializeFile(samplePipeline(), folder, error));
  EXPECT_EQ(error, folder.string() + ": cannot write: Is a directory");
}

TEST_F(File, FailedWriteLeavesNothing) {
  fs::path path = folder / "missing" / "step.chimera";
  std::string error;
  EXPECT_FALSE(serializeFile(samplePipeline(), path, error));
  EXPECT_TRUE(contains(error, "cannot create a file in its folder")) << error;
  EXPECT_EQ(filesInFolder(), 0u);
}

TEST_F(File, FullDiskIsReported) {
  if (!fs::exists("/dev/full"))
    GTEST_SKIP() << "no /dev/full on this system";
  std::string error;
  EXPECT_FALSE(serializeFile(samplePipeline(), "/dev/full", error));
  EXPECT_EQ(error, "/dev/full: cannot write: No space left on device");
}

TEST_F(File, PipesAreWrittenAndReadDirectly) {
  fs::path path = folder / "pipe";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  ProgramT program = fullProgram();
  std::string writeError, readFault;
  // Check first that the program can be written. Otherwise the reader of the
  // pipe would wait for ever.
  ASSERT_TRUE(serializeFile(program, folder / "file", writeError))
      << writeError;
  bool written = false;
  std::thread writer(
      [&] { written = serializeFile(program, path, writeError); });
  std::optional<ProgramT> again = deserializeFile(path, readFault);
  writer.join();
  EXPECT_TRUE(written) << writeError;
  ASSERT_TRUE(again) << readFault;
  EXPECT_EQ(dumpJson(*again), dumpJson(program));
  EXPECT_TRUE(fs::is_fifo(path));
}

/// The error of deserializeFile for a pipe that contains `bytes` and stays
/// open.
std::string errorOfOpenPipe(std::span<const std::byte> bytes) {
  int ends[2];
  EXPECT_EQ(::pipe(ends), 0);
  EXPECT_EQ(::write(ends[1], bytes.data(), bytes.size()),
            static_cast<ssize_t>(bytes.size()));
  std::string path = "/dev/fd/" + std::to_string(ends[0]), error;
  // If the reader waited for more bytes, the test would hang.
  EXPECT_FALSE(deserializeFile(path, error).has_value());
  ::close(ends[0]);
  ::close(ends[1]);
  return error;
}

TEST_F(File, NoMoreIsReadThanTheHeaderAnnounces) {
  std::vector<std::byte> foreign(1000, std::byte('x'));
  EXPECT_TRUE(contains(errorOfOpenPipe(foreign), "not a chimera program"));
  std::vector<std::byte> bytes =
      serialize(samplePipeline({.workers = 1, .microBatches = 1}));
  ASSERT_LT(bytes.size(), 60000u); // it fits into a pipe
  bytes.push_back(std::byte(0));
  EXPECT_TRUE(contains(errorOfOpenPipe(bytes), "appended"));
  bytes[8] = std::byte(kMajorVersion + 1);
  EXPECT_TRUE(contains(errorOfOpenPipe(bytes),
                       "version " + std::to_string(kMajorVersion + 1)));
}

TEST_F(File, EndlessFileIsRefused) {
  EXPECT_EQ(readError("/dev/zero"),
            "/dev/zero: not a chimera program (expected magic "
            "\"CHIMERA\\n\"): chimera-compile writes one");
}

/// A list of structs with 64-bit members starts at an address that is 4 modulo
/// 8.
TEST_F(File, MisalignedListIsRefused) {
  ProgramT program = samplePipeline({.workers = 1, .microBatches = 1});
  std::vector<std::byte> bytes = serialize(program);
  std::vector<std::byte> payload(bytes.begin() + kHeader, bytes.end());
  const auto *content = flatbuffers::GetRoot<Program>(payload.data());
  const auto *begin = reinterpret_cast<const uint8_t *>(payload.data());
  // Makes the list of buffers of a worker start 4 bytes later. The list then
  // takes the first 32 bits of its data for its length.
  const Worker *worker = content->workers()->Get(0);
  auto at = static_cast<size_t>(
      reinterpret_cast<const uint8_t *>(worker->buffers()) - begin);
  auto field = static_cast<size_t>(
      reinterpret_cast<const flatbuffers::Table *>(worker)->GetAddressOf(
          Worker::VT_BUFFERS) -
      begin);
  auto offset = static_cast<uint32_t>(at + 4 - field);
  uint32_t one = 1;
  std::memcpy(payload.data() + field, &offset, 4);
  std::memcpy(payload.data() + at + 4, &one, 4);
  EXPECT_TRUE(contains(refusalOf(framed(payload)), "malformed"));
  // The file is also refused if the memory that contains it is misaligned.
  std::vector<std::byte> whole = framed(payload), moved(whole.size() + 4);
  std::copy(whole.begin(), whole.end(), moved.begin() + 4);
  EXPECT_TRUE(contains(refusalOf(std::span(moved).subspan(4)), "malformed"));
  moved.resize(bytes.size() + 4);
  std::copy(bytes.begin(), bytes.end(), moved.begin() + 4);
  std::string error;
  EXPECT_TRUE(deserialize(std::span(moved).subspan(4), error)) << error;
}

TEST_F(File, LinksStayLinks) {
  fs::path target = folder / "target", link = folder / "link";
  std::string error;
  ASSERT_TRUE(serializeFile(samplePipeline(), target, error)) << error;
  fs::create_symlink(target, link);
  ASSERT_TRUE(serializeFile(fullProgram(), link, error)) << error;
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_TRUE(deserializeFile(target, error)->model) << error;
}

} // namespace
} // namespace chimera::program
