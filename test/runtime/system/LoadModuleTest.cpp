//===- LoadModuleTest.cpp - Tests of modules ------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/system/LoadModule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <dlfcn.h>
#include <filesystem>
#include <fstream>
#include <unistd.h>

using namespace chimera::runtime;
namespace fs = std::filesystem;

namespace {
/// A file beside this program, until the test ends.
class LoadModule : public testing::Test {
protected:
  LoadModule()
      : path(fs::read_symlink("/proc/self/exe").parent_path() /
             ("LoadModuleTest-" + std::to_string(getpid()) + ".so")),
        name(path.filename()) {}
  ~LoadModule() override { fs::remove(path); }

  void *load(const char *function) const {
    return loadModule(
        {name.c_str(), function},
        {.missing = "no tests", .needs = "a test", .install = "Write one."});
  }

  /// The error of loading, or an empty text.
  std::string errorOf(const char *function) const {
    try {
      load(function);
    } catch (const std::runtime_error &error) {
      return error.what();
    }
    return {};
  }

  const fs::path path;
  const std::string name;
};

TEST_F(LoadModule, IsMissing) {
  EXPECT_EQ(errorOf("sqrt"), "no tests: expected " + name + " in " +
                                 path.parent_path().string() +
                                 " or ../lib/chimera from there. Write one.");
}

TEST_F(LoadModule, IsNoSharedObject) {
  std::ofstream(path) << "text";
  const std::string error = errorOf("sqrt");
  EXPECT_TRUE(error.starts_with("cannot load " + path.string() + ": "))
      << error;
  EXPECT_TRUE(error.ends_with(". It needs a test. Write one.")) << error;
}

TEST_F(LoadModule, ReturnsTheFunction) {
  Dl_info math{};
  double (*own)(double) = std::sqrt;
  ASSERT_NE(dladdr(reinterpret_cast<void *>(own), &math), 0);
  fs::create_symlink(fs::canonical(math.dli_fname), path);
  auto *root = reinterpret_cast<double (*)(double)>(load("sqrt"));
  EXPECT_EQ(root(9), 3);
  EXPECT_GE(timeLoadingModules().count(), 0);
  EXPECT_EQ(errorOf("chimeraNoSuchFunction"),
            path.string() + ": expected the module of this version of chimera, "
                            "got another: build both together");
}
} // namespace
