//===- HostId.cpp - Tells hosts apart -------------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/system/HostId.h"

#include <fstream>
#include <unistd.h>

std::string chimera::runtime::bootId() {
  std::string id;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> id;
  return id;
}

std::string chimera::runtime::hostId() {
  char name[256] = {};
  gethostname(name, sizeof(name) - 1);
  return std::string(name) + "/" + bootId();
}
