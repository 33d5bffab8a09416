//===- ReadAhead.h - Reads a rank's samples ahead of time -------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The instructions of a rank say which samples it will load, in which order. A
// thread loads them before the rank needs them, into a ring of memory. A rank
// gets the same samples with and without this thread. An error of a load is
// thrown when the rank asks for that load.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_DATA_READAHEAD_H
#define CHIMERA_RUNTIME_DATA_READAHEAD_H

#include "runtime/data/DataSource.h"

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace chimera::runtime {

/// One call of DataSource::load.
struct PlannedLoad {
  program::ValueKind kind;
  MicroBatch microBatch;
  uint64_t bytes;
};

/// The bytes of the ring that a load takes.
uint64_t ringBytesOf(const PlannedLoad &load);

class ReadAhead {
public:
  /// A part of a run, such as the instructions of a step.
  struct Section {
    uint64_t step; ///< the section is read when this step is near
    std::vector<PlannedLoad> loads;
    /// Called after the loads, on the thread. Its exceptions are ignored.
    std::function<void()> afterLoads = {};
  };
  /// The section with this number, from 0, or none after the last one. Called
  /// on the thread.
  using Plan = std::function<std::optional<Section>(uint64_t number)>;

  /// Reads sections of at most `steps` steps after the one that the rank has
  /// reached, and only as much as fits into `ringBytes`. Stops before a load
  /// that is larger. The source must outlive this object.
  ReadAhead(DataSource &source, uint64_t steps, uint64_t ringBytes);
  /// Ends the thread. Waits for a load that it has begun.
  ~ReadAhead();

  /// Begins a new plan, and drops what was read for the last one. Without a
  /// thread, because the system has none left, loads are not read ahead.
  void begin(uint64_t firstStep, Plan plan);
  /// Tells that the rank begins this step.
  void reach(uint64_t step);

  /// The same as DataSource::load of the source. Waits if the load is next in
  /// the plan and not read yet. A rank that asks for other loads than planned
  /// gets them from the source, and nothing more is read ahead until `begin`.
  /// Only one thread may call this.
  void load(program::ValueKind kind, MicroBatch microBatch, Bytes output);

private:
  struct Item {
    PlannedLoad load;
    uint64_t offset; ///< in the ring
    bool isReady = false;
    std::exception_ptr error = nullptr; ///< set if the load has failed
  };

  void run(const Plan &plan);
  bool read(const Section &section);
  std::optional<uint64_t> findSpace(uint64_t bytes);
  void stop();
  void dropFirst();

  DataSource &source;
  const uint64_t steps, ringBytes;
  std::unique_ptr<std::byte[]> ring;
  std::thread thread;

  std::mutex mutex; ///< guards all members below
  std::condition_variable changed;
  std::deque<Item> items; ///< read, or being read; oldest first
  uint64_t end = 0;       ///< offset after the newest item
  uint64_t used = 0;      ///< bytes of all items
  uint64_t reached = 0;   ///< step
  bool isStopped = true;
  bool isFinished = true;   ///< the thread reads nothing more
  bool rankWaits = false;   ///< for the first item
  bool threadWaits = false; ///< for space or for the rank
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_DATA_READAHEAD_H
