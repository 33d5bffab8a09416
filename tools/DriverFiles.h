//===- DriverFiles.h - What a driver of MLIR reads and writes ---*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// MLIR's drivers empty the file of -o before they have read anything, and an
// option of a pass may name what they read too. So this looks at the arguments
// before a driver does.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TOOLS_DRIVERFILES_H
#define CHIMERA_TOOLS_DRIVERFILES_H

#include "runtime/program/Output.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <string>

namespace chimera {

/// The files that the arguments of a driver name.
class DriverFiles {
public:
  explicit DriverFiles(llvm::ArrayRef<char *> arguments) {
    llvm::StringRef before;
    for (llvm::StringRef argument : arguments.drop_front()) {
      if (isOutputOption(before))
        written.push_back(argument.str());
      else if (argument.starts_with("-o=") || argument.starts_with("--o="))
        written.push_back(argument.split('=').second.str());
      else if (!argument.starts_with("-"))
        inputs.push_back(argument.str());
      addValues(argument, "measured=", read);
      addValues(argument, "profiles=", read);
      addValues(argument, "output=", written);
      before = argument;
    }
    // What a driver reads where no argument is a file.
    inputs.push_back("/dev/stdin");
  }

  /// Empty, or what is wrong with an output: that it is the input, or what
  /// another option names.
  std::string fault() const {
    for (auto output = written.begin(); output != written.end(); ++output) {
      if (*output == "-")
        continue;
      auto isSame = [&](const std::string &other) {
        return program::areSameFile(*output, other);
      };
      if (llvm::any_of(inputs, isSame))
        return *output + ": expected another file than the input";
      if (llvm::any_of(read, isSame) ||
          std::any_of(written.begin(), output, isSame))
        return *output + ": expected another file than that of another option";
    }
    return {};
  }

private:
  static bool isOutputOption(llvm::StringRef argument) {
    return argument == "-o" || argument == "--o";
  }

  /// Adds what the option `key` of a pass may have as its value: FILE, "FILE"
  /// or a list {FILE,FILE}. Names may contain what ends a value, so each of its
  /// beginnings that stands before such a character is one.
  static void addValues(llvm::StringRef argument, llvm::StringRef key,
                        llvm::SmallVector<std::string> &files) {
    for (size_t at = argument.find(key); at != llvm::StringRef::npos;
         at = argument.find(key, at + 1)) {
      llvm::StringRef values = argument.substr(at + key.size());
      for (llvm::StringRef rest = values; !rest.empty();
           rest = rest.split(',').second) {
        llvm::StringRef name = rest.ltrim("{\"'");
        for (size_t end = name.find_first_of(",} )\"'");
             end != llvm::StringRef::npos;
             end = name.find_first_of(",} )\"'", end + 1))
          files.push_back(name.take_front(end).str());
        files.push_back(name.str());
      }
    }
  }

  llvm::SmallVector<std::string> inputs, read, written;
};

/// Refuses, with a message, an output that is read, or written, too.
inline bool refusesOutputs(llvm::ArrayRef<char *> arguments) {
  std::string fault = DriverFiles(arguments).fault();
  if (!fault.empty())
    llvm::errs() << llvm::sys::path::filename(arguments.front()) << ": "
                 << fault << "\n";
  return !fault.empty();
}

} // namespace chimera

#endif // CHIMERA_TOOLS_DRIVERFILES_H
