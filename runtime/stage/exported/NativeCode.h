//===- NativeCode.h - Graphs that AOTInductor compiled ----------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What `chimera-export --native` made of a package's graphs: for each kind of
// layer and number of samples an archive of shared libraries, one for each
// selection that Layer makes (tools/export/chimera_export/native.py). A package
// names an archive by its SHA-256 alone. Where it is, and that its code may
// run, the user says: whoever can write to that folder can run code as the
// user.
//
// An archive is read once, held against its digest, and its libraries go from
// that memory into files without a name (memfd). So nothing runs that was not
// digested, and a process that is killed leaves nothing behind.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_STAGE_EXPORTED_NATIVECODE_H
#define CHIMERA_RUNTIME_STAGE_EXPORTED_NATIVECODE_H

#include "runtime/program/Program.h"

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace at {
class Tensor;
}
namespace torch::inductor {
class AOTIModelContainerRunner;
}

namespace chimera::runtime {

/// A tensor that native code takes. It looks at none, and so would read beyond
/// another's end.
struct NativeInput {
  program::TensorType type;
  std::vector<int64_t> shape, strides;
};

/// What native code is of a selection.
struct NativeLibrary {
  std::string path; ///< where the process finds it; never that of another
  std::vector<NativeInput> inputs;
  uint64_t results = 0;
};

/// A selection of a graph as native code. One thread runs it at a time; others
/// wait.
class NativeFunction {
public:
  /// Counts its calls in `calls`. Throws std::runtime_error where it cannot be
  /// loaded, and std::invalid_argument unless it takes and makes as many
  /// tensors.
  NativeFunction(const NativeLibrary &library, size_t inputs, size_t results,
                 std::atomic<uint64_t> &calls);
  ~NativeFunction();

  /// Throws std::invalid_argument where an input has another type or shape, and
  /// what the code throws. One with other strides is copied.
  std::vector<at::Tensor> run(std::vector<at::Tensor> inputs) const;

private:
  const NativeLibrary &library;
  std::atomic<uint64_t> &calls;
  std::unique_ptr<torch::inductor::AOTIModelContainerRunner> runner;
};

/// The native code of a program's model.
class NativeCode {
public:
  /// Reads all of it from `folder`. Throws std::invalid_argument where the
  /// program, which must have a checked package, has none; where the package
  /// was exported with another version of PyTorch than this LibTorch's; where a
  /// file is missing or not the one that the package names; and where it is for
  /// more than this processor has.
  NativeCode(const program::ProgramT &program, const std::string &folder);

  /// That of a selection (Layer.cpp has the names), null where there is none,
  /// and it is to be interpreted. This must outlive it. Any thread may call it.
  std::unique_ptr<NativeFunction> open(const program::LayerGraphsT &graphs,
                                       const std::string &selection,
                                       size_t inputs, size_t results) const;

  /// How often any of it ran.
  uint64_t calls() const { return count; }

private:
  void read(const std::string &digest, const std::string &folder);

  /// By digest, then selection.
  std::map<std::string, std::map<std::string, NativeLibrary>> archives;
  mutable std::atomic<uint64_t> count = 0; ///< of calls
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_STAGE_EXPORTED_NATIVECODE_H
