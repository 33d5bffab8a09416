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
// stands for NAME(VALUE), and so does NAME=(VALUE), whose value may have
// blanks: recompute=(all fused). `schedule` may list several schedules: the
// expression then describes a pipeline for each of them. One of `stages` and
// `workers` may be left out: each schedule then has its usual number of stages
// a worker (Scheme::stagesPerWorker).
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_DESCRIBE_EXPRESSION_H
#define CHIMERA_COMPILER_DESCRIBE_EXPRESSION_H

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace chimera {

/// The text of a module with the pipelines that `expressions` describe. Each
/// pipeline has the name of its schedule. If several pipelines have the same
/// schedule, a number follows the name. Unset, with the reason in `error`, in
/// three cases: a schedule is unknown, `stages` and `workers` are both missing
/// or are not numbers, or brackets or quotes do not match. The parser that
/// reads the module checks the other clauses.
///
/// If a schedule is not possible with these sizes, that is an error as well. If
/// `impossible` is given, such a schedule gets a line there instead, and there
/// is an error only if no schedule is possible.
std::optional<std::string>
describeExpressions(std::span<const std::string> expressions,
                    std::string &error, std::string *impossible = nullptr);

/// The word of an expression from which `module` has the text at a place, such
/// as "recompute=all". `module` is a text that describeExpressions made; `line`
/// and `column` count from 1. The beginning of a pipeline is from its schedule,
/// such as "schedule=zb-v". Empty if no word is at this place.
std::string expressionWordAt(std::string_view module, size_t line,
                             size_t column);

} // namespace chimera

#endif // CHIMERA_COMPILER_DESCRIBE_EXPRESSION_H
