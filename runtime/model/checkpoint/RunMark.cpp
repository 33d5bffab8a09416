//===- RunMark.cpp - A file that shows whether ranks share a folder -------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/checkpoint/RunMark.h"

#include "runtime/program/Output.h"

#include <chrono>
#include <filesystem>
#include <span>
#include <stdexcept>
#include <thread>

using namespace chimera;
using namespace chimera::runtime;

static std::string markIn(const std::string &folder, uint64_t nonce) {
  return folder + "/" + kRunMark + std::to_string(nonce);
}

RunMark::RunMark(const std::string &folder, uint64_t nonce)
    : path(markIn(folder, nonce)) {
  std::string error;
  if (!program::writeAtomically(path, {}, error))
    throw std::runtime_error(error);
}

RunMark::~RunMark() {
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
}

bool RunMark::isSeen(const std::string &folder, uint64_t nonce) {
  constexpr std::chrono::seconds kPatience{5};
  constexpr std::chrono::milliseconds kLook{50};
  const auto begin = std::chrono::steady_clock::now();
  do {
    std::error_code ignored;
    if (std::filesystem::exists(markIn(folder, nonce), ignored))
      return true;
    std::this_thread::sleep_for(kLook);
  } while (std::chrono::steady_clock::now() - begin < kPatience);
  return false;
}
