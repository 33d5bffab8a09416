//===- MegatronIndexTest.cpp - The .idx file that describes a .bin file ---===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/data/OpenTokens.h"
#include "runtime/data/TokenCheck.h"
#include "test/runtime/data/DataFolder.h"

namespace chimera::runtime {
namespace {

using namespace test;

class MegatronIndexTest : public DataFolder {
protected:
  /// The bytes of an index of two sequences of three tokens each. A token has
  /// `width` bytes, and `code` is Megatron's number of its type.
  std::string indexOf(uint8_t code, int64_t width, uint64_t version = 1) {
    std::string bytes("MMIDIDX\0\0", 9);
    add(bytes, version);
    add(bytes, code);
    add(bytes, uint64_t{2});
    add(bytes, uint64_t{3});
    for (int32_t length : {3, 3})
      add(bytes, length);
    for (int64_t begin : {int64_t{0}, 3 * width})
      add(bytes, begin);
    for (int64_t document : {0, 1, 2})
      add(bytes, document);
    return bytes;
  }
  template <typename T> void add(std::string &bytes, T number) {
    bytes.append(reinterpret_cast<const char *>(&number), sizeof(number));
  }
};

TEST_F(MegatronIndexTest, saysWhatTheFileBesideItHolds) {
  writeBytes("a.idx", indexOf(8, 2));
  auto narrow = openTokens({write<uint16_t>("a.bin", 500, 6)}, {});
  EXPECT_EQ(narrow->count(), 6u);
  EXPECT_EQ(narrow->tokenBound(), 65536u);
  EXPECT_EQ(read(*narrow, 4, 2), (std::vector<int64_t>{504, 505}));

  writeBytes("b.idx", indexOf(4, 4));
  auto wide = openTokens({write<int32_t>("b.bin", 70'000, 6)}, {});
  EXPECT_EQ(wide->tokenBound(), uint64_t{1} << 31);
  EXPECT_EQ(read(*wide, 5, 1), (std::vector<int64_t>{70'005}));

  writeBytes("c.idx", indexOf(3, 2));
  EXPECT_EQ(openTokens({write<int16_t>("c.bin", 7, 6)}, {})->tokenBound(),
            32768u);
  writeBytes("d.idx", indexOf(1, 1));
  EXPECT_EQ(openTokens({write<uint8_t>("d.bin", 7, 6)}, {})->count(), 6u);
  // A file whose name does not end with .bin has no index. A file that ends
  // with .idx need not be an index.
  EXPECT_NE(refusal({write<uint16_t>("a", 500, 6)}, TokenFormat::Auto, 600),
            "(accepted)");
  writeBytes("text.idx", "page numbers");
  EXPECT_EQ(refusal({write<uint8_t>("text.bin", 65, 20)}, TokenFormat::Auto),
            "(accepted)");
}

TEST_F(MegatronIndexTest, takesPrecedenceOverTheOption) {
  writeBytes("a.idx", indexOf(4, 4));
  const auto path = write<int32_t>("a.bin", 1, 6);
  EXPECT_EQ(refusal({path}, TokenFormat::UInt32), "(accepted)");
  for (TokenFormat format : {TokenFormat::UInt16, TokenFormat::Bytes})
    EXPECT_NE(refusal({path}, format)
                  .find("a.idx' says int32: leave out "
                        "--tokens"),
              std::string::npos);
}

TEST_F(MegatronIndexTest, refusesAnIndexOfAnotherFile) {
  const auto path = write<int32_t>("a.bin", 1, 7);
  auto refusalOf = [&](const std::string &index) {
    writeBytes("a.idx", index);
    return refusal({path}, TokenFormat::Auto);
  };
  auto expectRefusal = [&](const std::string &index, const char *part) {
    const std::string reason = refusalOf(index);
    EXPECT_NE(reason.find(part), std::string::npos) << reason;
  };
  expectRefusal(indexOf(4, 4), "expected the 6 tokens that its index");
  expectRefusal(indexOf(5, 8), "got int64: write them as int32");
  expectRefusal(indexOf(7, 4), "got float32");
  expectRefusal(indexOf(2, 1), "got int8");
  expectRefusal(indexOf(9, 4), "a type of numbers from 1 to 8, got 9");
  expectRefusal(indexOf(0, 4), "a type of numbers from 1 to 8, got 0");
  expectRefusal(indexOf(4, 4, 2), "expected version 1 of Megatron's format");
  expectRefusal(std::string("TNTIDX\0\0\1", 9), "the older TNTIDX");
  std::string index = indexOf(4, 4);
  index.resize(index.size() - 1);
  expectRefusal(index, "expected 2 sequences and 3 numbers of documents, got");
  // The index states more sequences than a file can have.
  index = indexOf(4, 4);
  index.replace(18, 8, 8, '\xff');
  expectRefusal(index, "expected 18446744073709551615 sequences");
  // Let a sequence start inside a token, or before the file.
  index = indexOf(4, 4);
  index[34 + 8 + 8] = 2;
  expectRefusal(index, "begins at a multiple of 4 bytes, got 2");
  index.replace(34 + 8 + 8, 8, 8, '\xff');
  expectRefusal(index, "begins at a multiple of 4 bytes, got -1");
  index = indexOf(4, 4);
  index.replace(38, 4, 4, '\xff');
  expectRefusal(index, "expected a last sequence with tokens, got -1");
}

TEST_F(MegatronIndexTest, saysWhereDocumentsEnd) {
  writeBytes("a.idx", indexOf(8, 2));
  const auto plain = write<uint16_t>("plain", 1, 4),
             indexed = write<uint16_t>("a.bin", 500, 6);
  const auto tokens =
      openTokens({plain, indexed}, {.format = TokenFormat::UInt16});
  std::vector<uint64_t> ends;
  for (uint64_t token = 0; token < tokens->count(); ++token)
    ends.push_back(tokens->documentEnd(token));
  EXPECT_EQ(ends, (std::vector<uint64_t>{4, 4, 4, 4, 7, 7, 7, 10, 10, 10}));
  // Now the first document has both sequences.
  std::string index = indexOf(8, 2);
  index[34 + 24 + 8] = 2;
  writeBytes("a.idx", index);
  EXPECT_EQ(openTokens({indexed}, {})->documentEnd(0), 6u);
  // Now the sequences at which documents begin and end are 0, 3, 2 or 0, -1, 2,
  // so they are out of order.
  for (char sequence : {3, -1}) {
    index[34 + 24 + 8] = sequence;
    writeBytes("a.idx", index);
    EXPECT_THROW(openTokens({indexed}, {})->documentEnd(1), std::runtime_error);
  }
}

TEST_F(MegatronIndexTest, refusesNegativeTokens) {
  writeBytes("a.idx", indexOf(4, 4));
  const auto path = writeNumbers<int32_t>("a.bin", {1, 2, 3, 4, -5, 6});
  auto tokens = openTokens({path}, {});
  EXPECT_EQ(checkTokens(*tokens, 0, 1),
            "expected tokens that are 0 or more, got -5 as token 4 of '" +
                path + "'");
  EXPECT_EQ(checkTokens(*tokens, 100, 1),
            "expected tokens of the model's vocabulary of 100, got -5 as token "
            "4 of '" +
                path + "'");
}

} // namespace
} // namespace chimera::runtime
