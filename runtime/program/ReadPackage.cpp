//===- ReadPackage.cpp - A package from its folder ------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/program/Package.h"
#include "runtime/program/PackageSchema.h"
#include "runtime/program/Printable.h"
#include "runtime/program/Program.h"

#include <flatbuffers/idl.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <set>
#include <sys/stat.h>

namespace chimera::program {

/// Reads a file of at most 256 MiB. With this limit, the package that is made
/// from it has less than 2 GB. Returns false, with the reason in `error`, on
/// failure.
static bool readText(const std::string &path, std::string &text,
                     std::string &error) {
  constexpr uint64_t kMost = uint64_t{1} << 28;
  struct stat status;
  if (::stat(path.c_str(), &status) != 0) {
    error = path + ": cannot open: " + std::strerror(errno);
    return false;
  }
  if (!S_ISREG(status.st_mode)) {
    error = path + ": expected a file";
    return false;
  }
  const auto size = static_cast<uint64_t>(status.st_size);
  if (size > kMost) {
    error = path + ": expected at most " + std::to_string(kMost) +
            " bytes, got " + std::to_string(size);
    return false;
  }
  std::ifstream file(path, std::ios::binary);
  text.resize(size);
  if (!file.read(text.data(), static_cast<std::streamsize>(size))) {
    error = path + ": cannot read: " + std::strerror(errno);
    return false;
  }
  return true;
}

/// The package that computes in `type`, or the first one if there is no `type`.
/// Null, with the reason in `error`, if there is none.
static std::unique_ptr<PackageT>
choose(PackageFileT file, std::optional<DataType> type, std::string &error) {
  std::string known;
  for (auto &package : file.packages) {
    if (!type || package->type == *type)
      return std::move(package);
    known += (known.empty() ? "" : ", ") + std::string(nameOf(package->type));
  }
  if (!type)
    error = "expected at least one package, got none";
  else
    error = std::string("expected a model that was exported for ") +
            nameOf(*type) + ", got one for " +
            (known.empty() ? "no type" : known) +
            ": export it with --compute " + nameOf(*type);
  return nullptr;
}

std::unique_ptr<PackageT> parsePackage(const std::string &text,
                                       std::optional<DataType> type,
                                       std::string &error) {
  // Refuse a zero byte, because the parser would ignore everything after it.
  if (text.find('\0') != std::string::npos) {
    error = "expected JSON, got a byte that is zero";
    return nullptr;
  }
  flatbuffers::IDLOptions options;
  options.strict_json = true;
  flatbuffers::Parser parser(options);
  if (!parser.Parse(kPackageSchema) || !parser.ParseJson(text.c_str())) {
    std::string reason = parser.error_;
    while (!reason.empty() && reason.back() == '\n')
      reason.pop_back();
    error = "expected a package's description: " + printable(reason);
    return nullptr;
  }
  flatbuffers::Verifier::Options limits;
  limits.max_tables = std::numeric_limits<flatbuffers::uoffset_t>::max();
  flatbuffers::Verifier verifier(parser.builder_.GetBufferPointer(),
                                 parser.builder_.GetSize(), limits);
  if (!VerifyPackageFileBuffer(verifier)) {
    error = "expected a package's description, got another object";
    return nullptr;
  }
  auto file = UnPackPackageFile(parser.builder_.GetBufferPointer());
  error.clear();
  std::set<DataType> types;
  for (const auto &package : file->packages) {
    if (!types.insert(package->type).second) {
      error = std::string("expected one package for each type, got two for ") +
              nameOf(package->type);
      return nullptr;
    }
    if (std::string problem = checkPackage(*package); !problem.empty()) {
      error = std::string("the package for ") + nameOf(package->type) + ": " +
              problem;
      return nullptr;
    }
  }
  return choose(std::move(*file), type, error);
}

/// An error if `path` is a file and not the folder of a package. If the file is
/// in such a folder, the error names the folder.
static std::string errorOfFile(const std::filesystem::path &path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored))
    return "";
  const std::filesystem::path folder = path.parent_path();
  return path.string() + ": expected the folder of a package, got a file" +
         (std::filesystem::exists(folder / kPackageFile, ignored)
              ? ": name its folder, " +
                    (folder.empty() ? std::string(".") : folder.string())
              : "");
}

std::unique_ptr<PackageT> readPackage(const std::string &path,
                                      std::optional<DataType> type,
                                      std::string &error) {
  error = errorOfFile(path);
  if (!error.empty())
    return nullptr;
  const std::string file = path + "/" + kPackageFile;
  std::string text;
  if (!readText(file, text, error))
    return nullptr;
  auto package = parsePackage(text, type, error);
  if (!package)
    error = file + ": " + error;
  return package;
}

} // namespace chimera::program
