//===- OrderFile.h - A pipeline as the orders of its workers ----*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A text file with the order of actions on each worker, one line a worker:
//
//   # Two stages, two micro-batches.
//   P0: 0F0 0F1 0B0 0B1
//   P1: 1F0 1B0 1F1 1B1
//
// The words are those of compiler/schedule/OrderText.h, except `|`: only
// schedules with a flush have an order file. A word names its stage. If no word
// of the file does, worker w has stage w and nothing else. `P0:` may be left
// out. A comment begins with # or, at the beginning of a line, with //.
//
// The file says no placement. It follows from the words: stage s of
// micro-batch m is on the worker whose line has its actions. Micro-batches with
// the same placement are one pipeline.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_DESCRIBE_ORDERFILE_H
#define CHIMERA_COMPILER_DESCRIBE_ORDERFILE_H

#include <optional>
#include <string>
#include <string_view>

namespace chimera {

/// True if the first line of `text` that is no comment looks like a line of an
/// order file. A module never does.
bool isOrderFile(std::string_view text);

/// The text of a module with one pipeline, @order, that has the placement and
/// the orders of the order file `text`. Its chimera.order ops have the
/// locations of their lines in the file `path`. Unset, with "PATH:LINE:COLUMN:
/// error: …", the line and a caret in `error`, if a word is wrong, if a stage
/// of a micro-batch is on two workers or on none, or if the file has no line.
/// The verifier of the module checks whether the order can run.
std::optional<std::string> describeOrderFile(std::string_view path,
                                             std::string_view text,
                                             std::string &error);

} // namespace chimera

#endif // CHIMERA_COMPILER_DESCRIBE_ORDERFILE_H
