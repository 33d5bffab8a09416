//===- AliasedFiles.cpp - Files that repeat one object --------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/runtime/program/AliasedFiles.h"

#include "test/runtime/program/Framed.h"

#include <string>

namespace chimera::program {

namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;

/// Builds a program file with lists whose entries refer to the same object.
class AliasedFileBuilder {
public:
  std::vector<std::byte> build() {
    auto text = buffer.CreateString("x");
    OptimizerT adamw;
    adamw.name = "adamw";
    auto optimizer = Optimizer::Pack(buffer, &adamw);
    auto stages = buffer.CreateVectorOfStructs(std::vector<Stage>());
    auto locations = buffer.CreateVectorOfStructs(std::vector<Location>());
    auto allPipelines = buffer.CreateVector(pipelines);
    auto allCommunicators = buffer.CreateVector(communicators);
    auto allWorkers = buffer.CreateVector(workers);
    auto allFiles = buffer.CreateVector(files);
    ProgramBuilder program(buffer);
    program.add_producer(text);
    program.add_name(text);
    program.add_schedule(text);
    program.add_time_unit(text);
    program.add_optimizer(optimizer);
    program.add_stages(stages);
    program.add_pipelines(allPipelines);
    program.add_communicators(allCommunicators);
    program.add_workers(allWorkers);
    program.add_files(allFiles);
    program.add_locations(locations);
    buffer.Finish(program.Finish());
    return framed(
        std::as_bytes(std::span(buffer.GetBufferPointer(), buffer.GetSize())));
  }

  FlatBufferBuilder buffer;
  std::vector<Offset<Pipeline>> pipelines;
  std::vector<Offset<Communicator>> communicators;
  std::vector<Offset<Worker>> workers;
  std::vector<Offset<flatbuffers::String>> files;
};

} // namespace

std::vector<std::byte> aliasedText(size_t times) {
  AliasedFileBuilder builder;
  std::string text(size_t(1) << 20, 'a');
  builder.files.assign(times, builder.buffer.CreateString(text));
  return builder.build();
}

std::vector<std::byte> aliasedWorker(size_t times) {
  AliasedFileBuilder builder;
  WorkerT worker;
  builder.workers.assign(times, Worker::Pack(builder.buffer, &worker));
  return builder.build();
}

std::vector<std::byte> aliasedPipeline(size_t times) {
  AliasedFileBuilder builder;
  PipelineT pipeline;
  builder.pipelines.assign(times, Pipeline::Pack(builder.buffer, &pipeline));
  return builder.build();
}

std::vector<std::byte> aliasedCommunicator(size_t times) {
  AliasedFileBuilder builder;
  CommunicatorT communicator;
  builder.communicators.assign(
      times, Communicator::Pack(builder.buffer, &communicator));
  return builder.build();
}

} // namespace chimera::program
