//===- OutputTest.cpp - Files that are written completely or not at all ---===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/program/Output.h"

#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

using namespace chimera::program;
namespace fs = std::filesystem;

namespace {

class OutputTest : public testing::Test {
protected:
  OutputTest()
      : folder(fs::temp_directory_path() /
               ("chimera-output-" + std::to_string(getpid()))) {
    fs::create_directory(folder);
  }
  ~OutputTest() override { fs::remove_all(folder); }

  bool write(const std::string &path, const std::string &text) {
    return writeAtomically(path, {std::as_bytes(std::span(text))}, error);
  }
  static std::string read(const fs::path &path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  size_t files() const {
    return std::distance(fs::directory_iterator(folder), {});
  }

  /// The names of files that are created in the folder, or moved to these
  /// names, while `action` runs.
  template <typename Action>
  std::vector<std::string> namesGivenBy(Action action) {
    int watch = ::inotify_init1(IN_NONBLOCK);
    EXPECT_GE(
        ::inotify_add_watch(watch, folder.c_str(), IN_CREATE | IN_MOVED_TO), 0);
    action();
    std::vector<std::string> names;
    alignas(inotify_event) char events[8192];
    ssize_t bytes = ::read(watch, events, sizeof(events));
    for (ssize_t at = 0; at < bytes;) {
      auto *event = reinterpret_cast<inotify_event *>(events + at);
      names.push_back(event->name);
      at += static_cast<ssize_t>(sizeof(inotify_event)) + event->len;
    }
    ::close(watch);
    return names;
  }

  fs::path folder;
  std::string error;
};

TEST_F(OutputTest, replacesAFileAndLeavesNothingElse) {
  fs::path path = folder / "f";
  ASSERT_TRUE(write(path, "old"));
  fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
  ASSERT_TRUE(write(path, "new"));
  EXPECT_EQ(read(path), "new");
  EXPECT_EQ(fs::status(path).permissions(),
            fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_EQ(files(), 1u);
}

// A new file has no name until it is complete. So a killed process leaves no
// incomplete file.
TEST_F(OutputTest, writesANewFileDirectly) {
  std::vector<std::string> names =
      namesGivenBy([&] { ASSERT_TRUE(write(folder / "f", "new")) << error; });
  EXPECT_EQ(names, std::vector<std::string>{"f"});
}

TEST_F(OutputTest, writesAReplacementUnderATemporaryName) {
  ASSERT_TRUE(write(folder / "f", "old"));
  std::vector<std::string> names =
      namesGivenBy([&] { ASSERT_TRUE(write(folder / "f", "new")) << error; });
  ASSERT_EQ(names.size(), 2u);
  EXPECT_TRUE(names[0].starts_with("f." + std::to_string(getpid()) + "."));
  EXPECT_TRUE(names[0].ends_with(".tmp"));
  EXPECT_EQ(names[1], "f");
}

TEST_F(OutputTest, removesWhatKilledProcessesHaveLeft) {
  // Only temporary files of killed processes are removed. Files with other
  // names belong to other programs. A process that still runs has locked its
  // file.
  std::vector<std::string> kept = {"f.1.2.tmp.1", "f.1.tmp",  "f..2.tmp",
                                   "f.1..tmp",    "f.tmp",    "f.1.2.3.tmp",
                                   "f.a.2.tmp",   "g.1.2.tmp"};
  for (const std::string &name : kept)
    std::ofstream(folder / name) << "kept";
  for (const char *name : {"f.1.2.tmp", "f.12345.0.tmp", "f.7.7.tmp"})
    std::ofstream(folder / name) << "left";
  fs::create_symlink("f.7.7.tmp", folder / "f.8.8.tmp");
  int living = ::open((folder / "f.7.7.tmp").c_str(), O_RDONLY);
  ASSERT_EQ(::flock(living, LOCK_EX), 0);
  ASSERT_TRUE(write(folder / "f", "new")) << error;
  for (const std::string &name : kept)
    EXPECT_TRUE(fs::exists(folder / name)) << name;
  EXPECT_TRUE(fs::exists(folder / "f.7.7.tmp"));
  EXPECT_TRUE(fs::is_symlink(folder / "f.8.8.tmp"));
  EXPECT_EQ(files(), kept.size() + 3);
  ::close(living);
}

TEST_F(OutputTest, keepsWhatIsThereIfAsked) {
  std::string text = "new";
  auto writeNew = [&](const fs::path &path) {
    return writeAtomically(
        path, {std::as_bytes(std::span(text))}, error, [] { return true; },
        IfExists::Fail);
  };
  EXPECT_TRUE(writeNew(folder / "f")) << error;
  text = "newer";
  EXPECT_FALSE(writeNew(folder / "f"));
  EXPECT_EQ(error, (folder / "f").string() + ": cannot write: File exists");
  EXPECT_EQ(read(folder / "f"), "new");
  EXPECT_FALSE(writeNew("/dev/null"));
  EXPECT_EQ(files(), 1u);
}

TEST_F(OutputTest, keepsTheOldFileWhereTheNewOneDoesNotFit) {
  fs::path path = folder / "f";
  ASSERT_TRUE(write(path, "good"));
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit small = before;
  small.rlim_cur = 1000;
  auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  bool written = write(path, std::string(5000, 'x'));
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_FALSE(written);
  EXPECT_EQ(error, path.string() + ": cannot write: File too large");
  EXPECT_EQ(read(path), "good");
  EXPECT_EQ(files(), 1u);
}

TEST_F(OutputTest, removesDiscardedFiles) {
  fs::path path = folder / "f";
  ASSERT_TRUE(write(path, "good"));
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  std::string text = "bad";
  // No process reads the pipe, so opening it would block for ever.
  for (const char *name : {"f", "new", "pipe"})
    EXPECT_FALSE(writeAtomically(folder / name,
                                 {std::as_bytes(std::span(text))}, error,
                                 [&] {
                                   error = "unwanted";
                                   return false;
                                 }))
        << name;
  EXPECT_EQ(error, "unwanted");
  EXPECT_EQ(read(path), "good");
  EXPECT_EQ(files(), 2u);
}

TEST_F(OutputTest, keepsLinksAndDevices) {
  fs::create_symlink(folder / "target", folder / "link");
  ASSERT_TRUE(write(folder / "target", "old"));
  ASSERT_TRUE(write(folder / "link", "new"));
  EXPECT_TRUE(fs::is_symlink(folder / "link"));
  EXPECT_EQ(read(folder / "target"), "new");
  fs::create_symlink("/dev/null", folder / "null");
  ASSERT_TRUE(write(folder / "null", "gone"));
  EXPECT_TRUE(fs::is_symlink(folder / "null"));
  EXPECT_FALSE(isRegularOrNew(folder / "null"));
  EXPECT_TRUE(isRegularOrNew(folder / "link"));
  EXPECT_TRUE(isRegularOrNew(folder / "none"));
}

TEST_F(OutputTest, followsLinksToMissingFiles) {
  fs::create_directory(folder / "below");
  fs::create_symlink("below/target", folder / "link");
  fs::create_symlink(folder / "link", folder / "below" / "chain");
  EXPECT_EQ(targetOf(folder / "below" / "chain"), folder / "below" / "target");
  EXPECT_EQ(checkOutput(folder / "link"), "");
  ASSERT_TRUE(write(folder / "below" / "chain", "new"));
  EXPECT_TRUE(fs::is_symlink(folder / "link"));
  EXPECT_TRUE(fs::is_symlink(folder / "below" / "chain"));
  EXPECT_EQ(read(folder / "below" / "target"), "new");
  EXPECT_EQ(targetOf(folder / "none"), folder / "none");

  fs::create_symlink("none/target", folder / "lost");
  EXPECT_EQ(checkOutput(folder / "lost"),
            (folder / "lost").string() +
                ": cannot write: No such file or directory");
  EXPECT_FALSE(write(folder / "lost", "text"));
  EXPECT_TRUE(fs::is_symlink(folder / "lost"));
}

TEST_F(OutputTest, writesDeletedFilesInPlace) {
  int file = ::open((folder / "f").c_str(), O_RDWR | O_CREAT, 0600);
  ASSERT_GE(file, 0);
  std::string path = "/proc/self/fd/" + std::to_string(file);
  EXPECT_TRUE(isRegularOrNew(path));
  fs::remove(folder / "f");
  EXPECT_FALSE(isRegularOrNew(path));
  ASSERT_TRUE(write(path, "text that is longer"));
  ASSERT_TRUE(write(path, "text")) << error;
  EXPECT_EQ(read(path), "text");
  EXPECT_EQ(files(), 0u);
  ::close(file);
}

TEST_F(OutputTest, recognisesAFileWhileOthersReplaceIt) {
  fs::path file = folder / "file", next = folder / "next";
  std::ofstream(file) << "first";
  std::jthread others([&](std::stop_token stop) {
    while (!stop.stop_requested()) {
      std::ofstream(next) << "next";
      fs::rename(next, file);
    }
  });
  for (int look = 0; look < 20'000; ++look)
    ASSERT_TRUE(isRegularOrNew(file)) << "at look " << look;
}

TEST_F(OutputTest, knowsAFileByAnyOfItsPaths) {
  fs::create_directory(folder / "below");
  fs::create_directory_symlink("below", folder / "other");
  fs::create_symlink("below/f", folder / "link");
  auto expect = [&](const char *left, const char *right, bool same) {
    EXPECT_EQ(areSameFile(folder / left, folder / right), same)
        << left << " " << right;
    EXPECT_EQ(areSameFile(folder / right, folder / left), same)
        << left << " " << right;
  };
  for (bool exists : {false, true}) {
    if (exists) {
      ASSERT_TRUE(write(folder / "below" / "f", "text"));
    }
    for (const char *path :
         {"below/f", "below/./f", "below/../below/f", "other/f", "link"}) {
      expect("below/f", path, true);
      expect("f", path, false);
    }
    expect("link", "below/f.part", false);
  }
  expect("none/f", "none/f", false);
  EXPECT_FALSE(areSameFile("/dev/null", "/dev/null")) << "holds nothing";
  EXPECT_FALSE(areSameFile("", ""));
}

TEST_F(OutputTest, saysWhatIsWrong) {
  fs::create_symlink("/dev/full", folder / "full");
  EXPECT_FALSE(write(folder / "full", "text"));
  EXPECT_EQ(error, (folder / "full").string() +
                       ": cannot write: No space left on device");
  EXPECT_FALSE(write(folder, "text"));
  EXPECT_EQ(error, folder.string() + ": cannot write: Is a directory");
  EXPECT_FALSE(write(folder / "none" / "f", "text"));
  EXPECT_EQ(files(), 1u);
}

TEST_F(OutputTest, isCheckedBeforehand) {
  EXPECT_EQ(checkOutput(folder / "new"), "");
  EXPECT_EQ(checkOutput("/dev/null"), "");
  EXPECT_EQ(checkOutput(folder),
            folder.string() + ": cannot write: Is a directory");
  std::string missing = folder / "none" / "f";
  EXPECT_EQ(checkOutput(missing),
            missing + ": cannot write: No such file or directory");
  ASSERT_TRUE(write(folder / "f", "text"));
  std::string below = folder / "f" / "g";
  EXPECT_EQ(checkOutput(below), below + ": cannot write: Not a directory");
  EXPECT_NE(checkOutput(""), "");
}

} // namespace
