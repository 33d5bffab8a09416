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
// OrderText.h (compiler/schedule) defines the words. The word `|` is not
// allowed, because it belongs to schedules without a flush. A word may begin
// with the number of a stage: 1F0 is the forward of micro-batch 0 on stage 1.
// If no word of the file has a stage, the only stage of worker w is stage w.
// `P0:` may be left out. A comment begins with # or, at the beginning of a
// line, with //.
//
// The file does not state the placement. The placement follows from the words:
// stage s of micro-batch m is on the worker whose line has its actions.
// Micro-batches with the same placement belong to the same pipeline.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_DESCRIBE_ORDERFILE_H
#define CHIMERA_COMPILER_DESCRIBE_ORDERFILE_H

#include "compiler/schedule/model/Problem.h"

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace chimera {

/// True if the first line of `text` that is neither blank nor a comment looks
/// like a line of an order file. The first line of a module never does.
bool isOrderFile(std::string_view text);

/// The contents of an order file.
struct OrderFile {
  /// The line of a worker.
  struct Line {
    size_t number;         ///< number of the line in the file, from 1
    size_t column;         ///< column of the first word, from 1
    std::string_view text; ///< the line from the first word on, without comment
    std::string_view whole; ///< the whole line of the file
  };
  std::vector<Line> lines; ///< by worker; they refer to the text of the file
  int32_t stages = 0, microBatches = 0;
  std::set<int32_t> recomputed; ///< stages that are recomputed
  std::vector<schedule::Pipeline> pipelines;
};

/// Reads the order file `text`. Returns nothing if a word is wrong, if a stage
/// of a micro-batch is on two workers or on none, or if the file has no line.
/// Then `error` has "PATH:LINE:COLUMN: error: …", the line, and a caret below
/// it. Errors show lines of `shown`, a text of the same size, if it is not
/// empty.
std::optional<OrderFile> readOrderFile(std::string_view path,
                                       std::string_view text,
                                       std::string &error,
                                       std::string_view shown = {});

/// The text of a chimera.direction for each pipeline, one line each.
std::string
describeDirections(const std::vector<schedule::Pipeline> &pipelines);

/// The text of a module with one pipeline, @order. The pipeline has the
/// placement and the orders of the order file `text`. Each chimera.order op has
/// the location of its line in the file `path`. Returns nothing for the reasons
/// of readOrderFile. The verifier of the module checks later whether the order
/// can run.
std::optional<std::string> describeOrderFile(std::string_view path,
                                             std::string_view text,
                                             std::string &error,
                                             std::string_view shown = {});

} // namespace chimera

#endif // CHIMERA_COMPILER_DESCRIBE_ORDERFILE_H
