//===- SavedState.h - Weights and state to resume from ----------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_MODEL_CHECKPOINT_SAVEDSTATE_H
#define CHIMERA_RUNTIME_MODEL_CHECKPOINT_SAVEDSTATE_H

#include "runtime/model/checkpoint/Description.h"
#include "runtime/model/weights/WeightFiles.h"

#include <optional>

namespace chimera::runtime {

/// The weights and the optimizer state of a checkpoint. Reads each tensor only
/// when a stage asks for it, and compares its checksum.
class SavedState : public InitialValues {
public:
  /// `folder` is a complete checkpoint. Throws std::runtime_error if a file is
  /// missing or invalid, if the checkpoint does not match the program
  /// (reasonNotToResume), or if its tensors are not those of the program's
  /// model.
  SavedState(const program::ProgramT &program, const std::string &folder,
             const WeightNames &names);

  const CheckpointDescription &description() const { return saved; }

  /// Both functions throw std::runtime_error if a tensor cannot be read or has
  /// another checksum.
  void read(const std::string &name, program::DataType type,
            const std::vector<int64_t> &shape, Bytes memory) const override;
  bool readState(const std::string &name, std::string_view state,
                 program::DataType type, const std::vector<int64_t> &shape,
                 Bytes memory) const override;

  /// A digest of training.json, which has the checksums of all tensors.
  uint64_t digest() const;

private:
  void checkOptimizerFiles(const program::ProgramT &program) const;
  void compare(const std::string &tensor, ConstBytes memory) const;

  std::string folder;
  CheckpointDescription saved;
  WeightNames names;
  LoadedWeights weights;
  std::optional<TensorFiles> optimizer; ///< none if the optimizer has no state
  Checksums checksums;                  ///< of all files together
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_MODEL_CHECKPOINT_SAVEDSTATE_H
