//===- ArrayDataTest.cpp - Training samples from arrays -------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/program/Gpt2Package.h"
#include "test/runtime/data/ArraysFixture.h"
#include "test/runtime/data/DataFolder.h"

#include <algorithm>
#include <map>
#include <set>

namespace chimera::runtime {
namespace {

using namespace test;

class ArrayDataTest : public DataFolder {
protected:
  ArrayFileName npy(const std::string &field, const std::string &name,
                    const std::string &descr, const std::string &shape,
                    const std::string &elements) {
    return {field, writeBytes(name, npyOf(npyHeader(descr, shape), elements))};
  }
  /// The files of samples [first, end).
  std::vector<ArrayFileName> npys(int first, int end) {
    const std::string n = std::to_string(end - first);
    const std::string at = std::to_string(first) + "-" + std::to_string(end);
    return {npy("pixels", "p" + at + ".npy", "<f4", "(" + n + ", 2, 3)",
                pixelsOf(first, end)),
            npy("known", "k" + at + ".npy", "|b1", "(" + n + ",)",
                knownOf(first, end)),
            npy("classes", "c" + at + ".npy", "<i8", "(" + n + ",)",
                classesOf(first, end))};
  }
  ArrayFileName safetensors(const std::string &name,
                            const nlohmann::json &header,
                            const std::string &data) {
    return {"", writeBytes(name, safetensorsOf(header, data))};
  }
  ArrayFileName safetensors(int first, int end) {
    return safetensors(std::to_string(first) + "-" + std::to_string(end) +
                           ".safetensors",
                       headerOfSamples(first, end), dataOfSamples(first, end));
  }
  std::string refusal(const std::vector<ArrayFileName> &files,
                      double holdOut = 0) {
    try {
      ArrayData(files, program, holdOut);
    } catch (const std::exception &error) {
      return error.what();
    }
    return "(accepted)";
  }
  void expectRefusal(const std::vector<ArrayFileName> &files,
                     const std::string &why) {
    const std::string message = refusal(files);
    EXPECT_NE(message.find(why), std::string::npos) << message;
  }

  /// The numbers of the samples in a micro-batch, after a check of their
  /// values.
  std::vector<int> samplesOf(DataSource &data, MicroBatch microBatch,
                             size_t rows = 2) {
    std::vector<std::byte> inputs(rows * 25);
    std::vector<int64_t> classes(rows);
    data.load(program::ValueKind::Tokens, microBatch, inputs);
    data.load(program::ValueKind::Labels, microBatch,
              std::as_writable_bytes(std::span(classes)));
    std::vector<int> samples;
    for (size_t row = 0; row < rows; ++row) {
      const int sample = static_cast<int>(classes[row]) - 100;
      samples.push_back(sample);
      float pixels[6];
      std::memcpy(pixels, inputs.data() + 24 * row, sizeof pixels);
      for (int i = 0; i < 6; ++i)
        EXPECT_EQ(pixels[i], static_cast<float>(10 * sample + i));
      // A boolean is 0 or 1, whatever the file has for true.
      EXPECT_EQ(static_cast<int>(inputs[24 * rows + row]),
                sample % 2 == 0 ? 1 : 0);
    }
    return samples;
  }
  /// The samples of a step.
  std::vector<int> step(DataSource &data, uint64_t step) {
    std::vector<int> samples;
    for (uint64_t index = 0; index < 4; ++index)
      std::ranges::copy(samplesOf(data, {step, index}),
                        std::back_inserter(samples));
    return samples;
  }

  program::ProgramT program = programOfArrays();
};

TEST_F(ArrayDataTest, givesEachSampleOnceAnEpoch) {
  ArrayData data(npys(0, 20), program, 0);
  EXPECT_EQ(data.sampleOrder().samples(), 20u);
  EXPECT_EQ(data.sampleOrder().stepsOf(1), 2u);
  std::set<int> all;
  for (uint64_t epoch = 0; epoch < 10; ++epoch) {
    std::set<int> once;
    for (uint64_t each : {2 * epoch, 2 * epoch + 1})
      for (int sample : step(data, each))
        EXPECT_TRUE(once.insert(sample).second) << sample;
    all.merge(once);
  }
  EXPECT_EQ(all.size(), 20u);
}

// A sample does not depend on the number of samples in its micro-batch, and a
// part of a micro-batch has some of its samples.
TEST_F(ArrayDataTest, splitsAMiniBatch) {
  ArrayData data(npys(0, 20), program, 0);
  const std::vector<int> whole = samplesOf(data, {1, 0}, 8);
  EXPECT_EQ(step(data, 1), whole);
  for (uint32_t part = 0; part < 2; ++part)
    EXPECT_EQ(samplesOf(data, {1, 3, part, 2}, 1),
              std::vector<int>{whole[6 + part]});
}

// All ways to divide samples among files give the same data.
TEST_F(ArrayDataTest, joinsShards) {
  ArrayData one(npys(0, 20), program, 0);
  std::vector<std::vector<ArrayFileName>> ways;
  ways.push_back({safetensors(0, 20)});
  ways.push_back({safetensors(0, 7), safetensors(7, 9), safetensors(9, 20)});
  std::vector<ArrayFileName> both = npys(0, 7);
  std::ranges::copy(npys(7, 20), std::back_inserter(both));
  ways.push_back(both);
  both = npys(0, 7);
  both.push_back(safetensors(7, 20));
  ways.push_back(both);
  for (const auto &files : ways) {
    ArrayData data(files, program, 0);
    for (uint64_t each = 0; each < 4; ++each)
      EXPECT_EQ(step(data, each), step(one, each));
  }
}

TEST_F(ArrayDataTest, readsNpzFiles) {
  ArrayData whole(npys(0, 20), program, 0);
  for (bool isZip64 : {false, true}) {
    const ArrayFileName one{
        "", writeBytes("a.npz", zipOf(npzMembersOf(0, 9), isZip64))};
    const ArrayFileName two{
        "", writeBytes("b.npz", zipOf(npzMembersOf(9, 20), !isZip64))};
    ArrayData data({one, two}, program, 0);
    EXPECT_EQ(data.sampleOrder().samples(), 20u);
    for (uint64_t each : {0, 1, 2})
      EXPECT_EQ(step(data, each), step(whole, each));
  }
}

TEST_F(ArrayDataTest, refusesWrongNpzFiles) {
  const auto expectWrong = [&](const std::string &bytes,
                               const std::string &why) {
    expectRefusal({{"", writeBytes("a.npz", bytes)}}, why);
  };
  expectWrong("", "it is no zip archive (.npz), or a truncated one");
  expectWrong(std::string(100, 'P'), "it is no zip archive (.npz)");
  const auto members = npzMembersOf(0, 20);
  const std::string right = zipOf(members);
  expectWrong(right.substr(0, right.size() - 30), "a truncated one");
  expectWrong(right.substr(100), "it is no");
  expectWrong(zipOf(members, false, 8),
              "expected members that are not compressed, so that single "
              "samples can be read, got 'pixels.npy': write it with "
              "numpy.savez");
  expectWrong(zipOf(members, false, 0, 1), "not encrypted, got 'pixels.npy'");
  expectWrong(zipOf({members[1]}),
              "expected an array for one of the model's fields 'pixels', "
              "'known', 'classes', got 'other'");
  expectWrong(zipOf({members[0], members[2]}),
              "expected samples of the model's field 'classes'");
  expectWrong(zipOf({members[0], members[2], npzMembersOf(0, 19)[3]}),
              "expected as many samples in each field, got 20 of 'known' and "
              "19 of 'classes'");
  expectWrong(zipOf({members[0], members[1], members[0]}),
              "expected one member of each name, got 'pixels.npy' twice or "
              "more: write the archive anew");
  expectWrong(zipOf({{"pixels.npy", "abc"}}), "it is no .npy file");
  // The header says 20 samples, but the member ends before. The next member's
  // bytes must not be read.
  std::string cut = members[0].second;
  cut.pop_back();
  expectWrong(zipOf({{"pixels.npy", cut}, members[2], members[3]}),
              "expected 480 bytes of elements, as its header says, got 479");
}

TEST_F(ArrayDataTest, refusesModelsThatWouldMixDocuments) {
  nlohmann::json header = headerOfSamples(0, 20);
  header["__metadata__"] = {{"chimera_needs", "position_ids"}};
  expectRefusal({safetensors("a.safetensors", header, dataOfSamples(0, 20))},
                "its samples are only for models with the field "
                "'position_ids', which keeps the documents in a sample apart, "
                "got a model with 'pixels', 'known', 'classes'");
  header["__metadata__"] = {{"chimera_needs", "known"}, {"by", "hand"}};
  EXPECT_EQ(
      refusal({safetensors("a.safetensors", header, dataOfSamples(0, 20))}),
      "(accepted)");
}

TEST_F(ArrayDataTest, holdsOutTheEnd) {
  ArrayData data(npys(0, 20), program, 0.4);
  for (uint64_t each = 0; each < 20; ++each)
    for (int sample : step(data, each))
      EXPECT_LT(sample, 12);
  EXPECT_EQ(data.heldOutCount(), 8u);
  const auto held = data.heldOut(8);
  EXPECT_EQ(step(*held, 0), (std::vector{12, 13, 14, 15, 16, 17, 18, 19}));
  // With fewer samples than there are, they are evenly spaced. With more, they
  // repeat.
  EXPECT_EQ(samplesOf(*data.heldOut(2), {0, 0}), (std::vector{12, 16}));
  const auto repeated = data.heldOut(16);
  std::map<int, int> times;
  for (uint64_t pass : {0, 1})
    for (int sample : step(*repeated, pass))
      ++times[sample];
  EXPECT_EQ(times.size(), 8u);
  for (const auto &[sample, count] : times)
    EXPECT_EQ(count, 2) << sample;
  EXPECT_THROW(ArrayData(npys(0, 20), program, 0).heldOut(1),
               std::runtime_error);
}

// All samples may be held out, as with --validation.
TEST_F(ArrayDataTest, mayHoldOutAll) {
  ArrayData data(npys(0, 4), program, 1);
  EXPECT_EQ(samplesOf(*data.heldOut(4), {0, 0}, 4), (std::vector{0, 1, 2, 3}));
  EXPECT_THROW(data.sampleOrder(), std::bad_optional_access);
  EXPECT_THROW(step(data, 0), std::bad_optional_access);
}

TEST_F(ArrayDataTest, digestIsOfTheSamples) {
  const uint64_t digest = ArrayData(npys(0, 20), program, 0).digest();
  EXPECT_EQ(ArrayData(npys(0, 20), program, 0).digest(), digest);
  EXPECT_NE(ArrayData(npys(0, 20), program, 0.1).digest(), digest);
  EXPECT_NE(ArrayData(npys(1, 21), program, 0).digest(), digest);
}

TEST_F(ArrayDataTest, findsLabelsThatAreNoClass) {
  program::LayerGraphsT &last = *program.model->kinds[2]->graphs;
  ArrayData unknown(npys(0, 20), program, 0.5);
  EXPECT_EQ(unknown.check(2), ""); // the model does not state its classes
  last.logits = std::make_unique<program::GraphT>(*last.forward);
  // The label of sample i is 100 + i.
  for (uint32_t threads : {1u, 3u}) {
    last.vocabulary = 120;
    EXPECT_EQ(ArrayData(npys(0, 20), program, 0.5).check(threads), "");
    last.vocabulary = 113;
    const ArrayData data(npys(0, 20), program, 0.5);
    const std::string fault = data.check(threads);
    EXPECT_EQ(fault.find("expected labels below 113, the number of the model's "
                         "classes, got 113 in row 13 of '"),
              0u)
        << fault;
    EXPECT_TRUE(fault.ends_with("c0-20.npy'")) << fault;
    // Each part checks its own samples.
    EXPECT_EQ(data.check(threads, 0, 2), "");
    EXPECT_EQ(data.check(threads, 1, 2), fault);
    // In several files, the row is that of the file.
    std::vector<ArrayFileName> files = npys(0, 9);
    std::ranges::copy(npys(9, 20), std::back_inserter(files));
    const std::string second = ArrayData(files, program, 0).check(threads);
    EXPECT_NE(second.find("in row 4 of '"), std::string::npos) << second;
  }
  // Labels below 0 do not count.
  last.vocabulary = 5;
  const auto labels = npy("classes", "below.npy", "<i8", "(2,)",
                          std::string(8, '\xff') + std::string(8, '\0'));
  std::vector<ArrayFileName> files = npys(0, 2);
  files.back() = labels;
  EXPECT_EQ(ArrayData(files, program, 1).check(1), "");
  // A loss may ignore a label that is no class.
  last.vocabulary = 119;
  EXPECT_NE(ArrayData(npys(0, 20), program, 0).check(1), "");
  auto call = std::make_unique<program::CallT>();
  call->operator_ = "chimera::linear_cross_entropy";
  for (int i = 0; i < 5; ++i)
    call->arguments.push_back(std::make_unique<program::ArgumentT>());
  call->arguments[4]->kind = program::ArgumentKind::Integer;
  call->arguments[4]->integers = {119};
  program::ArgumentT &ignored = *call->arguments[4];
  last.forward->calls.push_back(std::move(call));
  EXPECT_EQ(ArrayData(npys(0, 20), program, 0).check(1), "");
  for (int64_t other : {118, -100}) {
    ignored.integers = {other};
    EXPECT_NE(ArrayData(npys(0, 20), program, 0).check(1), "") << other;
  }
  // If the loss ignores a label below 0, it ignores no other one.
  last.vocabulary = 5;
  const std::string negative = ArrayData(files, program, 1).check(1);
  EXPECT_EQ(negative.find("expected labels of 0 to 4, or -100 for a label that "
                          "does not count, got -1 in row 0 of '"),
            0u)
      << negative;
  ignored.integers = {-1};
  EXPECT_EQ(ArrayData(files, program, 1).check(1), "");
  // The loss of the built-in GPT-2 is a mean, so all its labels must count.
  last.vocabulary = 5;
  program.model->producer = program::kGpt2Producer;
  const std::string fault = ArrayData(files, program, 1).check(1);
  EXPECT_EQ(fault.find("expected labels that all count, because the loss of "
                       "the built-in GPT-2 is the mean of a micro-batch, got "
                       "-1 in row 0 of '"),
            0u)
      << fault;
}

// The scales of loss terms do not come from the data.
TEST_F(ArrayDataTest, leavesOutScales) {
  program::PackageT &package = *program.model;
  package.labels.push_back(program::kLossScales);
  package.kinds[2]->graphs->labels.push_back(
      program::perSample(program::TensorType::Float64, {2}));
  ArrayData data(npys(0, 20), program, 0);
  std::vector<std::byte> bytes(2 * 24, std::byte{7});
  data.load(program::ValueKind::Labels, {}, bytes);
  EXPECT_NE(bytes[0], std::byte{7});
  EXPECT_TRUE(std::all_of(bytes.begin() + 16, bytes.end(),
                          [](std::byte b) { return b == std::byte{7}; }));
}

TEST_F(ArrayDataTest, parsesNames) {
  const auto parse = [](const char *text) {
    const auto name = parseArrayFile(text);
    return name ? name->field + "|" + name->path : "(none)";
  };
  EXPECT_EQ(parse("a.npy"), "|a.npy");
  EXPECT_EQ(parse("x=a.npy"), "x|a.npy");
  EXPECT_EQ(parse("x=lr=1/a=b.npy"), "x|lr=1/a=b.npy");
  EXPECT_EQ(parse("/lr=1/a.npy"), "|/lr=1/a.npy");
  EXPECT_EQ(parse("a=b.safetensors"), "|a=b.safetensors");
  EXPECT_EQ(parse("tokens.bin"), "(none)");
  EXPECT_EQ(parse("x=tokens.bin"), "(none)");
}

TEST_F(ArrayDataTest, refusesWrongFields) {
  auto files = npys(0, 20);
  const auto with = [&](ArrayFileName file) {
    auto all = files;
    all.push_back(std::move(file));
    return all;
  };
  expectRefusal(
      with({"", files[0].path}),
      "cannot train on the arrays in '" + files[0].path +
          "': a .npy file does not name its array: give FIELD=FILE.npy, where "
          "FIELD is one of 'pixels', 'known', 'classes'");
  expectRefusal(with({"Pixels", files[0].path}),
                "the model has no field 'Pixels'");
  expectRefusal(with({"pixels", "/nowhere.npy"}), "No such file or directory");
  expectRefusal(with({"pixels", folder.string()}), "': expected a file");
  files.pop_back();
  expectRefusal(files,
                "expected samples of the model's field 'classes' (int64, shape "
                "[] a sample), got none: give classes=FILE.npy, or a "
                ".npz or safetensors file with an array of that name");
  expectRefusal(with(npy("classes", "empty.npy", "<i8", "(0,)", "")),
                "expected samples of the model's field 'classes', got an array "
                "of 0");
  expectRefusal(
      with(npy("classes", "short.npy", "<i8", "(19,)", classesOf(0, 19))),
      "expected as many samples in each of the model's fields, got 20 "
      "of 'pixels', 20 of 'known' and 19 of 'classes'");
}

TEST_F(ArrayDataTest, refusesWrongTypesAndShapes) {
  for (const auto &[descr, shape, got] :
       {std::tuple("<i4", "(40,)", "got int32 of shape [40]"),
        {"<i8", "(20,1)", "got int64 of shape [20,1]"},
        {"<i8", "()", "got int64 of shape []"}}) {
    const size_t bytes = std::string(shape) == "()" ? 8 : 160;
    expectRefusal(
        {npy("classes", "a.npy", descr, shape, std::string(bytes, '\0'))},
        "a.npy': expected int64 numbers of shape [samples] for the "
        "model's 'classes', " +
            std::string(got));
  }
  expectRefusal({npy("pixels", "a.npy", "<f4", "(20, 3, 2)", pixelsOf(0, 20))},
                "expected float32 numbers of shape [samples,2,3] for the "
                "model's 'pixels', got float32 of shape [20,3,2]");
}

TEST_F(ArrayDataTest, refusesWrongSafetensors) {
  const auto expect = [&](const nlohmann::json &header, const char *why,
                          int missing = 0) {
    std::string data = dataOfSamples(0, 20);
    data.resize(data.size() - static_cast<size_t>(missing));
    expectRefusal({safetensors("a.safetensors", header, data)}, why);
  };
  nlohmann::json header = headerOfSamples(0, 20);
  EXPECT_EQ(
      refusal({safetensors("a.safetensors", header, dataOfSamples(0, 20))}),
      "(accepted)");
  header["pixels"]["dtype"] = "F64";
  expect(header, "expected \"F32\" numbers of shape [samples,2,3] for the "
                 "model's 'pixels', got \"F64\" of shape [20,2,3]");
  header = headerOfSamples(0, 20);
  header["pixels"]["shape"] = {20, 6};
  expect(header, "got \"F32\" of shape [20,6]");
  header["pixels"]["shape"] = "many";
  expect(header, "expected a list of numbers as the shape of 'pixels'");
  header["pixels"]["shape"] = {19, 2, 3};
  expect(header, "expected data_offsets of 19 times 24 bytes inside the file "
                 "for 'pixels', got [0,480]");
  header = headerOfSamples(0, 20);
  expect(header, "' are not inside the file: it is truncated or damaged", 1);
  expect(header, "overlap or leave gaps", /*missing=*/-1);
  header["other"] = header["known"];
  header.erase("known");
  expect(header, "expected samples of the model's field 'known'");
  nlohmann::json one;
  one["other"] = {
      {"dtype", "I64"}, {"shape", {82}}, {"data_offsets", {0, 660}}};
  expect(one, "expected a tensor for one of the model's fields 'pixels', "
              "'known', 'classes', got 'other'");
  // A file whose fields have different numbers of samples.
  header = headerOfSamples(0, 20);
  header["known"] = {
      {"dtype", "BOOL"}, {"shape", {19}}, {"data_offsets", {640, 659}}};
  expect(header,
         "expected as many samples in each field, got 20 of 'pixels' and 19 of "
         "'known'",
         1);
  expectRefusal({{"", writeBytes("b.safetensors", "{}")}},
                "it is no safetensors file, or a truncated one");
}

TEST_F(ArrayDataTest, refusesFilesThatShrink) {
  ArrayData data(npys(0, 20), program, 0);
  std::filesystem::resize_file(folder / "p0-20.npy", 200);
  std::vector<std::byte> inputs(8 * 25);
  try {
    data.load(program::ValueKind::Tokens, {}, inputs);
    FAIL();
  } catch (const std::runtime_error &error) {
    EXPECT_NE(std::string(error.what())
                  .find("p0-20.npy': it was truncated while it was read"),
              std::string::npos)
        << error.what();
  }
}

TEST_F(ArrayDataTest, refusesWrongArguments) {
  EXPECT_NE(refusal(npys(0, 7)).find("expected at least 8 training samples"),
            std::string::npos);
  EXPECT_NE(refusal(npys(0, 20), 1.1).find("held-out part in [0, 1]"),
            std::string::npos);
  ArrayData data(npys(0, 20), program, 0);
  std::vector<std::byte> bytes(49);
  EXPECT_THROW(data.load(program::ValueKind::Tokens, {}, bytes),
               std::invalid_argument);
  bytes.resize(50);
  EXPECT_NO_THROW(data.load(program::ValueKind::Tokens, {}, bytes));
  EXPECT_THROW(data.load(program::ValueKind::Loss, {}, bytes),
               std::invalid_argument);
  program.model.reset();
  EXPECT_NE(refusal(npys(0, 20)).find("expected a program with a model"),
            std::string::npos);
}

} // namespace
} // namespace chimera::runtime
