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
// Each word is a clause of chimera.pipeline (dialect/Clauses.cpp): NAME=VALUE
// stands for NAME(VALUE). `schedule` may list several schedules: the expression
// then describes a pipeline for each of them. One of `stages` and `workers` may
// be left out: each schedule then has its usual number of stages a worker
// (Scheme::stagesPerWorker).
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_DESCRIBE_EXPRESSION_H
#define CHIMERA_COMPILER_DESCRIBE_EXPRESSION_H

#include <optional>
#include <span>
#include <string>

namespace chimera {

/// The text of a module with the pipelines that `expressions` describe. Each
/// pipeline has the name of its schedule; a number follows if several pipelines
/// have the same schedule. Unset, with the reason in `error`, if a schedule is
/// unknown, `stages` and `workers` are both missing or no numbers, or brackets
/// and quotes do not match. The other clauses are checked by the parser that
/// reads the module.
///
/// A schedule that cannot have these sizes is an error too, unless `impossible`
/// is given: then it gets a line on that schedule. It is an error if no
/// schedule is possible.
std::optional<std::string>
describeExpressions(std::span<const std::string> expressions,
                    std::string &error, std::string *impossible = nullptr);

} // namespace chimera

#endif // CHIMERA_COMPILER_DESCRIBE_EXPRESSION_H
