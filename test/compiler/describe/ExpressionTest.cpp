//===- ExpressionTest.cpp - Pipelines in one line -------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/describe/Expression.h"

#include <gtest/gtest.h>
#include <vector>

using namespace chimera;

namespace {

/// The module that describes the expressions, or "error: " and the reason.
std::string moduleOf(const std::vector<std::string> &expressions) {
  std::string error;
  std::optional<ExpressionModule> module =
      describeExpressions(expressions, error);
  return module ? module->text : "error: " + error;
}

TEST(Expression, WordsAreClauses) {
  EXPECT_EQ(moduleOf({"stages=4 micro_batches=8 schedule=1f1b split_backward "
                      "recompute=[0, 2] link=<latency = 3>"}),
            "chimera.pipeline @\"1f1b\" stages(4) micro_batches(8) "
            "schedule(\"1f1b\") split_backward recompute([0,2]) link "
            "<latency=3>\n");
}

TEST(Expression, ValuesInParenthesesMayHaveBlanks) {
  EXPECT_EQ(
      moduleOf(
          {"stages=2 micro_batches=2 schedule=1f1b recompute=(all fused)"}),
      "chimera.pipeline @\"1f1b\" stages(2) micro_batches(2) "
      "schedule(\"1f1b\") recompute(all fused)\n");
}

TEST(Expression, BlanksMakeNoDifference) {
  std::string expected =
      moduleOf({"stages=4 micro_batches=8 schedule=1f1b,gpipe"});
  EXPECT_EQ(
      moduleOf({"  stages = 4\tmicro_batches= 8 schedule =1f1b , gpipe "}),
      expected);
}

TEST(Expression, EachScheduleIsAPipeline) {
  EXPECT_EQ(moduleOf({"stages=4 micro_batches=8 "
                      "schedule=gpipe,chimera{concatenation=halving}",
                      "stages=2 micro_batches=8 schedule=gpipe"}),
            "chimera.pipeline @\"gpipe\" stages(4) micro_batches(8) "
            "schedule(\"gpipe\")\n"
            "chimera.pipeline @\"chimera\" stages(4) micro_batches(8) "
            "schedule(\"chimera\", {concatenation=halving})\n"
            "chimera.pipeline @\"gpipe_2\" stages(2) micro_batches(8) "
            "schedule(\"gpipe\")\n");
}

TEST(Expression, ScheduleDecidesOnStagesOfAWorker) {
  EXPECT_EQ(moduleOf({"workers=4 micro_batches=8 schedule=zb-v"}),
            "chimera.pipeline @\"zb-v\" stages(8) micro_batches(8) "
            "schedule(\"zb-v\") workers(4)\n");
  EXPECT_EQ(moduleOf({"stages=8 micro_batches=8 schedule=zb-v"}),
            moduleOf({"workers=4 micro_batches=8 schedule=zb-v"}));
  EXPECT_EQ(moduleOf({"workers=4 micro_batches=8 schedule=interleaved-1f1b"}),
            "chimera.pipeline @\"interleaved-1f1b\" stages(8) micro_batches(8) "
            "schedule(\"interleaved-1f1b\") workers(4)\n");
  // Three stages cannot be divided into two per worker.
  EXPECT_EQ(moduleOf({"stages=3 micro_batches=6 schedule=interleaved-1f1b"}),
            "chimera.pipeline @\"interleaved-1f1b\" stages(3) micro_batches(6) "
            "schedule(\"interleaved-1f1b\")\n");
  EXPECT_EQ(
      moduleOf(
          {"stages=12 workers=4 micro_batches=8 schedule=interleaved-1f1b"}),
      "chimera.pipeline @\"interleaved-1f1b\" stages(12) micro_batches(8) "
      "schedule(\"interleaved-1f1b\") workers(4)\n");
}

/// Each position in the module comes from a word of the expression.
TEST(Expression, PlacesAreWords) {
  std::string error;
  const ExpressionModule module = *describeExpressions(
      std::vector<std::string>{
          "stages=4 micro_batches=8 schedule=1f1b,chimera{pipelines = 4} "
          "recompute=(all fused) split_backward link=<latency = 3>"},
      error);
  auto wordAt = [&](size_t line, const std::string &text) {
    size_t begin = line == 1 ? 0 : module.text.find('\n') + 1;
    return module.wordAt(line, module.text.find(text, begin) - begin + 1);
  };
  EXPECT_EQ(wordAt(1, "chimera.pipeline"), "schedule=1f1b");
  EXPECT_EQ(wordAt(2, "chimera.pipeline"), "schedule=chimera{pipelines=4}");
  EXPECT_EQ(wordAt(2, "schedule"), "schedule=chimera{pipelines=4}");
  EXPECT_EQ(wordAt(1, "stages("), "stages=4");
  EXPECT_EQ(wordAt(1, "fused"), "recompute=(all fused)");
  EXPECT_EQ(wordAt(2, "split_backward"), "split_backward");
  EXPECT_EQ(wordAt(1, "link"), "link=<latency=3>");
  EXPECT_EQ(wordAt(2, "latency"), "link=<latency=3>");
  // The end of a line belongs to its last word.
  EXPECT_EQ(module.wordAt(1, 1000), "link=<latency=3>");
  EXPECT_EQ(module.wordAt(3, 1), "");
}

TEST(Expression, FaultsAreNamed) {
  EXPECT_EQ(moduleOf({"micro_batches=8 schedule=1f1b"}),
            "error: expected stages=NUMBER or workers=NUMBER, got only "
            "micro_batches, schedule");
  EXPECT_EQ(moduleOf({"stages=4 microbatches=8 schedule=1f1b"}),
            "error: expected micro_batches=NUMBER, got only stages, "
            "microbatches, schedule");
  EXPECT_EQ(moduleOf({"stages=4, micro_batches=8 schedule=1f1b"}),
            "error: expected stages=NUMBER, from 1 to 65535, got "
            "\"4,micro_batches=8\": blanks separate clauses");
  EXPECT_EQ(moduleOf({"stages=4 micro_batches=8 schedule=1f1b zb-v"}),
            "error: expected a comma between schedules, as in "
            "schedule=1f1b,zb-v, got a blank before zb-v");
  EXPECT_EQ(
      moduleOf({"stages=4 micro_batches=8 schedule=chimera(pipelines=4)"}),
      "error: expected a schedule's options in braces, as in "
      "chimera{pipelines = 4}, got chimera(pipelines=4)");
  EXPECT_EQ(moduleOf({"stages=4 micro_batches=8 schedule=1f1b data_parallel"}),
            "error: expected NAME=VALUE, got data_parallel without a value");
  EXPECT_EQ(moduleOf({"stages=4 micro_batches=8 schedule=1f1b on=@here"}),
            "error: expected no on: only a pipeline in a file has a model, a "
            "training or a machine");
  EXPECT_EQ(moduleOf({"stages=4 micro_batches=8 schedule=1f1b recompute"}),
            "error: expected recompute=all, recompute=[0,2] (stages 0 and 2), "
            "or recompute=(all fused), got recompute without a value");
  EXPECT_EQ(moduleOf({"stages=4 micro_batches=8 schedule=1f1b schedule=gpipe"}),
            "error: expected schedule once, with a comma between schedules");
  EXPECT_EQ(moduleOf({"stages=4 micro_batches=8 schedule=1f1b link=3"}),
            "error: expected link=<latency = NUMBER, …>, got 3");
  EXPECT_EQ(
      moduleOf({"stages=4 micro_batches=8 schedule=1f1b split_backward=true"}),
      "error: expected split_backward without a value, got =true");
  EXPECT_EQ(moduleOf({""}), "error: expected stages=NUMBER or workers=NUMBER");
  EXPECT_TRUE(moduleOf({"stages=4 micro_batches=8"})
                  .starts_with("error: expected a schedule, such as "
                               "schedule=1f1b: one of chimera, gpipe"));
  EXPECT_EQ(moduleOf({"stages=0 micro_batches=8 schedule=1f1b"}),
            "error: expected stages=NUMBER, from 1 to 65535, got \"0\"");
  EXPECT_EQ(moduleOf({"stages=4x micro_batches=8 schedule=1f1b"}),
            "error: expected stages=NUMBER, from 1 to 65535, got \"4x\"");
  EXPECT_EQ(moduleOf({"stages=4 stages=8 micro_batches=8 schedule=1f1b"}),
            "error: expected stages once");
  for (const char *schedule :
       {"chimera{pipelines=4", "chimera}", "\"chimera", "chimera{a=(}"})
    EXPECT_TRUE(
        moduleOf({"stages=4 micro_batches=8 schedule=" + std::string(schedule)})
            .starts_with("error: expected each bracket and quote to be "
                         "closed"))
        << schedule;
  EXPECT_TRUE(
      moduleOf({"stages=4 micro_batches=8 schedule=zb-h1"})
          .starts_with("error: expected one of the schedules chimera, gpipe"));
  EXPECT_EQ(moduleOf({"stages=4 micro_batches=8 schedule=chimera{width=2}"}),
            "error: schedule chimera: expected one of the options pipelines, "
            "concatenation, got \"width\"");
}

} // namespace
