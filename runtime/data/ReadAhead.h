//===- ReadAhead.h - Reads a rank's samples ahead of time -------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The instructions of a rank say which samples it will load, in which order. A
// thread loads them before the rank needs them, each into a block of memory of
// its own. A rank gets the same samples with and without this thread. An error
// of a load is thrown when the rank asks for that load.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_DATA_READAHEAD_H
#define CHIMERA_RUNTIME_DATA_READAHEAD_H

#include "runtime/data/DataSource.h"
#include "runtime/device/Block.h"

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace chimera::runtime {

/// The values that a load instruction loads: the inputs or the labels of some
/// pieces, one piece after another. Each piece has bytes / pieces.size() bytes.
struct PlannedLoad {
  program::ValueKind kind;
  std::vector<MicroBatch> pieces;
  uint64_t bytes;

  bool operator==(const PlannedLoad &) const = default;
};

/// Loads all pieces into `output`, which has load.bytes bytes.
void loadPieces(DataSource &source, const PlannedLoad &load, Bytes output);

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
  /// reached, and only as much as fits into blocks of `maxBytes` bytes together
  /// (blockBytes). Stops before a load that is larger. The source must outlive
  /// this object.
  ReadAhead(DataSource &source, uint64_t steps, uint64_t maxBytes,
            uint64_t alignment = kBlockAlignment);
  /// Ends the thread. Waits for a load that it has begun.
  ~ReadAhead();

  /// Begins a new plan, and drops what was read for the last one. Without a
  /// thread, because the system has none left, loads are not read ahead.
  void begin(uint64_t firstStep, Plan plan);
  /// Tells that the rank begins this step.
  void reach(uint64_t step);

  /// The same as loadPieces from the source. Waits if the load is next in the
  /// plan and not read yet. A rank that asks for other loads than planned gets
  /// them from the source, and nothing more is read ahead until `begin`. Only
  /// one thread may call this.
  void load(const PlannedLoad &load, Bytes output);
  /// The same, without a copy: `block` is exchanged for the block that has been
  /// filled ahead. Requires memory of makeBlock(load.bytes, alignment).
  void load(const PlannedLoad &load, Block &block);

private:
  struct Item {
    PlannedLoad load;
    Block block;
    bool isReady = false;
    std::exception_ptr error = nullptr; ///< set if the load has failed
  };

  void run(const Plan &plan);
  bool read(const Section &section);
  uint64_t sizeOf(const PlannedLoad &load) const;
  std::optional<Block> findBlock(const PlannedLoad &load);
  std::optional<Block> take(const PlannedLoad &load);
  void giveBack(const PlannedLoad &load, Block block);
  void stop();

  DataSource &source;
  const uint64_t steps, maxBytes, alignment;
  std::thread thread;

  std::mutex mutex; ///< guards all members below
  std::condition_variable changed;
  std::deque<Item> items;                ///< read, or being read; oldest first
  std::multimap<uint64_t, Block> unused; ///< by bytes
  uint64_t allocated = 0;                ///< bytes of all blocks
  uint64_t itemBytes = 0;                ///< bytes of the blocks of all items
  uint64_t reached = 0;                  ///< step
  bool isStopped = true;
  bool isFinished = true;   ///< the thread reads nothing more
  bool rankWaits = false;   ///< for the first item
  bool threadWaits = false; ///< for space or for the rank
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_DATA_READAHEAD_H
