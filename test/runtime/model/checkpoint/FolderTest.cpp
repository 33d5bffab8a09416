//===- FolderTest.cpp - A folder of checkpoints ---------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/checkpoint/Folder.h"

#include "test/runtime/model/checkpoint/TestFolder.h"

#include <optional>
#include <thread>

using namespace chimera::runtime;
using namespace std::chrono_literals;

namespace {
using FolderTest = chimera::runtime::test::TestFolder;
using Names = std::set<std::string>;

TEST_F(FolderTest, namesFilesAsHuggingFace) {
  EXPECT_EQ(partName(kModelFiles, 0, 2, ".safetensors"),
            "model-00001-of-00002.safetensors");
  EXPECT_EQ(indexName(kOptimizerFiles), "optimizer.safetensors.index.json");
}

TEST_F(FolderTest, findsTheNewestCompleteCheckpoint) {
  EXPECT_EQ(findCheckpoint(folder / "nowhere"), std::nullopt);
  EXPECT_EQ(findCheckpoint(folder), std::nullopt);
  // Other names do not count.
  write("step-00000300.0123456789abcdef.partial/training.json", "");
  for (const char *name : {"step-9", "step-000000400", "step-", "step-x",
                           "step-00000500 ", "steps-00000600", "backup"})
    write(std::string(name) + "/training.json", "");
  EXPECT_EQ(findCheckpoint(folder), std::nullopt);
  write("step-00000020/training.json", "");
  write("step-00000100/training.json", "");
  EXPECT_EQ(findCheckpoint(folder), folder / "step-00000100");
  // More than eight digits sort as numbers.
  write("step-1000000000/training.json", "");
  EXPECT_EQ(findCheckpoint(folder), folder / "step-1000000000");
}

TEST_F(FolderTest, refusesAnIncompleteCheckpoint) {
  write("step-00000100/training.json", "");
  write("step-00000200/model.safetensors.index.json", "");
  const std::string expected = "'" + (folder / "step-00000200").string() +
                               "' is not complete: it has no training.json. "
                               "Move it away, to continue from the one "
                               "before it";
  EXPECT_EQ(errorOf([&] { findCheckpoint(folder); }), expected);
  EXPECT_EQ(errorOf([&] {
              CheckpointFolder taken(folder, 100, folder / "step-00000100");
            }),
            expected);
}

TEST_F(FolderTest, takesACheckpointUnderAnyName) {
  write("step-00000020/training.json", "");
  EXPECT_EQ(findCheckpoint(folder / "step-00000020"), folder / "step-00000020");
  write("backup/training.json", "");
  EXPECT_EQ(findCheckpoint(folder / "backup"), folder / "backup");
}

TEST_F(FolderTest, comparesStepsWithNames) {
  const std::string path = folder / "step-00000099";
  EXPECT_EQ(faultOfStepName(path, 99), "");
  EXPECT_EQ(faultOfStepName(path + "/", 99), "");
  EXPECT_EQ(faultOfStepName(folder / "backup", 15), "");
  for (const char *end : {"", "/"})
    EXPECT_EQ(faultOfStepName(path + end, 15),
              "expected a checkpoint after 99 steps, as its name says, got one "
              "after 15: rename it to step-00000015");
}

TEST_F(FolderTest, saysWhatIsNoFolder) {
  write("file", "");
  // Weights without the rest, under any name and also given with a slash.
  for (const char *name : {"step-00000030", "best"}) {
    write(std::string(name) + "/model-00001-of-00001.safetensors", "");
    for (const char *end : {"", "/"}) {
      const std::string path = (folder / name).string() + end;
      EXPECT_EQ(errorOf([&] { findCheckpoint(path); }),
                "'" + path +
                    "' is not a complete checkpoint: it has no training.json. "
                    "To start from its weights alone, give --load");
    }
    std::filesystem::remove_all(folder / name);
  }
  EXPECT_EQ(errorOf([&] { findCheckpoint(folder / "file"); }),
            "expected a folder of checkpoints, got the file '" +
                (folder / "file").string() + "'");
  EXPECT_EQ(errorOf([&] { findCheckpoint(folder / "file" / "kept"); }),
            "expected a folder of checkpoints, but '" +
                (folder / "file").string() + "' is a file");
  EXPECT_EQ(errorOf([&] { findCheckpoint(folder / "step-00000007"); }),
            "expected a checkpoint, but '" +
                (folder / "step-00000007").string() + "' does not exist");
  EXPECT_NE(errorOf([&] {
              CheckpointFolder taken(folder / "file", 0);
            }).find("cannot create the folder of checkpoints"),
            std::string::npos);
}

TEST_F(FolderTest, isWrittenByOneRunAtATime) {
  const std::string path = folder / "new" / "kept";
  {
    CheckpointFolder first(path, 0);
    EXPECT_EQ(errorOf([&] { CheckpointFolder second(path, 0, {}, 100ms); }),
              "another run writes its checkpoints to '" + path +
                  "': give another --checkpoint folder");
  }
  EXPECT_EQ(errorOf([&] { CheckpointFolder second(path, 0, {}, 0ms); }), "");
}

TEST_F(FolderTest, waitsForARunThatEnds) {
  std::optional<CheckpointFolder> first(std::in_place, folder, 0);
  std::thread ending([&] {
    std::this_thread::sleep_for(200ms);
    first.reset();
  });
  EXPECT_EQ(errorOf([&] { CheckpointFolder second(folder, 0, {}, 60s); }), "");
  ending.join();
}

// A run that resumes looks for the newest checkpoint after the run before it.
TEST_F(FolderTest, canBeAwaited) {
  int waits = 0;
  const auto onWait = [&] { ++waits; };
  awaitOtherRun(folder / "nowhere", onWait);
  awaitOtherRun(folder, onWait); // no run has written there
  std::optional<CheckpointFolder> other(std::in_place, folder, 0);
  EXPECT_EQ(errorOf([&] { awaitOtherRun(folder, onWait, 10ms); }),
            "another run writes its checkpoints to '" + folder.string() +
                "': give another --checkpoint folder");
  EXPECT_EQ(waits, 1);
  std::thread ends([&] {
    std::this_thread::sleep_for(100ms);
    write("step-00000300/training.json", "");
    other.reset();
  });
  awaitOtherRun(folder, onWait, 1h);
  EXPECT_EQ(waits, 2);
  EXPECT_EQ(findCheckpoint(folder), folder / "step-00000300");
  ends.join();
  // Several ranks may wait at the same time, and leave no lock.
  awaitOtherRun(folder, onWait);
  EXPECT_EQ(waits, 2);
  CheckpointFolder(folder, 300, folder / "step-00000300", 0ms);
}

TEST_F(FolderTest, removesWhatKilledRunsLeave) {
  write("step-00000300.0123456789abcdef.partial/model.safetensors", "");
  write(".run-1234", "");
  CheckpointFolder taken(folder, 0);
  EXPECT_EQ(names(), (Names{".lock"}));
}

TEST_F(FolderTest, keepsCheckpointsOfOtherRuns) {
  write("step-00000050/training.json", "");
  write("step-00000100/training.json", "");
  write("other/step-00000200/training.json", "");
  EXPECT_EQ(errorOf([&] { CheckpointFolder taken(folder, 0); }),
            "'" + folder.string() +
                "' has a checkpoint after 100 steps, and this run begins at "
                "the first step: give --resume " +
                folder.string() +
                " to continue from it, or another --checkpoint folder");
  const std::string older = folder / "step-00000050",
                    newest = folder / "step-00000100";
  EXPECT_NE(
      errorOf([&] {
        CheckpointFolder taken(folder, 50, older);
      }).find("begins after the 50 steps of '" + older + "': give --resume"),
      std::string::npos);
  EXPECT_NE(errorOf([&] {
              CheckpointFolder taken(folder, 200,
                                     folder / "other" / "step-00000200");
            }).find("begins after the 200 steps of '"),
            std::string::npos);
  EXPECT_EQ(errorOf([&] { CheckpointFolder taken(folder, 100, newest); }), "");
}

TEST_F(FolderTest, removesOnlyWhatEarlierRunsLeft) {
  write("step-00000100/training.json", "");
  write("step-00000100.partial/training.json", "");
  write("step-00000200.0123456789abcdef.partial/model", "");
  write("mine.partial/file", "");
  write("notes", "");
  CheckpointFolder taken(folder, 100, folder / "step-00000100");
  EXPECT_EQ(names(),
            (Names{".lock", "step-00000100", "mine.partial", "notes"}));
}

TEST_F(FolderTest, publishesAndKeepsTheNewest) {
  CheckpointFolder taken(folder, 0);
  for (uint64_t step : {10, 20, 30, 40}) {
    const std::string partial = partialFolder(folder, step, 7);
    EXPECT_TRUE(partial.ends_with(".0000000000000007.partial")) << partial;
    std::filesystem::create_directory(partial);
    std::ofstream(partial + "/training.json") << step;
    EXPECT_EQ(taken.publish(partial, step),
              folder / ("step-000000" + std::to_string(step)));
  }
  EXPECT_EQ(taken.keepNewest(0), "");
  EXPECT_EQ(names().size(), 5u);
  EXPECT_EQ(taken.keepNewest(2), "");
  EXPECT_EQ(names(), (Names{".lock", "step-00000030", "step-00000040"}));
  EXPECT_EQ(taken.keepNewest(2), "");
  EXPECT_EQ(read("step-00000040/training.json"), "40");
}
} // namespace
