//===- Calls.cpp - Recorded calls and injected failures -------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/runtime/cuda/Calls.h"
#include "test/runtime/cuda/SoftwareGpu.h"

#include <atomic>
#include <map>
#include <mutex>
#include <utility>

using namespace chimera::runtime;

namespace {
struct Fault {
  std::string name;
  int error;
  int after;
};

struct Calls {
  std::mutex mutex; ///< guards the members below
  std::map<std::string, uint32_t> numbers;
  std::vector<std::string> recorded;
  std::vector<Fault> faults;

  std::atomic<bool> isRecording{false}, hasFaults{false};
};

Calls &all() {
  static Calls *calls = new Calls; // leaked, because threads may outlive main
  return *calls;
}
} // namespace

void test::recordCalls(bool record) { all().isRecording = record; }
bool test::isRecording() {
  return all().isRecording.load(std::memory_order_relaxed);
}
void test::record(std::string call) {
  std::lock_guard lock(all().mutex);
  all().recorded.push_back(std::move(call));
}
std::vector<std::string> test::calls() {
  std::lock_guard lock(all().mutex);
  return all().recorded;
}
void test::clearCalls() {
  std::lock_guard lock(all().mutex);
  all().recorded.clear();
}

void test::failCall(const std::string &name, int error, int after) {
  std::lock_guard lock(all().mutex);
  all().faults.push_back({name, error, after});
  all().hasFaults = true;
}
int test::faultOf(const char *name) {
  if (!all().hasFaults.load(std::memory_order_relaxed))
    return 0;
  std::lock_guard lock(all().mutex);
  std::vector<Fault> &faults = all().faults;
  for (Fault &fault : faults)
    if (fault.name == name && fault.after-- == 0) {
      int error = fault.error;
      faults.erase(faults.begin() + (&fault - &faults[0]));
      all().hasFaults = !faults.empty();
      return error;
    }
  return 0;
}

uint32_t test::newNumber(const std::string &kind) {
  std::lock_guard lock(all().mutex);
  return ++all().numbers[kind];
}

void test::forgetCalls() {
  recordCalls(false);
  std::lock_guard lock(all().mutex);
  all().numbers.clear();
  all().recorded.clear();
  all().faults.clear();
  all().hasFaults = false;
}
