//===- DumpTest.cpp - A program as JSON -----------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/program/File.h"
#include "test/runtime/program/SamplePackages.h"
#include "test/runtime/program/SamplePrograms.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace chimera::program {
namespace {

using Json = nlohmann::ordered_json;

std::vector<std::string> keys(const Json &object) {
  std::vector<std::string> list;
  for (const auto &item : object.items())
    list.push_back(item.key());
  return list;
}

TEST(Dump, SpellsOutAPackage) {
  ProgramT program = samplePipeline({});
  program.model = weighedPackage();
  const Json json = Json::parse(dumpJson(program))["model"];
  EXPECT_EQ(json["type"], "float64");
  EXPECT_EQ(json["layers"][1], (Json{{"kind", 1}, {"path", "block."}}));
  const Json &kind = json["kinds"][0];
  EXPECT_EQ(kind["parameters"][0], (Json{{"name", "weight"},
                                         {"shape", {5, 3}},
                                         {"start", "normal"},
                                         {"deviation", 0.5},
                                         {"mean", 0},
                                         {"low", 0},
                                         {"high", 0},
                                         {"zero_row", -1},
                                         {"decay", "by shape"}}));
  EXPECT_EQ(kind["inputs"], (Json{"int64[n, 2]"}));
  EXPECT_EQ(kind["forward_flops"], "0 + 10n");
  EXPECT_EQ(kind["backward"],
            (Json{"%0 = input 0", "%1 = output gradient 0",
                  "%2 = aten::embedding_dense_backward(%1, %0, 5, -1, false)",
                  "weight gradient 0 = %2"}));
  EXPECT_TRUE(kind["weight"].is_null());
  EXPECT_EQ(json["kinds"][2]["weight"][1], "%1 = aten::sum(%0, none)");
  EXPECT_EQ(json["kinds"][2]["outputs"], (Json{"float64"}));
  EXPECT_EQ(json["kinds"][2]["backward"][6],
            "%6 = aten::expand(%3, [n, 2, 3], false)");
  program.model->layers[1]->kind = 7;
  EXPECT_NE(Json::parse(dumpJson(program))["model"]["malformed"]
                .get<std::string>()
                .find("expected one of 3 kinds"),
            std::string::npos);
}

TEST(Dump, SpellsOutTheProgram) {
  ProgramT program = samplePipeline({.workers = 2,
                                     .microBatches = 2,
                                     .bidirectional = true,
                                     .dataParallel = 3});
  Json json = Json::parse(dumpJson(program));
  EXPECT_EQ(keys(json),
            (std::vector<std::string>{
                "version",       "producer",        "name",
                "schedule",      "model",           "optimizer",
                "weight_type",   "activation_type", "micro_batch_size",
                "seed",          "time_unit",       "micro_batches",
                "data_parallel", "updates",         "stages",
                "tied",          "pipelines",       "message_model",
                "communicators", "workers",         "files",
                "locations",     "buffer_alignment"}));
  EXPECT_EQ(json["version"], "9.0");
  EXPECT_EQ(json["buffer_alignment"], 64);
  EXPECT_EQ(json["weight_type"], "float64");
  EXPECT_EQ(json["activation_type"], "float64");
  EXPECT_EQ(json["message_model"], "rendezvous");
  EXPECT_EQ(json["updates"], "flush");
  EXPECT_EQ(json["data_parallel"], 3);
  EXPECT_TRUE(json["model"].is_null());
  EXPECT_EQ(json["optimizer"]["name"], "adamw");
  EXPECT_EQ(json["pipelines"][1]["direction"], "up");
  EXPECT_EQ(json["pipelines"][1]["workers"], (std::vector<uint32_t>{1, 0}));
  EXPECT_EQ(json["stages"][1]["weights_bytes"], 136);
  EXPECT_EQ(json["communicators"][0]["kind"], "weight gradient");
  EXPECT_EQ(json["communicators"][0]["contributions"][1]["worker"], 1);
  EXPECT_EQ(json["communicators"][1]["contributions"][0]["stage"], 1);
  EXPECT_TRUE(json["tied"].is_null());
  EXPECT_EQ(json["workers"][1]["states"][0]["pipeline"], 0);
  EXPECT_EQ(json["workers"][0]["peak_bytes"], program.workers[0]->peak_bytes);
  EXPECT_EQ(json["locations"][1]["line"], 2);
}

TEST(Dump, SpellsOutInstructions) {
  ProgramT program = samplePipeline({.workers = 2, .microBatches = 1});
  Json json = Json::parse(dumpJson(program));
  const Json &backward = json["workers"][0]["instructions"][7];
  EXPECT_EQ(keys(backward),
            (std::vector<std::string>{
                "does", "at", "opcode", "kind", "part", "parts", "pipeline",
                "stage", "micro_batch", "micro_batches", "target", "operands",
                "results", "weight_version", "location"}));
  EXPECT_EQ(backward["does"], "backward pipeline 0 stage 0 micro-batch 0");
  EXPECT_EQ(backward["at"], "sample.mlir:1:3");
  EXPECT_EQ(backward["opcode"], "backward");
  EXPECT_EQ(backward["operands"].size(), 4u);
  EXPECT_EQ(backward["results"][0], backward["operands"][3]);
  EXPECT_EQ(json["workers"][0]["buffers"][0]["kind"], "weights");
}

TEST(Dump, SurvivesMalformedPrograms) {
  ProgramT program = samplePipeline();
  program.name = "\xff\xfe";
  program.optimizer = nullptr;
  program.pipelines[0] = nullptr;
  program.workers[1] = nullptr;
  program.weight_type = DataType(9);
  Instruction &first = program.workers[0]->instructions[0];
  first.mutate_first_operand(UINT32_MAX);
  first.mutate_opcode(Opcode(99));
  Json json = Json::parse(dumpJson(program));
  EXPECT_TRUE(json["workers"][1].is_null());
  EXPECT_EQ(json["weight_type"], "unknown");
  EXPECT_TRUE(json["workers"][0]["instructions"][0]["results"].empty());
}

} // namespace
} // namespace chimera::program
