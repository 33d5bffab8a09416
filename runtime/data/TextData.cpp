//===- TextData.cpp - Training samples from tokens ------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/data/TextData.h"

#include "runtime/data/OpenTokens.h"
#include "runtime/data/TokenCheck.h"
#include "runtime/program/Package.h"
#include "runtime/program/Printable.h"
#include "runtime/random/Random.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <unordered_map>

namespace chimera::runtime {

namespace {

/// A function that returns a sample's values of one field. Null if samples have
/// no such field.
using Values = std::span<const int64_t> (*)(const Sample &);

Values valuesOf(const std::string &name) {
  if (name == program::kInputIds)
    return [](const Sample &s) -> std::span<const int64_t> { return s.tokens; };
  if (name == program::kTokenTypeIds)
    return
        [](const Sample &s) -> std::span<const int64_t> { return s.segments; };
  if (name == program::kAttentionMask)
    return
        [](const Sample &s) -> std::span<const int64_t> { return s.attention; };
  if (name == program::kPositionIds)
    return
        [](const Sample &s) -> std::span<const int64_t> { return s.positions; };
  if (name == program::kLabels)
    return [](const Sample &s) -> std::span<const int64_t> { return s.labels; };
  if (name == program::kNextSentenceLabel)
    return [](const Sample &s) -> std::span<const int64_t> {
      return {&s.nextSentence, 1};
    };
  return nullptr;
}

template <typename T>
void putAs(std::span<const int64_t> values, std::byte *target) {
  for (int64_t value : values) {
    const T number = static_cast<T>(value);
    std::memcpy(target, &number, sizeof(number));
    target += sizeof(number);
  }
}

using Put = void (*)(std::span<const int64_t>, std::byte *);

/// The function that writes numbers as this type; null if the type is not
/// supported.
Put putterOf(program::TensorType type) {
  switch (type) {
  case program::TensorType::Boolean:
  case program::TensorType::UInt8:
    return putAs<uint8_t>;
  case program::TensorType::Int32:
    return putAs<int32_t>;
  case program::TensorType::Int64:
    return putAs<int64_t>;
  case program::TensorType::Float32:
    return putAs<float>;
  case program::TensorType::Float64:
    return putAs<double>;
  default:
    return nullptr;
  }
}

bool has(const std::vector<program::Field> &fields, const char *name) {
  return std::ranges::find(fields, name, &program::Field::name) != fields.end();
}

/// `fields`, with the name `nameOfTokens` for the field with the tokens (or
/// their labels). Throws std::runtime_error unless samples of tokens have all
/// fields.
std::vector<program::Field> expectFields(std::vector<program::Field> fields,
                                         const char *nameOfTokens,
                                         int64_t context) {
  const std::optional<size_t> ofTokens =
      program::indexOfTokens(fields, nameOfTokens);
  if (ofTokens)
    fields[*ofTokens].name = nameOfTokens;
  for (const program::Field &field : fields) {
    if (field.name == program::kLossScales)
      continue; // does not come from the sample
    const bool ofSample = field.name == program::kNextSentenceLabel;
    const std::vector<int64_t> shape =
        ofSample ? std::vector<int64_t>() : std::vector<int64_t>{context};
    if (!valuesOf(field.name) || !putterOf(field.type) || field.shape != shape)
      throw std::runtime_error(
          "expected a model whose inputs are among input_ids, token_type_ids, "
          "attention_mask and position_ids, and whose labels are among labels "
          "and next_sentence_label, with one number per token "
          "(next_sentence_label: per sample); got one with '" +
          field.name + "' of " + std::to_string(field.elements()) + " " +
          program::nameOf(field.type) +
          " a sample: other data than tokens are arrays; give " +
          program::printable(field.name) +
          "=FILE.npy and so for each field, or FILE.safetensors");
  }
  // A model without a field for tokens (or labels) is an error. But a model
  // that predicts only next_sentence_label needs no labels.
  if (!ofTokens && (nameOfTokens != std::string_view(program::kLabels) ||
                    !has(fields, program::kNextSentenceLabel)))
    throw std::runtime_error(std::string("expected a model with '") +
                             nameOfTokens +
                             "' of type int64, because --data gives tokens");
  return fields;
}

std::vector<program::Field> expectInputs(const program::PackageT &model) {
  return expectFields(program::inputFields(model), program::kInputIds,
                      program::contextOf(model).value_or(0));
}

std::vector<program::Field> expectLabels(const program::PackageT &model) {
  return expectFields(program::labelFields(model), program::kLabels,
                      program::contextOf(model).value_or(0));
}

/// `form`, in which windows may have several documents if the model can keep
/// them apart and the documents are known. With an attention mask, the models
/// of transformers do not look at positions. Throws std::runtime_error if the
/// labels at the ends of documents would count.
TokenSampleOptions
separatingDocuments(TokenSampleOptions form, const Tokens &tokens,
                    const program::PackageT &model,
                    const std::vector<program::Field> &inputs) {
  form.separatesDocuments =
      has(inputs, program::kPositionIds) &&
      !has(inputs, program::kAttentionMask) && !form.pairing &&
      !form.withinDocuments &&
      (form.documentEnd.has_value() || tokens.statesDocuments());
  if (form.separatesDocuments && !form.masking &&
      program::lossTerms(model) == 0)
    throw std::runtime_error(
        "expected a model whose loss is a sum and a weight, because the last "
        "token of a document has no label, got one whose loss is a mean: "
        "export it with such a loss, or give --within-documents");
  return form;
}

} // namespace

void expectTokenFields(const program::PackageT &model) {
  expectInputs(model);
  expectLabels(model);
}

TextData::TextData(const std::string &path, const program::ProgramT &program,
                   double holdOut, uint64_t mostBytes, LastBatch last)
    : TextData(openTokens({path}, {.format = TokenFormat::Bytes,
                                   .mostBytes = mostBytes}),
               program, holdOut, {}, last) {}

TextData::TextData(std::unique_ptr<Tokens> given,
                   const program::ProgramT &program, double holdOut,
                   const TokenSampleOptions &form, LastBatch last)
    : tokens(std::move(given)),
      microBatches(uint64_t{program.micro_batches} * program.data_parallel),
      seed(program.seed) {
  if (!program.model)
    throw std::invalid_argument(
        "expected a program with a model to read text for, got one of bare "
        "stages");
  if (!(holdOut >= 0 && holdOut <= 1))
    throw std::invalid_argument(
        "expected a held-out part in [0, 1] of the text, got " +
        std::to_string(holdOut));
  const program::PackageT &model = *program.model;
  context = program::contextOf(model).value_or(0);
  inputs = expectInputs(model);
  labels = expectLabels(model);
  if (!form.pairing && (has(inputs, program::kNextSentenceLabel) ||
                        has(labels, program::kNextSentenceLabel)))
    throw std::runtime_error(
        "expected pairs of sentences (--pairs) for a model that predicts "
        "which follow each other");
  if (form.pairing && !form.masking &&
      program::indexOfTokens(labels, program::kLabels))
    throw std::runtime_error(
        "expected --mask with --pairs: in a pair of sentences, the next token "
        "is not always that of the text");
  if (form.pairing && !has(inputs, program::kAttentionMask))
    throw std::runtime_error(
        "expected a model with attention_mask for --pairs: without it, the "
        "model would attend to padding");
  if (form.pairing && form.withinDocuments)
    throw std::runtime_error(
        "sentences of --pairs never cross a document's end: leave out "
        "--within-documents");
  samples = std::make_unique<TokenSamples>(
      [this](uint64_t first, std::span<int64_t> into) { read(first, into); },
      [this](uint64_t token) { return tokens->documentEnd(token); }, context,
      separatingDocuments(form, *tokens, model, inputs), seed);
  vocabulary = static_cast<uint64_t>(program::vocabularyOf(model).value_or(0));
  const auto checkMark = [&](int64_t mark) {
    if (vocabulary > 0 && static_cast<uint64_t>(mark) >= vocabulary)
      throw std::runtime_error("expected tokens of the model's vocabulary of " +
                               std::to_string(vocabulary) +
                               " as marks (--mask, --pairs, "
                               "--document-end), got " +
                               std::to_string(mark));
  };
  if (form.masking)
    checkMark(form.masking->token);
  if (form.pairing)
    for (int64_t mark : {form.pairing->classification, form.pairing->separator,
                         form.pairing->padding})
      checkMark(mark);
  if (form.documentEnd)
    checkMark(*form.documentEnd);
  if (form.masking && form.pairing)
    for (int64_t mark : {form.pairing->classification, form.pairing->separator,
                         form.pairing->padding})
      if (mark == form.masking->token)
        throw std::runtime_error(
            "expected different tokens for --mask and --pairs, got " +
            std::to_string(mark) + " in both");
  const auto all = static_cast<int64_t>(tokens->count());
  training = all - static_cast<int64_t>(
                       std::floor(static_cast<double>(all) * holdOut));
  if (context < 1)
    throw std::runtime_error(
        "expected a model with at least one token in a sample, got none");
  if (form.withinDocuments)
    cutIntoDocuments(form);
  if (holdOut == 1)
    return;
  expectWindow("training", training, trainingWindows, "give a longer text");
  if (trainingWindows) {
    order.emplace(trainingWindows->count(),
                  microBatches * program.micro_batch_size, last, seed);
    return;
  }
  // For each place of the first window, the last window ends inside the
  // training part. If there is room for one window only, it has less places.
  const auto size = static_cast<uint64_t>(training),
             window = static_cast<uint64_t>(context);
  const uint64_t windows = std::max<uint64_t>((size - window) / window, 1);
  firstWindows = std::min(window, size - windows * window);
  order.emplace(windows, microBatches * program.micro_batch_size, last, seed);
}

void TextData::cutIntoDocuments(const TokenSampleOptions &form) {
  const std::vector<uint64_t> ends =
      findDocumentEnds(*tokens, form.documentEnd);
  const auto size = static_cast<uint64_t>(training);
  trainingWindows.emplace(ends, TokenRange{0, size}, context);
  heldOutWindows.emplace(ends, TokenRange{size, tokens->count() - size},
                         context);
}

void TextData::expectWindow(const char *part, int64_t count,
                            const std::optional<DocumentWindows> &windows,
                            const char *advice) const {
  if (windows && windows->count() == 0)
    throw std::runtime_error(
        "expected a document of at least " + std::to_string(context + 1) +
        " tokens of " + part + " text (the context of " +
        std::to_string(context) +
        " and one more) with --within-documents, got none in " +
        tokens->fileNames() + "; " + advice);
  if (count < context + 1)
    throw std::runtime_error(
        "expected at least " + std::to_string(context + 1) +
        (isOfBytes() ? " bytes of " : " tokens of ") + part +
        " text (the context of " + std::to_string(context) +
        " and one more), got " + std::to_string(count) + " of the " +
        std::to_string(tokens->count()) + " in " + tokens->fileNames() + "; " +
        advice);
}

uint64_t TextData::digest() const {
  const uint64_t whole =
      mix({tokens->digest(), static_cast<uint64_t>(training)});
  return trainingWindows
             ? mix({whole, trainingWindows->digest(), heldOutWindows->digest()})
             : whole;
}

std::string TextData::check(uint32_t threads, uint32_t part,
                            uint32_t parts) const {
  return checkTokens(*tokens, vocabulary, threads, part, parts);
}

void TextData::read(uint64_t first, std::span<int64_t> into) const {
  tokens->read(first, into);
  const uint64_t limit = validTokenLimit(*tokens, vocabulary);
  for (size_t i = 0; i < into.size(); ++i)
    if (static_cast<uint64_t>(into[i]) >= limit)
      throw std::runtime_error(
          invalidTokenMessage(*tokens, vocabulary, first + i, into[i]));
}

Sample TextData::trainingSample(uint64_t step, uint64_t number) const {
  const auto [epoch, window] = order.value().sampleAt(step, number);
  if (trainingWindows)
    return samples->sampleAt(trainingWindows->startOf(window, seed, epoch),
                             {0, static_cast<uint64_t>(training)}, step,
                             number);
  const uint64_t first = mix({seed, kFirstWindow, epoch}) % firstWindows;
  return samples->sampleAt(first + window * static_cast<uint64_t>(context),
                           {0, static_cast<uint64_t>(training)}, step, number);
}

Sample TextData::heldOutSample(uint64_t window, uint64_t windows) const {
  const auto count = static_cast<uint64_t>(heldOutTokens()),
             first = static_cast<uint64_t>(training);
  if (heldOutWindows) {
    const uint64_t all = heldOutWindows->count();
    const auto chosen = static_cast<uint64_t>(static_cast<double>(all) *
                                              static_cast<double>(window) /
                                              static_cast<double>(windows));
    return samples->sampleAt(heldOutWindows->startOf(std::min(chosen, all - 1)),
                             {first, count}, UINT64_MAX, window);
  }
  const uint64_t room = count - static_cast<uint64_t>(context) - 1;
  // Use double, because the product may exceed 64 bits. Rounding never gives a
  // start after `room`.
  const uint64_t start =
      windows < 2 ? 0
                  : static_cast<uint64_t>(static_cast<double>(room) *
                                          static_cast<double>(window) /
                                          static_cast<double>(windows - 1));
  return samples->sampleAt(first + start, {first, count}, UINT64_MAX, window);
}

uint64_t TextData::heldOutCount() const {
  if (heldOutWindows)
    return heldOutWindows->count();
  // The label of a window's last token is one more token.
  return static_cast<uint64_t>(std::max<int64_t>(heldOutTokens() - 1, 0) /
                               context);
}

template <typename SampleOf>
void TextData::fill(program::ValueKind kind, MicroBatch microBatch,
                    Bytes output, const SampleOf &sampleOf) const {
  const bool areLabels = kind == program::ValueKind::Labels;
  const std::vector<program::Field> &fields = areLabels ? labels : inputs;
  const auto rowBytes = static_cast<size_t>(program::sampleBytes(fields));
  if ((!areLabels && kind != program::ValueKind::Tokens) || output.empty() ||
      output.size() % rowBytes != 0)
    throw std::invalid_argument(
        std::string("expected tokens or labels in rows of ") +
        std::to_string(rowBytes) + " bytes, got " +
        std::to_string(output.size()) + " bytes of " + program::nameOf(kind));
  const uint64_t rows = output.size() / rowBytes;
  const uint64_t first =
      (microBatch.index * microBatch.parts + microBatch.part) * rows;
  for (uint64_t row = 0; row < rows; ++row) {
    const Sample sample = sampleOf(first + row);
    std::byte *begin = output.data();
    for (const program::Field &field : fields) {
      const auto bytes = static_cast<uint64_t>(field.bytes());
      if (field.name != program::kLossScales)
        putterOf(field.type)(valuesOf(field.name)(sample), begin + row * bytes);
      begin += rows * bytes;
    }
  }
}

void TextData::load(program::ValueKind kind, MicroBatch microBatch,
                    Bytes output) {
  fill(kind, microBatch, output, [&](uint64_t number) {
    return trainingSample(microBatch.step, number);
  });
}

class TextData::HeldOut : public DataSource {
public:
  HeldOut(const TextData &text, uint64_t windows)
      : text(text), windows(windows) {}

  void load(program::ValueKind kind, MicroBatch microBatch,
            Bytes output) override {
    microBatch.index += microBatch.step * text.microBatches;
    text.fill(kind, microBatch, output, [&](uint64_t number) {
      return text.heldOutSample(std::min(number, windows - 1), windows);
    });
  }

private:
  const TextData &text;
  uint64_t windows;
};

std::unique_ptr<DataSource> TextData::heldOut(uint64_t windows) const {
  expectWindow("held-out", heldOutTokens(), heldOutWindows,
               trainingTokens() == 0
                   ? "give a longer text"
                   : "give a longer text, another --hold-out, "
                     "or --evaluate-samples 0");
  return std::make_unique<HeldOut>(*this, windows);
}

bool TextData::predictsTokensAlone() const {
  return labels.size() == 1 && labels[0].name == program::kLabels;
}

double TextData::unigramLoss(const TextData &heldOut, uint64_t windows) const {
  uint64_t possible = isOfBytes() ? 256 : vocabulary;
  // If the model does not state its vocabulary, a token may be any 32-bit
  // number. A list with a count for each of these numbers might not fit into
  // memory. So tokens from 2^16 on are counted in a map.
  std::vector<double> counts(std::max<uint64_t>(possible, 1 << 16), 1);
  std::unordered_map<uint64_t, double> others;
  auto countOf = [&](int64_t token) -> double & {
    const auto number = static_cast<uint64_t>(token);
    possible = std::max(possible, number + 1);
    return number < counts.size() ? counts[number]
                                  : others.try_emplace(number, 1).first->second;
  };
  // Blocks of the training tokens, evenly spaced if there are very many.
  constexpr int64_t kBlock = int64_t{1} << 16, kMostBlocks = int64_t{1} << 12;
  const int64_t blocks = (training + kBlock - 1) / kBlock;
  const int64_t counted = std::min(blocks, kMostBlocks);
  int64_t tokensCounted = 0;
  std::vector<int64_t> block;
  for (int64_t k = 0; k < counted; ++k) {
    // k * blocks / counted, without overflow
    const int64_t first =
        (blocks / counted * k + blocks % counted * k / counted) * kBlock;
    block.resize(static_cast<size_t>(std::min(kBlock, training - first)));
    read(static_cast<uint64_t>(first), block);
    for (int64_t token : block)
      ++countOf(token);
    tokensCounted += static_cast<int64_t>(block.size());
  }
  std::vector<int64_t> labels;
  for (uint64_t window = 0; window < windows; ++window)
    for (int64_t label : heldOut.heldOutSample(window, windows).labels)
      if (label != kIgnored) {
        countOf(label);
        labels.push_back(label);
      }
  const double total =
      static_cast<double>(tokensCounted) + static_cast<double>(possible);
  double sum = 0;
  for (int64_t label : labels)
    sum -= std::log(countOf(label) / total);
  return sum / static_cast<double>(labels.size());
}

} // namespace chimera::runtime
