//===- Convert.h - Conversion of numbers from files -------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_MODEL_WEIGHTS_CONVERT_H
#define CHIMERA_RUNTIME_MODEL_WEIGHTS_CONVERT_H

#include "runtime/device/Bytes.h"
#include "runtime/model/weights/FileTypes.h"

namespace chimera::runtime {

/// Converts all elements of `from` to `type`. Requires a file type in
/// convertibleTo(type), and as many elements in `to` as in `from`.
void convert(const FileType &fileType, ConstBytes from, program::DataType type,
             Bytes to);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_MODEL_WEIGHTS_CONVERT_H
