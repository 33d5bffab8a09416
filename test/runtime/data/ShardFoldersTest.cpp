//===- ShardFoldersTest.cpp - Folders of data files -----------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/data/ShardFolders.h"

#include "test/runtime/data/DataFolder.h"

#include <algorithm>

namespace chimera::runtime {
namespace {

using namespace test;

class ShardFoldersTest : public DataFolder {
protected:
  std::string fill(const std::string &name,
                   const std::vector<std::string> &files) {
    std::filesystem::create_directory(folder / name);
    for (const std::string &file : files)
      writeBytes(name + "/" + file, "");
    return (folder / name).string();
  }
  void expectRefusal(const std::string &given, const std::string &why) {
    try {
      filesOfFolders({given});
      ADD_FAILURE() << "accepted; expected: " << why;
    } catch (const std::runtime_error &error) {
      EXPECT_NE(std::string(error.what()).find(why), std::string::npos)
          << error.what();
    }
  }
};

TEST(IsBeforeByNumbers, ReadsDigitsAsNumbers) {
  const std::vector<std::string> expected = {
      "",       "1.npy", "2.npy", "10.npy", "a",    "a-9-b", "a-010",
      "a-10-a", "a-100", "a01",   "a1",     "a1b2", "a1b10", "b"};
  for (unsigned seed = 0; seed < 20; ++seed) {
    std::vector<std::string> names = expected;
    std::rotate(names.begin(), names.begin() + seed % 14, names.end());
    std::ranges::reverse(names);
    std::ranges::sort(names, isBeforeByNumbers);
    EXPECT_EQ(names, expected);
  }
}

TEST_F(ShardFoldersTest, StandForTheirFiles) {
  const std::string pixels =
      fill("pixels", {"p-10.npy", "p-9.npy", ".hidden.npy", "README", "a.npz"});
  const std::string all = fill("all", {"b.npz", "a.npz", "a.npy"});
  const std::string tokens = fill("tokens", {"1.bin", "0.bin", "0.idx"});
  EXPECT_EQ(
      filesOfFolders(
          {"one.bin", "pixels=" + pixels, all, "pixels=a.npy", tokens, "-"}),
      (std::vector<std::string>{"one.bin", "pixels=" + pixels + "/p-9.npy",
                                "pixels=" + pixels + "/p-10.npy",
                                all + "/a.npz", all + "/b.npz", "pixels=a.npy",
                                tokens + "/0.bin", tokens + "/1.bin", "-"}));
}

TEST_F(ShardFoldersTest, RefusesOtherFolders) {
  const std::string none = fill("none", {"a.npy", "a.txt"});
  expectRefusal(none, "cannot train on the files in the folder '" + none +
                          "': expected files named *.safetensors, *.npz or "
                          "*.bin (for files *.npy, give FIELD=FOLDER), got "
                          "none");
  expectRefusal("pixels=" + fill("other", {"a.npz"}),
                "expected files named *.npy, got none");
  const std::string both = fill("both", {"a.npz", "b.bin"});
  expectRefusal(both, "expected files of one kind, got 'b.bin' and 'a.npz'");
}

} // namespace
} // namespace chimera::runtime
