//===- ArrayData.cpp - Training samples from arrays -----------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/data/ArrayData.h"

#include "runtime/data/ParallelSearch.h"
#include "runtime/program/Gpt2Package.h"
#include "runtime/program/Layers.h"
#include "runtime/program/Predictions.h"
#include "runtime/random/Mix.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

using namespace chimera;
using namespace chimera::runtime;

ArrayData::ArrayData(const std::vector<ArrayFileName> &files,
                     const program::ProgramT &program, double holdOut,
                     LastBatch last)
    : microBatches(uint64_t{program.micro_batches} * program.data_parallel) {
  if (!program.model)
    throw std::invalid_argument("expected a program with a model to train on "
                                "arrays, got one of bare stages");
  if (!(holdOut >= 0 && holdOut <= 1))
    throw std::invalid_argument(
        "expected a held-out part in [0, 1] of the samples, got " +
        std::to_string(holdOut));
  std::vector<program::Field> fields;
  const auto add = [&](std::vector<Column> &columns,
                       const std::vector<program::Field> &ofModel) {
    for (const program::Field &field : ofModel) {
      columns.push_back({.field = field});
      if (field.name != program::kLossScales)
        fields.push_back(field);
    }
  };
  add(inputs, program::inputFields(*program.model));
  add(labels, program::labelFields(*program.model));
  std::vector<ArrayField> arrays = openArrays(files, fields);
  const uint64_t samples = arrays.empty() ? 0 : arrays.front().samples();
  auto next = arrays.begin();
  for (std::vector<Column> *columns : {&inputs, &labels})
    for (Column &column : *columns)
      if (column.field.name != program::kLossScales)
        column.array = std::move(*next++);
  const program::PackageT &model = *program.model;
  if (const auto tokens = program::indexOfTokens(program::inputFields(model),
                                                 program::kInputIds))
    inputs[*tokens].bound = program::vocabularyOf(model);
  const program::LayerGraphsT &head =
      graphsOf(model, program::layerCount(model) - 1);
  if (const auto predicted = program::predictedField(model)) {
    Column &column = labels[*predicted];
    column.bound = head.vocabulary;
    column.ignored = program::ignoredLabel(model);
    column.allMustCount = model.producer == program::kGpt2Producer;
  }
  held =
      static_cast<uint64_t>(std::floor(static_cast<double>(samples) * holdOut));
  training = samples - held;
  if (holdOut < 1)
    order.emplace(training, microBatches * program.micro_batch_size, last,
                  program.seed);
}

std::string ArrayData::check(uint32_t threads, uint32_t part,
                             uint32_t parts) const {
  for (const std::vector<Column> *columns : {&inputs, &labels})
    for (const Column &column : *columns)
      if (column.bound && column.array)
        if (std::string fault =
                checkColumn(column, columns == &labels, threads, part, parts);
            !fault.empty())
          return fault;
  return {};
}

std::string ArrayData::checkColumn(const Column &column, bool areLabels,
                                   uint32_t threads, uint32_t part,
                                   uint32_t parts) const {
  const auto elements = static_cast<size_t>(column.field.elements());
  const auto isWrong = [&](int64_t value) {
    if (areLabels && !column.allMustCount && value == column.ignored)
      return false;
    return value < 0
               ? !areLabels || column.allMustCount || column.ignored.has_value()
               : value >= *column.bound;
  };
  struct Wrong {
    uint64_t sample;
    int64_t value;
  };
  /// The first wrong value of `count` samples from `first` on.
  const auto wrongIn = [&](uint64_t first,
                           uint64_t count) -> std::optional<Wrong> {
    std::vector<int64_t> values(count * elements);
    column.array->read(first, std::as_writable_bytes(std::span(values)));
    const auto found = std::ranges::find_if(values, isWrong);
    if (found == values.end())
      return std::nullopt;
    const auto place = static_cast<uint64_t>(found - values.begin());
    return Wrong{first + place / elements, *found};
  };
  constexpr uint64_t kElements = uint64_t{1} << 20;
  const auto sample = findFirst(
      partOf(column.array->samples(), part, parts,
             std::max<uint64_t>(kElements / elements, 1)),
      threads, [&](uint64_t first, uint64_t count) -> std::optional<uint64_t> {
        const std::optional<Wrong> wrong = wrongIn(first, count);
        return wrong ? std::optional(wrong->sample) : std::nullopt;
      });
  if (!sample)
    return {};
  const std::string bound = std::to_string(*column.bound);
  const int64_t wrong = wrongIn(*sample, 1).value().value;
  const std::string got = ", got " + std::to_string(wrong) + " in " +
                          column.array->describePosition(*sample);
  if (!areLabels)
    return "expected tokens of the model's vocabulary of " + bound + got;
  if (wrong < 0 && column.ignored && !column.allMustCount)
    return "expected labels of 0 to " + std::to_string(*column.bound - 1) +
           ", or " + std::to_string(*column.ignored) +
           " for a label that does not count" + got;
  if (wrong < 0)
    return "expected labels that all count, because the loss of the built-in "
           "GPT-2 is the mean of a micro-batch" +
           got +
           ": export a model whose loss is a sum and a weight (see Model in "
           "tools/export)";
  return "expected labels below " + bound +
         ", the number of the model's classes" + got;
}

uint64_t ArrayData::digest() const {
  uint64_t state = mix({training, held});
  for (const std::vector<Column> *columns : {&inputs, &labels})
    for (const Column &column : *columns)
      state = mix({state, column.array ? column.array->digest() : 0});
  return state;
}

void ArrayData::fill(program::ValueKind kind, MicroBatch microBatch,
                     Bytes output,
                     const std::function<uint64_t(uint64_t)> &sampleOf) const {
  const bool areLabels = kind == program::ValueKind::Labels;
  const std::vector<Column> &columns = areLabels ? labels : inputs;
  size_t sampleBytes = 0;
  for (const Column &column : columns)
    sampleBytes += static_cast<size_t>(column.field.bytes());
  if ((!areLabels && kind != program::ValueKind::Tokens) || output.empty() ||
      sampleBytes == 0 || output.size() % sampleBytes != 0)
    throw std::invalid_argument("expected inputs or labels in rows of " +
                                std::to_string(sampleBytes) + " bytes, got " +
                                std::to_string(output.size()) + " bytes of " +
                                program::nameOf(kind));
  const uint64_t rows = output.size() / sampleBytes;
  const uint64_t first =
      (microBatch.index * microBatch.parts + microBatch.part) * rows;
  for (uint64_t row = 0; row < rows; ++row) {
    const uint64_t sample = sampleOf(first + row);
    size_t begin = 0;
    for (const Column &column : columns) {
      const auto bytes = static_cast<size_t>(column.field.bytes());
      if (column.array)
        column.array->read(sample, output.subspan(begin + row * bytes, bytes));
      begin += rows * bytes;
    }
  }
}

void ArrayData::load(program::ValueKind kind, MicroBatch microBatch,
                     Bytes output) {
  fill(kind, microBatch, output, [&](uint64_t position) {
    return order.value().sampleAt(microBatch.step, position).sample;
  });
}

class ArrayData::HeldOut : public DataSource {
public:
  HeldOut(const ArrayData &data, uint64_t samples)
      : data(data), samples(samples) {}

  void load(program::ValueKind kind, MicroBatch microBatch,
            Bytes output) override {
    microBatch.index += microBatch.step * data.microBatches;
    data.fill(kind, microBatch, output, [&](uint64_t number) {
      // Use double, because the product may exceed 64 bits.
      const auto place = static_cast<uint64_t>(
          static_cast<double>(data.held) *
          static_cast<double>(std::min(number, samples - 1)) /
          static_cast<double>(samples));
      return data.training + std::min(place, data.held - 1);
    });
  }

private:
  const ArrayData &data;
  uint64_t samples;
};

std::unique_ptr<DataSource> ArrayData::heldOut(uint64_t samples) const {
  if (held == 0)
    throw std::runtime_error(
        "expected at least one held-out sample, got none of the " +
        std::to_string(training) +
        ": give more samples, another --hold-out, or --evaluate-samples 0");
  return std::make_unique<HeldOut>(*this, samples);
}
