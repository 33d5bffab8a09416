//===- Folder.h - A folder of checkpoints -----------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A folder of checkpoints:
//
//   FOLDER/
//     step-00000050/                            complete, after 50 steps
//       model-00001-of-00002.safetensors        parameters of some layers
//       model-00002-of-00002.safetensors
//       model.safetensors.index.json            which file has which tensor
//       optimizer-00001-of-00002.safetensors    NAME.exp_avg, NAME.exp_avg_sq
//       optimizer-00002-of-00002.safetensors
//       optimizer.safetensors.index.json
//       training.json                           Description.h
//     step-00000100.0123456789abcdef.partial/   being written, or left over
//     .lock                                     locked while a run writes
//
// If the optimizer has no state, there are no files of it. While ranks write
// their parts, a partial folder also has part-00001-of-00002.json and so on
// (Writer.h).
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_MODEL_CHECKPOINT_FOLDER_H
#define CHIMERA_RUNTIME_MODEL_CHECKPOINT_FOLDER_H

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace chimera::runtime {

inline constexpr char kTrainingFile[] = "training.json";

/// The two sets of files in a checkpoint, and the prefixes of their names.
inline constexpr char kModelFiles[] = "model", kOptimizerFiles[] = "optimizer";

/// The name of the file number `part`, from 0: "model-00001-of-00002" with the
/// given suffix.
std::string partName(std::string_view prefix, uint32_t part, uint32_t parts,
                     std::string_view suffix);
/// "model.safetensors.index.json"
std::string indexName(std::string_view prefix);

/// The checkpoint to which `path` leads: `path` itself if it is a complete
/// checkpoint, under any name, else the newest checkpoint in the folder `path`.
/// None if `path` does not exist, or is a folder without checkpoints, without
/// weights and without the name of a checkpoint. Throws std::runtime_error if
///
/// - `path` is not a folder, or cannot be read;
/// - `path` has the name of a checkpoint, or has weights, but does not exist or
///   is not complete;
/// - `path` does not exist and its parent is a file;
/// - a checkpoint in `path` is not complete.
std::optional<std::string> findCheckpoint(const std::string &path);

/// Waits until no other run writes to the folder of checkpoints `path`. After
/// that, the newest checkpoint in the folder is the last one of the other run.
/// Calls `onWait` once before it waits. Throws std::runtime_error if the other
/// run still writes after `patience`.
void awaitOtherRun(
    const std::string &path, const std::function<void()> &onWait,
    std::chrono::milliseconds patience = std::chrono::seconds(30));

/// Returns an error message if the folder `path` has the name of a checkpoint
/// of another step than `step`, else an empty text. Runs find the newest
/// checkpoint by the names.
std::string faultOfStepName(const std::string &path, uint64_t step);

/// The right to write checkpoints to a folder. Only one object in all processes
/// can have it at a time. File systems without locks are not protected.
class CheckpointFolder {
public:
  /// Creates the folder if it does not exist. Removes partial folders and marks
  /// (RunMark.h) of earlier runs. If another run writes to the folder, waits
  /// for at most `patience`: the ranks of a job that was killed may take a
  /// moment to end. `step` is the number of steps before the first step of this
  /// run, and `resumedFrom` the checkpoint of these steps, or empty. Throws
  /// std::runtime_error if the folder cannot be written, if another run writes
  /// to it, if it has a checkpoint that is not complete, or if it has
  /// checkpoints and `resumedFrom` is not the newest of them: they would be
  /// mixed with those of this run.
  CheckpointFolder(
      std::string path, uint64_t step, const std::string &resumedFrom = {},
      std::chrono::milliseconds patience = std::chrono::seconds(5));
  ~CheckpointFolder();
  CheckpointFolder(const CheckpointFolder &) = delete;
  CheckpointFolder &operator=(const CheckpointFolder &) = delete;

  /// Turns a partial folder into the checkpoint of `step` and makes this
  /// durable. Returns its path. Throws std::runtime_error on failure.
  std::string publish(const std::string &partial, uint64_t step) const;

  /// Removes the oldest checkpoints, so that `count` remain. Does nothing if
  /// `count` is 0. Returns an error message, or an empty text.
  std::string keepNewest(uint64_t count) const;

private:
  std::string path;
  int lock = -1;
};

/// The partial folder in which the checkpoint of `step` is written.
std::string partialFolder(const std::string &folder, uint64_t step,
                          uint64_t nonce);

/// Removes a folder and its files. Returns an error message, or an empty text.
std::string removeFolder(const std::string &folder);

/// Makes the names of new files in `folder` durable. Throws std::runtime_error
/// if that fails.
void syncFolder(const std::string &folder);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_MODEL_CHECKPOINT_FOLDER_H
