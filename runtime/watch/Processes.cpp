//===- Processes.cpp - States of processes in /proc -----------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/watch/Processes.h"

#include <fstream>
#include <string>

using namespace chimera::runtime;

/// The state of a process as a letter, as in proc(5) and ps. 0 if it is
/// unknown.
static char stateOf(int32_t pid) {
  if (pid == 0)
    return 0;
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  if (!std::getline(file, text))
    return 0;
  // The state is after the name of the program, which is in parentheses and may
  // itself contain parentheses. So search for the last ") ".
  size_t name = text.rfind(") ");
  return name != std::string::npos && name + 2 < text.size() ? text[name + 2]
                                                             : '\0';
}

bool chimera::runtime::isStopped(int32_t pid) {
  char state = stateOf(pid);
  return state == 'T' || state == 't';
}
bool chimera::runtime::isZombie(int32_t pid) { return stateOf(pid) == 'Z'; }
bool chimera::runtime::isRunning(int32_t pid) {
  char state = stateOf(pid);
  return state != 0 && state != 'Z' && state != 'X';
}
bool chimera::runtime::isAsleep(int32_t pid) { return stateOf(pid) == 'S'; }
