//===- EventFileTest.cpp - Files that TensorBoard reads -------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// test/e2e/event_files.py reads such files with TensorBoard.
//
//===----------------------------------------------------------------------===//

#include "runtime/train/EventFile.h"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <sys/resource.h>
#include <unistd.h>
#include <vector>

using namespace chimera::runtime;
namespace fs = std::filesystem;

namespace {
class EventFileTest : public testing::Test {
protected:
  EventFileTest()
      : folder(fs::path(testing::TempDir()) /
               ("chimera-events-" + std::to_string(getpid()))) {}
  ~EventFileTest() override { fs::remove_all(folder); }

  /// The names of the files in the folder, sorted.
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto &file : fs::directory_iterator(folder))
      names.push_back(file.path().filename());
    std::ranges::sort(names);
    return names;
  }
  /// The data of all records of a file. Checks their lengths and checksums.
  std::vector<std::string> recordsOf(const std::string &name) const {
    std::ifstream file(folder / name, std::ios::binary);
    const std::string bytes(std::istreambuf_iterator<char>(file), {});
    std::vector<std::string> records;
    auto checksumAt = [&](size_t at) {
      uint32_t checksum = 0;
      std::memcpy(&checksum, bytes.data() + at, sizeof checksum);
      return checksum;
    };
    for (size_t at = 0; at + 16 <= bytes.size();) {
      uint64_t length = 0;
      std::memcpy(&length, bytes.data() + at, sizeof length);
      EXPECT_EQ(checksumAt(at + 8), maskedCrc32c(bytes.substr(at, 8)));
      records.push_back(bytes.substr(at + 12, length));
      EXPECT_EQ(checksumAt(at + 12 + length), maskedCrc32c(records.back()));
      at += 16 + length;
    }
    return records;
  }
  static std::string errorOf(const std::string &folder) {
    try {
      EventFile file(folder, 1);
    } catch (const std::runtime_error &error) {
      return error.what();
    }
    return {};
  }

  fs::path folder;
};

// RFC 3720, appendix B.4, and the check value of CRC-32C, both masked.
TEST_F(EventFileTest, hasTheKnownChecksums) {
  EXPECT_EQ(maskedCrc32c(std::string(32, '\0')), 0x0fd7fffau);
  EXPECT_EQ(maskedCrc32c("123456789"), 0xc78ab0e5u);
}

TEST_F(EventFileTest, hasTheEncodingOfProtocolBuffers) {
  const Scalar scalars[] = {{"train/loss", 2.5}, {"x", -1}};
  {
    EventFile file(folder / "below", 301); // makes both folders
    file.append(300, scalars);
    file.complete();
  }
  fs::rename(folder / "below" /
                 fs::directory_iterator(folder / "below")->path().filename(),
             folder / "file");
  const std::vector<std::string> records = recordsOf("file");
  ASSERT_EQ(records.size(), 3u);
  // Each event begins with its time: the key 1 << 3 | 1 and a double.
  for (const std::string &record : records) {
    double time = 0;
    ASSERT_GT(record.size(), 9u);
    EXPECT_EQ(record[0], 9);
    std::memcpy(&time, record.data() + 1, sizeof time);
    EXPECT_NEAR(time, static_cast<double>(::time(nullptr)), 100);
  }
  using namespace std::string_literals;
  EXPECT_EQ(records[0].substr(9), "\x10\x00\x1a\x0d"s
                                  "brain.Event:2"s);
  // Step 301, and a session log with the status START.
  EXPECT_EQ(records[1].substr(9), "\x10\xad\x02\x3a\x02\x08\x01"s);
  // Step 300, and a summary of 17 + 2 and 8 + 2 bytes.
  EXPECT_EQ(records[2].substr(9), "\x10\xac\x02\x2a\x1d"s
                                  "\x0a\x11\x0a\x0a"s
                                  "train/loss"s
                                  "\x15\x00\x00\x20\x40"s
                                  "\x0a\x08\x0a\x01"s
                                  "x"s
                                  "\x15\x00\x00\x80\xbf"s);
}

// TensorBoard reads the files in the order of their names. The clock may have
// been set back.
TEST_F(EventFileTest, hasALaterNameThanOlderFiles) {
  fs::create_directory(folder);
  std::ofstream(folder / "events.out.tfevents.9000000000.host.1");
  std::ofstream(folder / "something else");
  for (int run = 0; run < 3; ++run)
    EventFile(folder, 1).complete();
  const std::vector<std::string> all = names();
  ASSERT_EQ(all.size(), 5u);
  for (int run = 0; run < 3; ++run)
    EXPECT_TRUE(all[run + 1].starts_with("events.out.tfevents.900000000" +
                                         std::to_string(run + 1) + "."))
        << all[run + 1];
}

TEST_F(EventFileTest, isWrittenByOneRunAtATime) {
  {
    EventFile file(folder, 1);
    EXPECT_EQ(errorOf(folder), "cannot write to the folder " + folder.string() +
                                   ": another run is writing to it");
    EXPECT_EQ(names().size(), 1u);
  }
  EXPECT_EQ(errorOf(folder), "");
}

TEST_F(EventFileTest, saysWhatIsWrong) {
  EXPECT_EQ(errorOf("/proc/none"),
            "cannot create the folder /proc/none: No such file or directory");
  std::ofstream(folder.string());
  EXPECT_EQ(errorOf(folder), "cannot create the folder " + folder.string() +
                                 ": Not a directory");
  fs::remove(folder);

  EventFile file(folder, 1);
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit small = before;
  small.rlim_cur = 1000;
  auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::vector<Scalar> scalars(100, {"tag", 1});
  std::string error;
  try {
    file.append(1, scalars);
  } catch (const std::runtime_error &full) {
    error = full.what();
  }
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(error, "cannot write " + (folder / names().at(0)).string() +
                       ": File too large");
}
} // namespace
