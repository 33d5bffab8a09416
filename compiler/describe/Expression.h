//===- Expression.h - A pipeline in one line --------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A short form of chimera.pipeline for the command line:
//
//   stages=4 micro_batches=8 schedule=1f1b split_backward
//   workers=4 micro_batches=8 schedule=1f1b,zb-v,chimera{pipelines=4}
//
// Each word is a clause of chimera.pipeline (dialect/Clauses.cpp). NAME=VALUE
// and NAME=(VALUE) mean the clause NAME(VALUE). In parentheses the value may
// have blanks: recompute=(all fused). `schedule` may list several schedules:
// the expression then describes a pipeline for each of them. One of `stages`
// and `workers` may be left out: each schedule then has its usual number of
// stages per worker (Scheme::stagesPerWorker), if this number is possible.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_DESCRIBE_EXPRESSION_H
#define CHIMERA_COMPILER_DESCRIBE_EXPRESSION_H

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace chimera {

/// The module that some expressions describe, and the words from which it was
/// made.
struct ExpressionModule {
  std::string text; ///< one line for each pipeline

  /// The word from which the text at `line` and `column` (both from 1) was
  /// made, such as "recompute=all". At the beginning of a pipeline, the word of
  /// its schedule, such as "schedule=zb-v". Empty if the line has no word.
  std::string wordAt(size_t line, size_t column) const;

  /// A word and the place where its text begins.
  struct Word {
    size_t line, column;
    std::string word;
  };
  std::vector<Word> words; ///< in the order of their places
};

/// The module with the pipelines that `expressions` describe. Each pipeline has
/// the name of its schedule. If several pipelines have the same schedule, a
/// number follows the name. If an expression is not valid, returns nothing and
/// sets `error`. Examples are an unknown schedule, no `micro_batches`, neither
/// `stages` nor `workers`, and unmatched brackets or quotes. The values of the
/// other clauses are checked later, by the parser that reads the module.
///
/// A schedule that is not possible with the given sizes is an error too. But if
/// `impossible` is not null, such a schedule only adds a line to `*impossible`.
/// It is then an error only if no schedule is possible.
std::optional<ExpressionModule>
describeExpressions(std::span<const std::string> expressions,
                    std::string &error, std::string *impossible = nullptr);

} // namespace chimera

#endif // CHIMERA_COMPILER_DESCRIBE_EXPRESSION_H
