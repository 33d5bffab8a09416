//===- Writer.h - A rank's part in writing checkpoints ----------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each rank writes the layers that it owns. A rank copies their state and
// continues to train while a thread writes the copy. When the thread has
// written and synced its files, it writes a report, part-00001-of-00002.json,
// which has the checksums. The thread of the root waits for the reports of all
// parts and then completes the checkpoint. A rank that cannot write its part
// tells the root when the next checkpoint is due, or at the end. See README.md.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_MODEL_CHECKPOINT_WRITER_H
#define CHIMERA_RUNTIME_MODEL_CHECKPOINT_WRITER_H

#include "runtime/model/checkpoint/Folder.h"
#include "runtime/model/checkpoint/Shard.h"

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

namespace chimera::runtime {

/// A part of the checkpoints that one rank writes: the state of these layers.
struct CheckpointPart {
  uint32_t number; ///< from 0, in the order of the layers
  uint32_t first, layers;
};

/// The bytes of the copy of a part.
uint64_t copyBytesOf(const program::ProgramT &program,
                     const CheckpointPart &part);

/// The end of an attempt to write a checkpoint.
struct CheckpointOutcome {
  uint64_t step = 0;  ///< the number of steps before it
  std::string path;   ///< of the complete checkpoint; empty if there is none
  std::string error;  ///< why there is no checkpoint, or an old one remains
  uint64_t bytes = 0; ///< of all its files
  double seconds = 0; ///< from the copy to the end
  double waited = 0;  ///< seconds for which training waited at this rank
};

class CheckpointWriter {
public:
  struct Options {
    std::string folder;
    uint64_t keep = 0;      ///< number of checkpoints to keep; 0: all
    uint64_t nonce = 0;     ///< a random number, equal at all ranks of the run
    uint32_t parts = 0;     ///< of all ranks together
    uint64_t firstStep = 0; ///< the number of steps before this run
    uint64_t firstUpdate = 0;     ///< the number of updates before this run
    std::string resumedFrom = {}; ///< the checkpoint of these steps, or empty
    uint64_t steps = 0;           ///< of the whole training
    uint64_t dataDigest = 0;
    bool isRoot = false; ///< exactly one rank is the root
  };

  /// Allocates the copy of the `own` parts. At the root, also takes the folder
  /// (CheckpointFolder), and throws its exceptions. `program` and `names` must
  /// outlive this object.
  CheckpointWriter(const program::ProgramT &program, const WeightNames &names,
                   std::vector<CheckpointPart> own, const Options &options);
  /// Ends the thread. Gives up a checkpoint for which it waits.
  ~CheckpointWriter();

  /// Waits until this rank has written its parts. Returns the reason why it
  /// could not, or an empty text. Every rank must call this before `finish`,
  /// and must tell the root if there is a reason.
  std::string awaitOwnParts();
  /// The same for at most `patience`. Returns none if this rank still writes.
  std::optional<std::string> awaitOwnParts(std::chrono::milliseconds patience);

  /// Makes the root's thread end without a checkpoint, even if parts of other
  /// ranks are missing.
  void giveUp();
  /// Waits for at most `patience` until this rank's thread has ended: all its
  /// parts are written and, at the root, the checkpoint is complete or given
  /// up. Returns whether it has.
  bool endsWithin(std::chrono::milliseconds patience);

  /// Waits until the last checkpoint is complete. At the root, gives it up
  /// instead if `fault`, the reason of any rank, is not empty, and returns the
  /// outcome if it was not returned before. At other ranks, returns none.
  std::optional<CheckpointOutcome> finish(const std::string &fault);

  /// Begins the checkpoint after `step` steps. Call `finish` first.
  /// `copyState(i, parameters, optimizer)` must copy the state of own part
  /// number i. If `fault` is not empty, this rank has no valid state, and
  /// awaitOwnParts returns this reason.
  void begin(uint64_t step, const std::string &fault,
             const std::function<void(size_t, Bytes, Bytes)> &copyState);

  /// Only at the root: the outcome of the last checkpoint if it has ended and
  /// was not returned before.
  std::optional<CheckpointOutcome> poll();

private:
  struct Report;

  void write();
  void writeParts(const std::string &partial);
  void complete(const std::string &partial);
  Report awaitReport(const std::string &partial, uint32_t part);
  void endParts(const std::string &fault);

  const program::ProgramT &program;
  const WeightNames &names;
  const std::vector<CheckpointPart> own;
  const Options options;
  std::optional<CheckpointFolder> folder;     ///< only at the root
  std::vector<std::vector<std::byte>> copies; ///< by own part
  std::thread thread;
  std::mutex mutex;
  std::condition_variable changed;
  bool areOwnPartsWritten = true; ///< guarded by mutex; also if it failed
  bool isGivenUp = false;         ///< guarded by mutex
  std::string ownFault;           ///< guarded by mutex
  bool isDone = true;             ///< guarded by mutex
  bool isReturned = true;
  CheckpointOutcome outcome; ///< not to be read while the thread runs
  std::chrono::steady_clock::time_point started;
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_MODEL_CHECKPOINT_WRITER_H
