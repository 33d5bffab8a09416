//===- NpyTest.cpp - Headers of NumPy's files -----------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/data/Npy.h"

#include "test/runtime/data/ArraysFixture.h"
#include "test/runtime/data/DataFolder.h"

namespace chimera::runtime {
namespace {

using namespace test;
using program::TensorType;

class NpyTest : public DataFolder {
protected:
  NpyHeader read(const std::string &bytes) {
    return readNpyHeader(InputFile(writeBytes("a.npy", bytes), "cannot read"));
  }
  void expectRefusal(const std::string &bytes, const std::string &why) {
    try {
      read(bytes);
      ADD_FAILURE() << "accepted; expected: " << why;
    } catch (const std::runtime_error &error) {
      const std::string message = error.what();
      EXPECT_TRUE(message.starts_with("cannot read '" +
                                      (folder / "a.npy").string() + "': "));
      EXPECT_NE(message.find(why), std::string::npos) << message;
    }
  }
};

TEST_F(NpyTest, readsAllTypes) {
  const std::pair<const char *, TensorType> types[] = {
      {"|b1", TensorType::Boolean}, {"|u1", TensorType::UInt8},
      {"|i1", TensorType::Int8},    {"<i2", TensorType::Int16},
      {"<i4", TensorType::Int32},   {"<i8", TensorType::Int64},
      {"<f2", TensorType::Float16}, {"<f4", TensorType::Float32},
      {"<f8", TensorType::Float64}};
  for (const auto &[descr, type] : types) {
    const std::string elements(static_cast<size_t>(6 * program::bytesOf(type)),
                               'x');
    const NpyHeader header = read(npyOf(npyHeader(descr, "(2, 3)"), elements));
    EXPECT_EQ(header.type, type) << descr;
    EXPECT_EQ(header.shape, (std::vector<int64_t>{2, 3}));
    EXPECT_EQ(header.begin, 128u);
  }
}

TEST_F(NpyTest, readsAllFormsOfHeaders) {
  for (char version : {1, 2, 3})
    EXPECT_EQ(read(npyOf(npyHeader("|u1", "(3,)"), "abc", version)).shape,
              std::vector<int64_t>{3});
  EXPECT_EQ(read(npyOf(npyHeader("|u1", "()"), "a")).shape,
            std::vector<int64_t>{});
  EXPECT_EQ(read(npyOf(npyHeader("|u1", "(0, 7)"), "")).shape,
            (std::vector<int64_t>{0, 7}));
  // Other spaces and quotes, another order, no comma at the end.
  EXPECT_EQ(read(npyOf("{\"shape\":(1,2,),\"fortran_order\":False,\n"
                       " \"descr\":\"|u1\"}",
                       "ab"))
                .shape,
            (std::vector<int64_t>{1, 2}));
  // The order of the elements of a list does not matter.
  EXPECT_EQ(read(npyOf(npyHeader("|u1", "(2,)", "True"), "ab")).shape,
            std::vector<int64_t>{2});
}

TEST_F(NpyTest, refusesOtherFiles) {
  expectRefusal("", "it is no .npy file");
  expectRefusal("\x93NUMPY\1", "it is no .npy file");
  expectRefusal(std::string(100, 'a'), "it is no .npy file");
  expectRefusal(npyOf(npyHeader("|u1", "(3,)"), "abc", 4),
                "expected version 1, 2 or 3 of the .npy format, got version 4");
  expectRefusal(npyOf(npyHeader("|u1", "(3,)"), "").substr(0, 60),
                "expected a header of 118 bytes, at most 65536, got a file of "
                "60 bytes");
  expectRefusal(
      npyOf(npyHeader("|u1", "(3,)") + std::string(70'000, ' '), "abc", 2),
      "at most 65536");
}

TEST_F(NpyTest, refusesOtherElements) {
  expectRefusal(npyOf(npyHeader(">f4", "(1,)"), "abcd"),
                "got elements '>f4'; the bytes are in the order of another "
                "processor: convert the array with astype()");
  expectRefusal(npyOf(npyHeader("|O", "(1,)"), "abcd"),
                "Python objects are no numbers");
  expectRefusal(npyOf(npyHeader("<U4", "(1,)"), "abcd"), "got elements '<U4'");
  expectRefusal(npyOf("{'descr': [('a', '<f4')], 'fortran_order': False, "
                      "'shape': (1,)}",
                      "abcd"),
                "got one of records with several fields");
  expectRefusal(npyOf(npyHeader("|u1", "(2, 2)", "True"), "abcd"),
                "save numpy.ascontiguousarray(array)");
}

TEST_F(NpyTest, refusesWrongSizes) {
  expectRefusal(npyOf(npyHeader("<f4", "(2, 3)"), std::string(23, 'a')),
                "expected 24 bytes of elements, as its header says, got 23: "
                "the file is truncated");
  expectRefusal(npyOf(npyHeader("<f4", "(2, 3)"), std::string(25, 'a')),
                "expected 24 bytes of elements, as its header says, got 25");
  expectRefusal(npyOf(npyHeader("<f4", "(4611686018427387904, 4)"), ""),
                "expected more than 2^64 bytes of elements");
}

TEST_F(NpyTest, refusesInvalidHeaders) {
  for (const char *header :
       {"", "{", "{}", "[]", "{'descr': '|u1'}", "{'descr': '|u1' 'shape'",
        "{'descr': '|u1', 'fortran_order': False}",
        "{'descr': '|u1', 'fortran_order': None, 'shape': (3,)}",
        "{'descr': '|u1', 'fortran_order': False, 'shape': (-3,)}",
        "{'descr': '|u1', 'fortran_order': False, 'shape': (3 3)}",
        "{'descr': '|u1', 'fortran_order': False, 'shape': (99999999999999999"
        "99999,)}",
        "{'descr': '|u1', 'fortran_order': False, 'shape': 3}",
        "{'descr': '|u1', 'other': False, 'shape': (3,)}",
        "{'descr: |u1, fortran_order: False, shape: (3,)}"})
    expectRefusal(npyOf(header, "abc"), "in the header of the .npy file, got");
}

} // namespace
} // namespace chimera::runtime
