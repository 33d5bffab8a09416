//===- LogFileTest.cpp - Log files that grow and are then renamed ---------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/train/LogFile.h"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <optional>
#include <string>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

using namespace chimera::runtime;
namespace fs = std::filesystem;

namespace {
class LogFileTest : public testing::Test {
protected:
  LogFileTest()
      : folder(fs::path(testing::TempDir()) /
               ("chimera-log-" + std::to_string(getpid()))),
        path(folder / "log"), part(folder / "log.part") {
    fs::create_directory(folder);
  }
  ~LogFileTest() override { fs::remove_all(folder); }

  static std::string read(const fs::path &path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static void write(const fs::path &path, const std::string &text) {
    std::ofstream(path) << text;
  }
  /// The text of the exception that `action` throws, or an empty string.
  template <typename Action> static std::string errorOf(Action action) {
    try {
      action();
    } catch (const std::runtime_error &error) {
      return error.what();
    }
    return {};
  }
  std::string errorOfOpening(const fs::path &log) {
    return errorOf([&] { LogFile file(log); });
  }

  fs::path folder, path, part;
};

TEST_F(LogFileTest, isRenamedWhenCompleteAndKeepsAnOldPart) {
  write(path, "an older log");
  write(part, "what a run that died has left");
  LogFile log(path);
  EXPECT_EQ(read(folder / "log.1"), "what a run that died has left");
  log.append("one\n");
  EXPECT_EQ(read(part), "one\n");
  EXPECT_EQ(read(path), "an older log");
  log.append("two\n");
  log.complete();
  EXPECT_EQ(read(path), "one\ntwo\n");
  EXPECT_EQ(read(folder / "log.2"), "an older log");
  EXPECT_FALSE(fs::exists(part));
}

TEST_F(LogFileTest, keepsTheLogsOfAllRuns) {
  for (int run = 1; run <= 12; ++run) {
    LogFile log(path);
    log.append(std::to_string(run));
    if (run % 3 != 0) // every third run is killed
      log.complete();
  }
  // The expected contents of the numbered logs, sorted by run.
  const char *const expected[] = {"1", "2", "3", "4", "5",
                                  "6", "7", "8", "9", "10"};
  std::vector<std::string> kept;
  for (int number = 1; fs::exists(folder / ("log." + std::to_string(number)));
       ++number)
    kept.push_back(read(folder / ("log." + std::to_string(number))));
  std::vector<std::string> all(kept);
  std::ranges::sort(all, {}, [](const std::string &run) { return stoi(run); });
  EXPECT_EQ(all,
            std::vector<std::string>(std::begin(expected), std::end(expected)));
  EXPECT_EQ(read(path), "11");
  EXPECT_EQ(read(part), "12");
}

TEST_F(LogFileTest, keepsNumberedFiles) {
  write(folder / "log.1", "somebody's");
  write(part, "what a run that died has left");
  LogFile log(path);
  EXPECT_EQ(read(folder / "log.1"), "somebody's");
  EXPECT_EQ(read(folder / "log.2"), "what a run that died has left");
}

TEST_F(LogFileTest, namesNoEmptyLog) {
  { LogFile log(path); } // the log of a run that died before its first step
  LogFile log(path);
  EXPECT_FALSE(fs::exists(folder / "log.1"));
}

TEST_F(LogFileTest, leavesWhatIsNotComplete) {
  std::optional<LogFile> log(path);
  log->append("one\n");
  log.reset();
  EXPECT_EQ(read(part), "one\n");
  EXPECT_FALSE(fs::exists(path));
}

TEST_F(LogFileTest, isWrittenByOneRunAtATime) {
  LogFile log(path);
  log.append("one\n");
  EXPECT_EQ(errorOfOpening(path), "cannot write the log " + part.string() +
                                      ": another run is writing it");
  EXPECT_EQ(read(part), "one\n");
  log.complete();
  LogFile next(path);
  next.append("two\n");
  EXPECT_EQ(read(path), "one\n");
}

// Processes start and end runs at the same time, with the same log file. Each
// run must either get its own log or be refused. Complete logs must stay
// complete.
TEST_F(LogFileTest, isCompleteIfRunsOverlap) {
  constexpr int kProcesses = 4, kRuns = 25;
  for (int child = 0; child < kProcesses; ++child) {
    pid_t pid = fork();
    ASSERT_GE(pid, 0);
    if (pid == 0) {
      std::string line = std::to_string(child) + "\n";
      for (int completed = 0; completed < kRuns;) {
        std::string error = errorOf([&] {
          LogFile log(path);
          log.append(line);
          log.append(line);
          log.complete();
          ++completed;
        });
        if (!error.empty() && !error.ends_with("another run is writing it"))
          _exit(1);
        if (!error.empty())
          usleep(100);
      }
      _exit(0);
    }
  }
  int running = kProcesses;
  while (running > 0) {
    int status = 0;
    if (pid_t ended = waitpid(-1, &status, WNOHANG); ended > 0) {
      --running;
      EXPECT_EQ(status, 0) << "expected no other error";
    }
    std::string text = read(path);
    if (!text.empty()) {
      EXPECT_EQ(text, text.substr(0, 2) + text.substr(0, 2));
    }
  }
  EXPECT_FALSE(fs::exists(part));
  // No log may be lost: each numbered log has one run's lines.
  for (int number = 1; number < kProcesses * kRuns; ++number)
    EXPECT_EQ(read(folder / ("log." + std::to_string(number))).size(), 4u);
}

TEST_F(LogFileTest, keepsLinks) {
  fs::create_directory(folder / "below");
  fs::create_symlink("below/target", path);
  for (int run = 0; run < 2; ++run) { // first without the target, then with it
    LogFile log(path);
    log.append(std::to_string(run));
    EXPECT_TRUE(fs::exists(folder / "below" / "target.part"));
    log.complete();
    EXPECT_TRUE(fs::is_symlink(path));
    EXPECT_EQ(read(folder / "below" / "target"), std::to_string(run));
  }
  EXPECT_EQ(read(folder / "below" / "target.1"), "0");
}

TEST_F(LogFileTest, saysWhatIsWrong) {
  fs::create_directory(part);
  EXPECT_EQ(errorOfOpening(path),
            "cannot write the log " + part.string() + ": Is a directory");
  fs::remove(part);
  EXPECT_EQ(errorOf([] { LogFile("/dev/full").append("text"); }),
            "cannot write the log /dev/full: No space left on device");
  std::string lost = folder / "none" / "log";
  EXPECT_EQ(errorOfOpening(lost), "cannot write the log " + lost +
                                      ".part: No such file or directory");

  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit small = before;
  small.rlim_cur = 1000;
  auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  std::string error =
      errorOf([&] { LogFile(path).append(std::string(5000, 'x')); });
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(error,
            "cannot write the log " + part.string() + ": File too large");
}

/// Keeps and drops the lines that say so.
LogFile::Line classify(std::string_view line, bool) {
  return line.starts_with("keep")   ? LogFile::Line::Keep
         : line.starts_with("drop") ? LogFile::Line::Drop
                                    : LogFile::Line::Unknown;
}

TEST_F(LogFileTest, continuesALog) {
  const std::tuple<std::string, std::string, uint64_t> cases[] = {
      {"", "", 0},
      {"keep 1\nkeep 2\n", "keep 1\nkeep 2\n", 0},
      {"keep 1\ndrop\nkeep 2\ndrop\nkeep 3\n", "keep 1\nkeep 2\nkeep 3\n", 0},
      {"drop\n", "", 0},
      {"drop\nkeep 1\n", "keep 1\n", 0},
      // Lines that a crash has damaged.
      {"keep 1\n?\nkeep 2\n\n", "keep 1\nkeep 2\n", 2},
      // An incomplete last line.
      {"keep 1\nkeep", "keep 1\n", 0},
      {"keep", "", 0}};
  for (const fs::path &old : {part, path})
    for (const auto &[text, kept, unknown] : cases) {
      write(old, text);
      LogFile log(path, classify);
      EXPECT_EQ(log.unknownLines(), unknown);
      EXPECT_EQ(log.isUnchanged(), old == path);
      log.append("new\n");
      EXPECT_FALSE(log.isUnchanged());
      EXPECT_FALSE(fs::exists(path));
      EXPECT_EQ(read(part), kept + "new\n");
      log.complete();
      EXPECT_EQ(read(path), kept + "new\n");
      EXPECT_FALSE(fs::exists(part));
      fs::remove(path);
    }
  // Without an old log, it begins a new one. With both, the unfinished one is
  // newer.
  LogFile(path, classify).complete();
  EXPECT_EQ(read(path), "");
  write(path, "keep old\n");
  write(part, "keep new\n");
  LogFile(path, classify).complete();
  EXPECT_EQ(read(path), "keep new\n");
  EXPECT_EQ(read(folder / "log.1"), "keep old\n");
}

TEST_F(LogFileTest, changesNothingBeforeTheFirstText) {
  for (const fs::path &old : {part, path}) {
    write(old, "keep 1\ndrop\n");
    { LogFile log(path, classify); } // a run that ends before its first step
    EXPECT_EQ(read(old), "keep 1\ndrop\n");
    EXPECT_FALSE(fs::exists(old == part ? path : part));
    fs::remove(old);
  }
}

TEST_F(LogFileTest, continuesNoOtherFile) {
  for (const fs::path &old : {part, path}) {
    // A file with one line that has no end is not the begin of a log either.
    for (const char *text : {"# Notes\nkeep 1\n", "# Notes"}) {
      write(old, text);
      EXPECT_EQ(errorOf([&] { LogFile log(path, classify); }),
                "--log: cannot continue '" + old.string() +
                    "', which is no log of a run: give another file");
      EXPECT_EQ(read(old), text);
    }
    fs::remove(old);
  }
}

TEST_F(LogFileTest, aContinuedLogDoesNotReplaceThatOfAnotherRun) {
  write(path, "keep 1\n");
  LogFile continued(path, classify), other(path);
  other.append("other\n");
  EXPECT_EQ(errorOf([&] { continued.append("new\n"); }),
            "cannot write the log " + part.string() + ": File exists");
  EXPECT_EQ(read(part), "other\n");
  EXPECT_EQ(read(path), "keep 1\n");
}

TEST_F(LogFileTest, writesDevicesThemselves) {
  EXPECT_EQ(temporaryName("/dev/null"), "/dev/null");
  LogFile first("/dev/null"), second("/dev/null");
  for (LogFile *log : {&first, &second}) {
    log->append("text");
    log->complete();
  }
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}
} // namespace
