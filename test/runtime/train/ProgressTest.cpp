//===- ProgressTest.cpp - Progress lines and logs of a run ----------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/train/Progress.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <nlohmann/json.hpp>

using namespace chimera::runtime;

namespace {
std::string temporaryFile(const char *name) {
  return testing::TempDir() + "/chimera-" + std::to_string(getpid()) + name;
}

TEST(Progress, LogsLossesToTheLastBit) {
  std::string file = temporaryFile("log.jsonl");
  double loss = 0.1 + 0.2;
  {
    Progress progress({2, 100, true, file});
    progress.step({0,
                   Loss{0, loss},
                   0.5,
                   0.1 * 3,
                   {.residentBytes = 1234567890123,
                    .deviceBytes = 55,
                    .waiting = 0.25,
                    .measured = 2}});
    progress.step({1, std::nullopt, 0.75});
    EXPECT_FALSE(std::filesystem::exists(file)) << "before it is complete";
    progress.finish({{"instructions", 7}});
  }
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  auto first = nlohmann::json::parse(line);
  EXPECT_EQ(first["step"], 1);
  EXPECT_EQ(first["loss"].get<double>(), loss);
  EXPECT_EQ(first["learning_rate"].get<double>(), 0.1 * 3);
  EXPECT_EQ(first["tokens_per_s"], 200.0);
  EXPECT_EQ(first["seconds"], 0.5);
  EXPECT_EQ(first["resident_bytes"].get<uint64_t>(), 1234567890123u);
  EXPECT_EQ(first["device_bytes"], 55);
  EXPECT_EQ(first["waiting"], 0.25);
  EXPECT_FALSE(first.contains("samples_per_s"));
  std::getline(stream, line);
  // The line leaves out the fields that the step does not have.
  EXPECT_EQ(nlohmann::ordered_json::parse(line).dump(),
            R"({"step":2,"learning_rate":0.0,"tokens_per_s":400.0,)"
            R"("seconds":0.75})");
  std::getline(stream, line);
  EXPECT_EQ(nlohmann::json::parse(line)["summary"]["instructions"], 7);
  EXPECT_FALSE(std::getline(stream, line));
  EXPECT_FALSE(std::filesystem::exists(file + ".part"));
  std::filesystem::remove(file);
}

/// The output while a run continues a log with this text after 5 steps, or the
/// error.
std::string continueLog(const std::string &text) {
  const std::string file = temporaryFile("old.jsonl");
  std::ofstream(file) << text;
  testing::internal::CaptureStdout();
  std::string error;
  try {
    Progress({.steps = 9, .logFile = file, .firstStep = 5, .resumes = true});
  } catch (const std::exception &caught) {
    error = caught.what();
  }
  std::filesystem::remove(file);
  return testing::internal::GetCapturedStdout() + error;
}

TEST(Progress, TellsWhichStepsALogLacks) {
  const std::string three = R"({"step":3,"loss":1.5,"seconds":1})";
  EXPECT_TRUE(
      continueLog(three + "\n").ends_with(" has no lines of steps 4 to 5\n"));
  const std::string four = R"({"step":4,"seconds":1})"
                           "\n";
  const std::string five = R"({"step":5,"seconds":1})"
                           "\n";
  EXPECT_TRUE(
      continueLog(three + "\n" + five).ends_with(" has no line of step 4\n"));
  EXPECT_EQ(continueLog(three + "\n" + four + five), "");
  EXPECT_EQ(continueLog(""), "");
  // A run was killed while it wrote its first line.
  EXPECT_EQ(continueLog(three.substr(0, 4)), "");
}

/// A log of something else may have steps, too.
TEST(Progress, ContinuesNoLogOfSomethingElse) {
  for (const char *text :
       {"{\"step\":2}\n", "{\"step\":2,\"notes\":\"mine\"}\n{\"step\":7}\n",
        "{\"mine\":[1,2]}", "xxxxxxxxx"})
    EXPECT_NE(continueLog(text).find("which is no log of a run"),
              std::string::npos)
        << text;
}

TEST(Progress, LogsSamplesIfTheyHaveNoTokens) {
  const std::string file = temporaryFile("samples.jsonl");
  {
    Progress progress(
        {.steps = 2, .quiet = true, .logFile = file, .samplesPerStep = 8});
    progress.step({0, Loss{0, 1}, 0.25});
    progress.step({1, Loss{0, 1}, 0.25}); // took no time that can be measured
    progress.finish({});
  }
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  auto step = nlohmann::json::parse(line);
  EXPECT_EQ(step["samples_per_s"], 32);
  EXPECT_FALSE(step.contains("tokens_per_s"));
  std::getline(stream, line);
  EXPECT_FALSE(nlohmann::json::parse(line).contains("samples_per_s"));
  std::filesystem::remove(file);
}

TEST(Progress, RefusesALogThatCannotBeWritten) {
  EXPECT_THROW(Progress({1, 1, true, "/nowhere/at/all.jsonl"}),
               std::runtime_error);
}

TEST(Progress, ContinuesWithoutALogThatFails) {
  testing::internal::CaptureStdout();
  Progress progress({2, 100, false, "/dev/full"});
  EXPECT_THROW(progress.step({0, Loss{0, 2.5}, 1}), std::runtime_error);
  EXPECT_NO_THROW(progress.step({1, Loss{0, 2.5}, 7}));
  EXPECT_NO_THROW(progress.finish({}));
  std::string shown = testing::internal::GetCapturedStdout();
  EXPECT_NE(shown.find("step 1/2 "), std::string::npos) << shown;
  EXPECT_NE(shown.find("step 2/2 "), std::string::npos) << shown;
}

TEST(Progress, WritesOneFileIfTheOtherFails) {
  const std::string folder = temporaryFile("events");
  {
    Progress progress({.steps = 2,
                       .quiet = true,
                       .logFile = "/dev/full",
                       .eventFolder = folder});
    EXPECT_THROW(progress.step({0, Loss{0, 2.5}, 1}), std::runtime_error);
    EXPECT_NO_THROW(progress.step({1, Loss{0, 3.5}, 7}));
    EXPECT_NO_THROW(progress.evaluation(2, {4.5, 5.5}, true));
    EXPECT_NO_THROW(progress.finish({}));
  }
  const std::filesystem::path file =
      std::filesystem::directory_iterator(folder)->path();
  std::ifstream stream(file, std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(stream), {});
  for (float value : {2.5f, 3.5f, 4.5f, 5.5f})
    EXPECT_NE(bytes.find(std::string("\x15") +
                         std::string(reinterpret_cast<char *>(&value), 4)),
              bytes.npos)
        << value;
  EXPECT_NE(bytes.find("validation/loss"), bytes.npos);
  EXPECT_NE(bytes.find("validation/accuracy"), bytes.npos);
  std::filesystem::remove_all(folder);
}

TEST(Progress, WarnsOnceIfNoLabelCounts) {
  testing::internal::CaptureStdout();
  Progress progress({9, 1000, false, ""});
  for (uint64_t step = 2; step < 5; ++step)
    progress.step({step, Loss{0, 0, step == 2}, 1});
  Progress({9, 1000, true, ""}).step({1, Loss{0, 0, false}, 1});
  const std::string shown = testing::internal::GetCapturedStdout();
  EXPECT_NE(shown.find("no label of step 4 counts: its loss is 0, and it "
                       "changes no weight"),
            std::string::npos)
      << shown;
  EXPECT_EQ(shown.find("no label"), shown.rfind("no label"));
}

TEST(Progress, ShowsStepLossSpeedAndRemainingTime) {
  testing::internal::CaptureStdout();
  Progress progress({4, 1000, false, ""});
  progress.step({0, Loss{0, 2.5}, 10, 3e-4});
  EXPECT_EQ(testing::internal::GetCapturedStdout(),
            "step 1/4  loss 2.5000  lr 3.00e-04  100 tokens/s  ETA 0:30\n");
}

TEST(Progress, ShowsSamplesOrStepsIfThereAreNoTokens) {
  const auto shown = [](const Progress::Options &options) {
    testing::internal::CaptureStdout();
    Progress progress(options);
    progress.step({0, Loss{0, 2.5}, 4, 3e-4});
    return testing::internal::GetCapturedStdout();
  };
  EXPECT_EQ(shown({.steps = 1 + 2 * 3600 / 4, .samplesPerStep = 6}),
            "step 1/1801  loss 2.5000  lr 3.00e-04  1.50 samples/s  "
            "ETA 2:00:00\n");
  // The loss of stages without a model is a hash.
  EXPECT_EQ(shown({.steps = 1 + 3596 / 4}),
            "step 1/900  0.25 steps/s  ETA 59:56\n");
}

TEST(Progress, WritesALineEveryFiveSecondsAndAtTheEnd) {
  testing::internal::CaptureStdout();
  Progress progress({.steps = 100, .tokensPerStep = 10});
  for (uint64_t step = 0; step < 100; ++step)
    progress.step({step, Loss{0, 1}, 0.1 * static_cast<double>(step + 1)});
  const std::string shown = testing::internal::GetCapturedStdout();
  EXPECT_EQ(std::ranges::count(shown, '\n'), 3) << shown;
  EXPECT_EQ(shown.find("step 1/100 "), 0u) << shown;
  EXPECT_NE(shown.find("\nstep 100/100 "), std::string::npos) << shown;
}
} // namespace
