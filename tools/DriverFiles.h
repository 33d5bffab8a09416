//===- DriverFiles.h - Input and output files of MLIR drivers ---*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// MLIR's drivers (MlirOptMain and others) truncate the file of -o before they
// read the input. An option of a pass may also write a file that another option
// reads. Therefore the tools check the file names in the arguments before they
// call a driver.
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
    // A driver without an input file reads standard input.
    inputs.push_back("/dev/stdin");
  }

  /// An error message if an output file is also an input file, or if two
  /// options name it. Else empty.
  std::string error() const {
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
        return *output + ": expected a file that no other option names";
    }
    return {};
  }

private:
  static bool isOutputOption(llvm::StringRef argument) {
    return argument == "-o" || argument == "--o";
  }

  /// Adds to `files` all possible file names in the value of the pass option
  /// `key`. The value is FILE, "FILE" or a list {FILE,FILE}. A file name may
  /// contain a comma, a brace, a space or a quote, so a name may end before
  /// each of these characters or only at the end. All of these names are added.
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

/// Prints an error and returns true if an output file of the driver is also an
/// input file, or if two options name it.
inline bool reportBadOutputs(llvm::ArrayRef<char *> arguments) {
  std::string error = DriverFiles(arguments).error();
  if (!error.empty())
    llvm::errs() << llvm::sys::path::filename(arguments.front()) << ": "
                 << error << "\n";
  return !error.empty();
}

} // namespace chimera

#endif // CHIMERA_TOOLS_DRIVERFILES_H
