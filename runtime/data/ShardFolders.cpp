//===- ShardFolders.cpp - Folders of data files ---------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/data/ShardFolders.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <span>
#include <stdexcept>
#include <string_view>
#include <system_error>

using namespace chimera::runtime;
namespace fs = std::filesystem;

namespace {
constexpr std::string_view kNpy[] = {".npy"},
                           kOthers[] = {".safetensors", ".npz", ".bin"};

bool isDigit(char c) { return c >= '0' && c <= '9'; }

/// Takes the digits at the begin of `text`, without leading zeros.
std::string_view takeNumber(std::string_view &text) {
  const auto end = std::ranges::find_if_not(text, isDigit);
  std::string_view digits = text.substr(0, size_t(end - text.begin()));
  text.remove_prefix(digits.size());
  digits.remove_prefix(std::min(digits.find_first_not_of('0'), digits.size()));
  return digits;
}

/// The paths of the files in `folder` whose names have one of the `suffixes`.
std::vector<std::string> shardsOf(const std::string &folder,
                                  std::span<const std::string_view> suffixes,
                                  const std::string &advice) {
  const auto fail = [&](const std::string &why) {
    throw std::runtime_error("cannot train on the files in the folder '" +
                             folder + "': " + why);
  };
  std::map<std::string_view, std::vector<std::string>> bySuffix;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename();
    for (std::string_view suffix : suffixes)
      if (name.ends_with(suffix) && !name.starts_with('.'))
        bySuffix[suffix].push_back(name);
  }
  if (error)
    fail(error.message());
  if (bySuffix.empty())
    fail("expected files named " + advice + ", got none");
  if (bySuffix.size() > 1)
    fail("expected files of one kind, got '" +
         bySuffix.begin()->second.front() + "' and '" +
         std::next(bySuffix.begin())->second.front() + "'");
  std::vector<std::string> shards = std::move(bySuffix.begin()->second);
  std::ranges::sort(shards, isBeforeByNumbers);
  for (std::string &shard : shards)
    shard = (fs::path(folder) / shard).string();
  return shards;
}

bool isFolder(const std::string &path) {
  std::error_code error;
  return fs::is_directory(path, error);
}
} // namespace

bool chimera::runtime::isBeforeByNumbers(const std::string &left,
                                         const std::string &right) {
  std::string_view a = left, b = right;
  while (!a.empty() && !b.empty()) {
    if (isDigit(a.front()) && isDigit(b.front())) {
      const std::string_view one = takeNumber(a), other = takeNumber(b);
      if (one != other)
        return one.size() != other.size() ? one.size() < other.size()
                                          : one < other;
      continue;
    }
    if (a.front() != b.front())
      return a.front() < b.front();
    a.remove_prefix(1);
    b.remove_prefix(1);
  }
  // Names such as a1 and a01 are equal here, but must have an order.
  return a.size() != b.size() ? a.size() < b.size() : left < right;
}

std::vector<std::string>
chimera::runtime::filesOfFolders(const std::vector<std::string> &given) {
  std::vector<std::string> files;
  for (const std::string &each : given) {
    if (isFolder(each)) {
      for (std::string &shard :
           shardsOf(each, kOthers,
                    "*.safetensors, *.npz or *.bin (for files *.npy, give "
                    "FIELD=FOLDER)"))
        files.push_back(std::move(shard));
      continue;
    }
    // A '=' in the name of a folder belongs to the path.
    const size_t equals = each.find('=');
    if (equals == std::string::npos || each.find('/') < equals ||
        !isFolder(each.substr(equals + 1))) {
      files.push_back(each);
      continue;
    }
    const std::string field = each.substr(0, equals + 1);
    for (const std::string &shard :
         shardsOf(each.substr(equals + 1), kNpy, "*.npy"))
      files.push_back(field + shard);
  }
  return files;
}
