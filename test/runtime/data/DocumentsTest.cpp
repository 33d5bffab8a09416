//===- DocumentsTest.cpp - Windows and the documents of a text ------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/data/DocumentWindows.h"

#include "runtime/data/OpenTokens.h"
#include "runtime/data/TextData.h"
#include "runtime/program/Package.h"
#include "test/runtime/data/DataFolder.h"
#include "test/runtime/model/SmallModel.h"
#include "test/runtime/program/SamplePackages.h"

#include <algorithm>
#include <set>

namespace chimera::runtime {
namespace {

using namespace test;

std::vector<uint64_t> startsOf(const DocumentWindows &windows) {
  std::vector<uint64_t> starts;
  for (uint64_t window = 0; window < windows.count(); ++window)
    starts.push_back(windows.startOf(window));
  return starts;
}

TEST(DocumentWindows, AreWithinDocuments) {
  const std::vector<uint64_t> ends = {4, 9, 18, 40};
  // The documents have 4, 5, 9 and, of this part, 14 tokens. A window has 4
  // tokens and the label of its last one.
  const DocumentWindows windows(ends, {0, 32}, 4);
  EXPECT_EQ(startsOf(windows), (std::vector<uint64_t>{4, 9, 13, 18, 22, 26}));
  // The last document has a rest of one token.
  std::set<uint64_t> places;
  for (uint64_t epoch = 0; epoch < 40; ++epoch) {
    EXPECT_EQ(windows.startOf(0, 7, epoch), 4u);
    EXPECT_EQ(windows.startOf(2, 7, epoch), 13u);
    const uint64_t first = windows.startOf(3, 7, epoch);
    places.insert(first);
    EXPECT_EQ(windows.startOf(5, 7, epoch), first + 8);
  }
  EXPECT_EQ(places, (std::set<uint64_t>{18, 19}));
  EXPECT_EQ(startsOf(DocumentWindows(ends, {32, 8}, 4)),
            (std::vector<uint64_t>{32}));
  EXPECT_EQ(DocumentWindows(ends, {0, 9}, 5).count(), 0u);
  EXPECT_EQ(DocumentWindows(ends, {40, 0}, 4).count(), 0u);
  EXPECT_NE(windows.digest(), DocumentWindows(ends, {0, 31}, 4).digest());
}

class DocumentsTest : public DataFolder {
protected:
  DocumentsTest() {
    program = smallProgram({.context = 8, .vocabulary = 600}, {4});
    program.micro_batches = 4; // so a mini-batch has 8 samples
  }

  /// Files NAME.bin with the tokens first, first + 1, … as uint16, and NAME.idx
  /// with documents of these lengths.
  std::string documents(const std::string &name, uint32_t first,
                        const std::vector<int32_t> &lengths) {
    std::string index("MMIDIDX\0\0", 9);
    const auto add = [&](auto number) {
      index.append(reinterpret_cast<const char *>(&number), sizeof(number));
    };
    add(uint64_t{1});
    add(uint8_t{8});
    add(uint64_t{lengths.size()});
    add(uint64_t{lengths.size() + 1});
    for (int32_t length : lengths)
      add(length);
    uint32_t tokens = 0;
    for (int32_t length : lengths) {
      add(int64_t{2} * tokens);
      tokens += static_cast<uint32_t>(length);
    }
    for (size_t document = 0; document <= lengths.size(); ++document)
      add(static_cast<int64_t>(document));
    writeBytes(name + ".idx", index);
    return write<uint16_t>(name + ".bin", first, tokens);
  }
  TextData open(const std::vector<std::string> &files, double holdOut,
                const TokenSampleOptions &form,
                TokenFormat format = TokenFormat::Auto) {
    return TextData(
        openTokens(files, {.format = format, .vocabulary = vocabulary}),
        program, holdOut, form, LastBatch::Fill);
  }
  std::string refusal(const std::vector<std::string> &files, double holdOut,
                      const TokenSampleOptions &form,
                      TokenFormat format = TokenFormat::Auto) {
    try {
      open(files, holdOut, form, format);
    } catch (const std::exception &error) {
      return error.what();
    }
    return "(accepted)";
  }
  /// The first tokens of the samples of an epoch.
  std::set<int64_t> startsOf(TextData &data, uint64_t epoch) {
    std::set<int64_t> starts;
    const uint64_t samples = data.sampleOrder().samples();
    std::vector<int64_t> tokens(8), labels(8);
    for (uint64_t sample = epoch * samples; sample < (epoch + 1) * samples;
         ++sample) {
      const MicroBatch one{.step = sample / 8, .index = sample % 8};
      data.load(program::ValueKind::Tokens, one, bytesOf(tokens));
      data.load(program::ValueKind::Labels, one, bytesOf(labels));
      for (size_t i = 0; i < 8; ++i) {
        EXPECT_EQ(tokens[i], tokens[0] + static_cast<int64_t>(i));
        EXPECT_EQ(labels[i], tokens[i] + 1);
      }
      starts.insert(tokens[0]);
    }
    return starts;
  }
  /// Gives the program a model with the inputs input_ids and position_ids, and
  /// with a loss that has a weight.
  void takePositions() {
    program.model = program::packageWithTwoLossTerms();
    program::PackageT &package = *program.model;
    package.inputs = {program::kInputIds, program::kPositionIds};
    package.labels = {program::kLabels, program::kLossScales};
    package.kinds[0]->parameters[0]->shape[0] = 600;
    constexpr auto kLong = program::TensorType::Int64;
    program::setFields(package.kinds[0]->graphs->inputs,
                       {{kLong, {8}}, {kLong, {8}}});
    program::setFields(package.kinds[2]->graphs->labels,
                       {{kLong, {8}}, {kLong, {2}}});
  }

  program::ProgramT program;
  uint64_t vocabulary = 600;
};

TEST_F(DocumentsTest, IndexListsTheEnds) {
  const auto indexed = documents("a", 0, {3, 0, 2, 4}),
             plain = write<uint16_t>("plain", 1, 5);
  auto tokens = openTokens({indexed}, {});
  EXPECT_TRUE(tokens->statesDocuments());
  EXPECT_EQ(tokens->documentEnds(), (std::vector<uint64_t>{3, 5, 9}));
  // The end of a file is the end of a document.
  tokens = openTokens({plain, indexed}, {.format = TokenFormat::UInt16});
  EXPECT_EQ(tokens->documentEnds(), (std::vector<uint64_t>{5, 8, 10, 14}));
  EXPECT_EQ(findDocumentEnds(*tokens, 4),
            (std::vector<uint64_t>{4, 5, 8, 10, 14}));
  EXPECT_FALSE(
      openTokens({plain}, {.format = TokenFormat::UInt16})->statesDocuments());
}

TEST_F(DocumentsTest, RefusesAnIndexThatContradictsItself) {
  const auto path = documents("a", 0, {3, 2, 4});
  std::string index;
  std::getline(std::ifstream(folder / "a.idx", std::ios::binary), index,
               '\xff');
  const size_t begins = 34 + 3 * 4, ofDocuments = begins + 3 * 8;
  const auto refusal = [&](size_t at, char value) -> std::string {
    std::string changed = index;
    changed[at] = value;
    writeBytes("a.idx", changed);
    try {
      openTokens({path}, {})->documentEnds();
    } catch (const std::runtime_error &error) {
      return error.what();
    }
    return "(accepted)";
  };
  EXPECT_NE(refusal(begins + 8, 12)
                .find("expected documents in order, got one "
                      "that begins at token 5 after one at "
                      "token 6"),
            std::string::npos);
  EXPECT_NE(refusal(begins + 8, 5).find("a multiple of 2 bytes, got 5"),
            std::string::npos);
  EXPECT_NE(refusal(ofDocuments + 8, 4).find("one of 3 sequences, got 4"),
            std::string::npos);
}

TEST_F(DocumentsTest, NoWindowCrossesADocument) {
  // Documents of 8, 9, 20 and 30 tokens have 0, 1, 2 and 3 windows.
  const auto path = documents("a", 0, {8, 9, 20, 30});
  TextData data = open({path}, 0, {.withinDocuments = true});
  EXPECT_EQ(data.sampleOrder().samples(), 6u);
  std::set<int64_t> all;
  for (uint64_t epoch = 0; epoch < 200; ++epoch) {
    const std::set<int64_t> starts = startsOf(data, epoch);
    EXPECT_EQ(starts.size(), 6u);
    all.insert(starts.begin(), starts.end());
  }
  // All places are used at which a window and its last label fit.
  std::set<int64_t> expected = {8};
  for (int64_t first : {17, 25})
    for (int64_t place = 0; place < 4; ++place)
      expected.insert(first + place);
  for (int64_t first : {37, 45, 53})
    for (int64_t place = 0; place < 6; ++place)
      expected.insert(first + place);
  EXPECT_EQ(all, expected);
}

TEST_F(DocumentsTest, HeldOutWindowsAreWithinDocumentsToo) {
  // The training part has 40 tokens; the document from 33 on has 7 of them.
  const auto path = documents("a", 0, {33, 22, 25});
  TextData data = open({path}, 0.5, {.withinDocuments = true});
  EXPECT_EQ(data.sampleOrder().samples(), 4u);
  std::vector<int64_t> starts;
  for (uint64_t window = 0; window < 8; ++window)
    starts.push_back(data.heldOutSample(window, 8).tokens[0]);
  EXPECT_EQ(starts, (std::vector<int64_t>{40, 40, 55, 55, 63, 63, 71, 71}));
  EXPECT_EQ(data.heldOutSample(0, 8).labels[7], 48);
}

TEST_F(DocumentsTest, TokensMayEndDocuments) {
  const auto path = write<uint16_t>("plain", 0, 50);
  TextData data = open({path}, 0, {.documentEnd = 20, .withinDocuments = true},
                       TokenFormat::UInt16);
  // The documents are the tokens 0 to 20 and 21 to 49.
  for (int64_t start : startsOf(data, 3))
    EXPECT_TRUE(start + 8 <= 20 || start >= 21) << start;
  TextData other = open({path}, 0, {.documentEnd = 21, .withinDocuments = true},
                        TokenFormat::UInt16);
  EXPECT_NE(data.digest(), other.digest());
}

TEST_F(DocumentsTest, RefusesFilesWithoutLongDocuments) {
  const auto plain = write<uint16_t>("plain", 0, 50);
  EXPECT_EQ(refusal({plain}, 0, {.withinDocuments = true}, TokenFormat::UInt16),
            "expected files that state where their documents end, got '" +
                plain +
                "': write them with tools/export/chimera-tokens --index, or "
                "give --document-end TOKEN");
  const auto path = documents("a", 0, {8, 8, 20});
  const std::string message = refusal({path}, 0.6, {.withinDocuments = true});
  EXPECT_NE(message.find("expected a document of at least 9 tokens of training "
                         "text (the context of 8 and one more) with "
                         "--within-documents, got none in '" +
                         path + "'; give a longer text"),
            std::string::npos)
      << message;
  TextData data =
      open({documents("b", 0, {20, 8})}, 0.2, {.withinDocuments = true});
  EXPECT_EQ(data.heldOutCount(), 0u);
  EXPECT_THROW(data.heldOut(1), std::runtime_error);
}

TEST_F(DocumentsTest, PositionsRestartInEachDocument) {
  takePositions();
  const auto path = documents("a", 0, {3, 1, 40});
  TextData data = open({path}, 0, {});
  std::vector<int64_t> in(32), out(16 + 4);
  bool hasRestarts = false;
  for (uint64_t step = 0; step < 20; ++step) {
    data.load(program::ValueKind::Tokens, {.step = step, .index = 1},
              bytesOf(in));
    data.load(program::ValueKind::Labels, {.step = step, .index = 1},
              bytesOf(out));
    for (size_t row = 0; row < 2; ++row) {
      int64_t position = 0;
      for (size_t i = 0; i < 8; ++i) {
        const int64_t token = in[8 * row + i];
        // The documents begin with the tokens 0, 3 and 4.
        if (token == 3 || token == 4)
          position = 0;
        EXPECT_EQ(in[16 + 8 * row + i], position++);
        const bool isLast = token == 2 || token == 3;
        EXPECT_EQ(out[8 * row + i], isLast ? kIgnored : token + 1);
        hasRestarts |= isLast;
      }
    }
  }
  EXPECT_TRUE(hasRestarts);
  // With a mask too, transformers' models do not look at positions.
  program.model->inputs[1] = program::kAttentionMask;
  TextData masked = open({path}, 0, {});
  masked.load(program::ValueKind::Labels, {.step = 0, .index = 0},
              bytesOf(out));
  EXPECT_EQ(std::ranges::count(out, kIgnored), 0);
}

TEST_F(DocumentsTest, RefusesLabelsAcrossDocumentsInAMean) {
  takePositions();
  program::PackageT &package = *program.model;
  package.labels = {program::kLabels};
  package.kinds[2]->graphs->labels.resize(1);
  package.kinds[2]->graphs->weight.reset();
  const auto path = documents("a", 0, {3, 40});
  EXPECT_NE(refusal({path}, 0, {})
                .find("expected a model whose loss is a sum and a weight"),
            std::string::npos);
  EXPECT_EQ(refusal({path}, 0, {.withinDocuments = true}), "(accepted)");
  // Without documents, positions count the tokens of a window.
  TextData data =
      open({write<uint16_t>("plain", 0, 50)}, 0, {}, TokenFormat::UInt16);
  std::vector<int64_t> in(32);
  data.load(program::ValueKind::Tokens, {.step = 0, .index = 0}, bytesOf(in));
  for (size_t i = 0; i < 16; ++i)
    EXPECT_EQ(in[16 + i], static_cast<int64_t>(i % 8));
}

} // namespace
} // namespace chimera::runtime
