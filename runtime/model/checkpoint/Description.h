//===- Description.h - The file training.json of a checkpoint ---*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// training.json says how far a training was when its checkpoint was written,
// and has the checksums of all tensors:
//
//   {"format": "chimera checkpoint 1",
//    "checksum": "...",                of this file
//    "step": 50,                       steps before the checkpoint
//    "updates": 50,                    updates of each weight in these steps
//    "samples_per_step": 32,           of all data-parallel copies together
//    "seed": 1,
//    "optimizer": "adamw",
//    "weight_type": "float32",
//    "data": "91c2...",                digest of the data, or "" if unknown
//    "program": "train (chimera)",     the program that wrote it
//    "model": {…},                     its layers (ModelKey.h)
//    "graphs": ["0b31...", …],         digest of each layer's graphs
//    "numbers": {…},                   of the optimizer and its schedule
//    "checksums": {"model-00001-of-00002.safetensors": {"NAME": "..."}}}
//
// A checksum is XXH3 with 64 bits, in 16 hexadecimal digits, of the elements of
// a tensor. The checksum of this file is computed from its text, in which the
// 16 digits of this checksum are zeros. So a file that was damaged or edited is
// noticed.
//
// AdamW divides by factors that depend on the number of updates. A schedule
// with an update for each micro-batch has more updates than steps.
//
// The digest of a layer's graphs is of the operators of its forward, in order,
// with their numbers and texts, such as the factor of a dropout. Sizes are left
// out, because they depend on the size of a micro-batch.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_MODEL_CHECKPOINT_DESCRIPTION_H
#define CHIMERA_RUNTIME_MODEL_CHECKPOINT_DESCRIPTION_H

#include "runtime/device/Bytes.h"
#include "runtime/program/Program.h"

#include <map>
#include <string>
#include <vector>

namespace chimera::runtime {

/// The checksums of the tensors of a file, by name.
using Checksums = std::map<std::string, std::string>;

struct CheckpointDescription {
  uint64_t step = 0;
  uint64_t updates = 0; ///< of each weight, in these steps
  uint64_t samplesPerStep = 0;
  uint64_t seed = 0;
  std::string optimizer;
  std::string weightType;
  std::string data;
  std::string program;
  std::string model;                          ///< a JSON object
  std::vector<std::string> graphs;            ///< digests, by layer
  std::string numbers;                        ///< a JSON object
  std::map<std::string, Checksums> checksums; ///< by file
};

/// The end of an error message about a checkpoint that is damaged.
inline constexpr char kTakeAnother[] =
    ". Resume from another checkpoint: give its folder to --resume, and move "
    "this one away";

/// The checksum of a tensor with these bytes.
std::string checksumOf(ConstBytes bytes);

/// The description of a checkpoint after `step` steps, of a training of `steps`
/// steps that all run `program`, without checksums. `dataDigest` is 0 if the
/// data are unknown. Requires a program with a model.
CheckpointDescription describeCheckpoint(const program::ProgramT &program,
                                         uint64_t step, uint64_t steps,
                                         uint64_t dataDigest);

/// The text of training.json.
std::string format(const CheckpointDescription &description);

/// Reads training.json of the checkpoint in `folder`. Throws std::runtime_error
/// if the file cannot be read, has another form or has another checksum.
CheckpointDescription readDescription(const std::string &folder);

/// Says why a run of `program` cannot continue from a checkpoint: another
/// model, another optimizer, another type of weights, or another number of
/// samples per step. Empty if it can. Requires a program with a model.
std::string reasonNotToResume(const CheckpointDescription &saved,
                              const program::ProgramT &program);

/// Says why a run that continues from a checkpoint will not give the numbers of
/// an uninterrupted run: another seed, other data, other graphs of the layers
/// or other numbers of the optimizer. Empty if it will.
std::string noteOfChanges(const CheckpointDescription &saved,
                          const CheckpointDescription &now);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_MODEL_CHECKPOINT_DESCRIPTION_H
