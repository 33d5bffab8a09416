//===- NativeCodeTest.cpp - Native code that is refused -------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// These tests use archives without code. Their faults must be reported before
// anything is loaded. test/e2e/native.py runs code that PyTorch compiled.
//
//===----------------------------------------------------------------------===//

#include "runtime/model/graph/NativeCode.h"
#include "runtime/model/graph/Sha256.h"
#include "runtime/program/Layers.h"
#include "test/runtime/program/SamplePackages.h"

#include <ATen/ATen.h>
#include <ATen/Version.h>
#include <caffe2/serialize/inline_container.h>
#include <gtest/gtest.h>
#include <torch/version.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <unistd.h>

namespace chimera::runtime {
namespace {

std::string digestOf(const std::string &text) {
  return sha256(std::as_bytes(std::span(text)));
}

TEST(Sha256, isThatOfTheStandard) {
  EXPECT_EQ(digestOf(""), "e3b0c44298fc1c149afbf4c8996fb924"
                          "27ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(digestOf("abc"), "ba7816bf8f01cfea414140de5dae2223"
                             "b00361a396177a9cb410ff61f20015ad");
  // This text is so long that the padding and the number of bits need a second
  // block.
  EXPECT_EQ(
      digestOf("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
      "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(digestOf(std::string(1000000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

class NativeCodeTest : public testing::Test {
protected:
  void SetUp() override {
    const auto *test = testing::UnitTest::GetInstance()->current_test_info();
    folder = std::filesystem::path(testing::TempDir()) /
             (std::string("native-") + test->name() + "-" +
              std::to_string(getpid()));
    std::filesystem::remove_all(folder);
    std::filesystem::create_directory(folder);
    program.model = program::samplePackage();
    program.model->producer = "torch " TORCH_VERSION;
    program.micro_batch_size = 4;
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  program::LayerGraphsT &graphs() const {
    return *program.model->kinds[1]->graphs;
  }

  /// Writes a file of native code to which the package refers.
  void write(const std::string &content) {
    refer(digestOf(content));
    std::ofstream(folder / (digestOf(content) + ".pt2"), std::ios::binary)
        << content;
  }

  /// Lets the package refer to native code for micro-batches of 4 samples.
  void refer(const std::string &digest) const {
    graphs().native.push_back(std::make_unique<program::NativeArchiveT>());
    graphs().native.back()->samples = 4;
    graphs().native.back()->sha256 = digest;
  }

  /// An archive with one function. The file that should be its library is not a
  /// library.
  static std::string archive(const std::string &processor,
                             const std::string &type = "Float64") {
    const std::string signature =
        R"({\"processor\":\")" + processor + R"(\",\"inputs\":[{\"type\":\")" +
        type + R"(\",\"shape\":[3],\"strides\":[1]}],\"results\":1})";
    const std::string metadata = R"({"chimera":")" + signature + R"("})";
    std::string bytes;
    caffe2::serialize::PyTorchStreamWriter writer(
        [&](const void *data, size_t size) {
          bytes.append(static_cast<const char *>(data), size);
          return size;
        });
    const std::string at = "data/aotinductor/forward/x.wrapper";
    writer.writeRecord(at + ".so", "no library", 10);
    writer.writeRecord(at + "_metadata.json", metadata.data(), metadata.size());
    writer.writeEndOfFile();
    return bytes;
  }

  void expectRefusal(const std::string &reason) const {
    try {
      NativeCode code(program, folder);
      FAIL() << "expected a refusal: " << reason;
    } catch (const std::invalid_argument &error) {
      EXPECT_NE(std::string(error.what()).find(reason), std::string::npos)
          << error.what();
    }
  }

  std::filesystem::path folder;
  program::ProgramT program;
};

TEST_F(NativeCodeTest, aModelWithoutNativeCode) {
  expectRefusal("needs a model that was exported with --native");
}

TEST_F(NativeCodeTest, aMissingFile) {
  refer(digestOf("x"));
  expectRefusal(digestOf("x") + ".pt2: cannot open the native code of the "
                                "program's model: export the model with "
                                "--native again");
}

TEST_F(NativeCodeTest, codeForAnotherNumberOfSamples) {
  write(archive(at::get_cpu_capability()));
  program.micro_batch_size = 6;
  expectRefusal("expected native code for micro-batches of 6 samples, got it "
                "for 4: export the model with examples of as many samples");
}

TEST_F(NativeCodeTest, aMissingFolder) {
  write(archive("DEFAULT"));
  folder /= "another";
  expectRefusal("cannot open the native code");
}

TEST_F(NativeCodeTest, aFileOfAnotherContent) {
  write("one");
  std::ofstream(folder / (digestOf("one") + ".pt2")) << "two";
  expectRefusal("expected the file that the program names by its SHA-256");
}

TEST_F(NativeCodeTest, aFileThatIsNoArchive) {
  write("no archive");
  expectRefusal("expected an archive that this version's exporter made");
}

TEST_F(NativeCodeTest, anUnknownType) {
  write(archive("DEFAULT", "Complex"));
  expectRefusal("expected an archive that this version's exporter made");
}

TEST_F(NativeCodeTest, anotherVersionOfPyTorch) {
  write(archive("DEFAULT"));
  program.model->producer = "torch 1.0.0";
  expectRefusal(", got native code for torch 1.0.0");
}

TEST_F(NativeCodeTest, anotherProcessor) {
  write(archive("Z80"));
  expectRefusal("expected native code for this processor, " +
                at::get_cpu_capability() + ", got some for Z80");
}

TEST_F(NativeCodeTest, codeForOtherGraphs) {
  write(archive(at::get_cpu_capability()));
  const NativeCode code(program, folder);
  EXPECT_EQ(code.loadFunction(graphs(), 4, "backward", 1, 1), nullptr);
  EXPECT_EQ(code.loadFunction(graphs(), 2, "forward", 1, 1), nullptr);
  EXPECT_EQ(
      code.loadFunction(*program.model->kinds[0]->graphs, 4, "forward", 1, 1),
      nullptr);
  EXPECT_EQ(code.callCount(), 0u);
  EXPECT_THROW(code.loadFunction(graphs(), 4, "forward", 2, 1),
               std::invalid_argument);
  EXPECT_THROW(code.loadFunction(graphs(), 4, "forward", 1, 2),
               std::invalid_argument);
}

TEST_F(NativeCodeTest, aFileThatIsNotALibrary) {
  write(archive(at::get_cpu_capability()));
  const NativeCode code(program, folder);
  EXPECT_THROW(code.loadFunction(graphs(), 4, "forward", 1, 1),
               std::runtime_error);
}

} // namespace
} // namespace chimera::runtime
