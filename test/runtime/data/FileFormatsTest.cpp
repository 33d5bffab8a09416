//===- FileFormatsTest.cpp - Files that are neither text nor tokens -------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/data/FileFormats.h"
#include "test/runtime/data/DataFolder.h"

#include <sys/stat.h>
#include <thread>

namespace chimera::runtime {
namespace {

using namespace test;
using namespace std::string_literals;

struct Example {
  const char *name; ///< the name of the format in the error
  std::string bytes;
  bool isReliable = true; ///< named for all formats but Bytes
};

/// The first bytes of files that common tools write.
const Example kExamples[] = {
    {"a NumPy array (.npy)",
     "\x93NUMPY\x01\x00\x76\x00{'descr': '<u2', 'fortran_order': False, "s},
    {"a zip archive", "PK\x03\x04\x14\x00\x00\x00\x08\x00"s},
    {"a zip archive", "PK\x03\x04\x00\x00\x08\x08\x00\x00archive/data.pkl"s},
    {"a file of weights (safetensors)",
     "\x20\x00\x00\x00\x00\x00\x00\x00{\"wte\":{\"dtype\":\"F32\",\"shape\":"s},
    {"the index of a Megatron data set", "MMIDIDX\0\0\x01\0\0\0\0\0\0\0\x08"s},
    {"the index of a Megatron data set", "TNTIDX\0\0\x01\0\0\0\0\0\0\0"s},
    {"compressed by gzip", "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xed"s},
    {"compressed by gzip", "\x1f\x8b\x08\x08\x41\x42\x43\x64\x02\xfftext\0"s},
    {"compressed by xz", "\xfd\x37zXZ\x00\x00\x04\xe6"s},
    {"compressed by zstd", "\x28\xb5\x2f\xfd\x24\x0c"s},
    {"compressed by bzip2", "BZh91AY&SY\x12\x34"s},
    {"compressed by lz4", "\x04\x22\x4d\x18\x64\x40"s},
    {"a tar archive", "text.txt"s + std::string(249, '\0') + "ustar  "},
    {"HDF5", "\x89HDF\r\n\x1a\n\x00\x00"s},
    {"Parquet", "PAR1\x15\x04\x15\x10"s},
    {"Arrow", "ARROW1\x00\x00\xff\xff\xff\xff"s},
    {"Arrow", "\xff\xff\xff\xff\x70\x00\x00\x00\x10\x00\x00\x00\x00\x00\n\0"s},
    {"an SQLite database", "SQLite format 3\0\x10\x00"s},
    {"a file of weights (GGUF)", "GGUF\x03\x00\x00\x00"s},
    {"a program for processors (ELF)", "\x7f\x45LF\x02\x01\x01\x00"s},
    {"a compiled program (chimera-compile)", "CHIMERA\n\x01\x00"s},
    {"a PDF document", "%PDF-1.7\n"s},
    {"a pickle of Python", "\x80\x04\x95\x0b\0\0\0\0\0\0\0]\x94(K\x01K\x02e."s,
     false},
    {"a pickle of Python", "\x80\x02\x8a\nl\xfc\x9c\x46\xf9 j\xa8P\x19."s,
     false},
    {"text in UTF-16", "\xff\xfeT\0e\0x\0t\0"s, false},
    {"text in UTF-16", "\xfe\xff\0T\0e\0x\0t"s, false},
};

class FileFormatsTest : public DataFolder {};

TEST_F(FileFormatsTest, areNamedWithWhatToDo) {
  for (const Example &example : kExamples) {
    // Extend the example to 800 bytes, which is a whole number of tokens of
    // each size.
    const std::string stop =
        example.isReliable ? ""
                           : example.bytes.substr(example.bytes.size() - 1);
    const std::string bytes =
        example.bytes +
        std::string(800 - example.bytes.size() - stop.size(), 'x') + stop;
    const auto path = writeBytes("file", bytes);
    const std::string got = std::string("got ") + example.name;
    for (TokenFormat format :
         {TokenFormat::Auto, TokenFormat::UInt16, TokenFormat::UInt32}) {
      const std::string reason = refusal({path}, format);
      if (format == TokenFormat::Auto || example.isReliable)
        EXPECT_NE(reason.find(got), std::string::npos)
            << example.name << ": " << reason;
      else
        EXPECT_EQ(reason, "(accepted)") << example.name;
    }
    // The error also names the format if the model's vocabulary is not 256.
    EXPECT_NE(refusal({path}, TokenFormat::Auto, 512).find(got),
              std::string::npos);
    // If the user asks for bytes, any file is accepted.
    EXPECT_EQ(refusal({path}, TokenFormat::Bytes), "(accepted)");
  }
}

TEST_F(FileFormatsTest, ofTextAreNone) {
  for (const char *text :
       {"", "P", "PKZIP is a program", "BZh is no word", "{\"text\": \"x\"}",
        "GGU", "%PD", "\xef\xbb\xbfText behind a mark", "\x80", "PAR",
        "MMIDIDX", "\xff", "\x1f\x8b no compression",
        "!       {\"as long as a header could be\""})
    EXPECT_EQ(refusal({writeBytes("text", text)}, TokenFormat::Auto),
              "(accepted)")
        << text;
}

TEST_F(FileFormatsTest, areKnownOfWhatComesThroughAPipe) {
  const auto path = (folder / "pipe").string();
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  std::thread writer([&] { writeBytes("pipe", kExamples[0].bytes); });
  EXPECT_NE(refusal({path}, TokenFormat::Auto).find("a NumPy array (.npy): "),
            std::string::npos);
  writer.join();
}

} // namespace
} // namespace chimera::runtime
