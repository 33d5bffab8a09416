//===- PassiveOpenMP.cpp - Restart with OpenMP threads that sleep ---------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/PassiveOpenMP.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <unistd.h>
#include <vector>

void chimera::reexecWithPassiveOpenMP(uint32_t threads) {
  if (threads < 2 || std::getenv("OMP_WAIT_POLICY"))
    return;
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');)
    words.push_back(word);
  std::vector<char *> arguments;
  for (std::string &word : words)
    arguments.push_back(word.data());
  arguments.push_back(nullptr);
  if (words.empty() || setenv("OMP_WAIT_POLICY", "passive", 1) != 0)
    return;
  std::fflush(nullptr);
  execv("/proc/self/exe", arguments.data());
  // execv failed, so continue without the setting.
}
