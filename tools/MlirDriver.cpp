//===- MlirDriver.cpp - What all MLIR tools do ----------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/MlirDriver.h"

#include "runtime/program/Output.h"
#include "tools/Version.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>

using namespace chimera;

namespace {

/// The files that the arguments of a driver name. An option of a pass may also
/// write a file that another option reads.
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

} // namespace

void chimera::hideLibraryOptions(llvm::cl::OptionCategory *ownCategory,
                                 llvm::StringRef passName) {
  llvm::StringMap<llvm::cl::Option *> &all = llvm::cl::getRegisteredOptions();
  const llvm::cl::Option *list = all.lookup(passName);
  for (auto &entry : all) {
    llvm::cl::Option &option = *entry.second;
    bool isGeneric = option.Categories.front()->getName() == "Generic Options";
    if (&option == list || isGeneric ||
        llvm::is_contained(option.Categories, ownCategory) ||
        option.getOptionHiddenFlag() != llvm::cl::NotHidden)
      continue;
    option.setHiddenFlag(llvm::cl::Hidden);
  }
}

void chimera::setVersion(llvm::StringRef tool) {
  llvm::cl::SetVersionPrinter([tool = tool.str()](llvm::raw_ostream &os) {
    os << tool << " " << kVersion << "\n";
  });
}

std::string chimera::setSingleInput(llvm::ArrayRef<std::string> files,
                                    std::string &input, llvm::StringRef content,
                                    llvm::StringRef command) {
  if (files.size() > 1)
    return "expected one file with " + content.str() + ", got " +
           std::to_string(files.size()) + ": put them into one file (" +
           command.str() + ")";
  input = files.empty() ? "-" : files.front();
  return {};
}

llvm::SmallVector<char *> chimera::withoutOpsInDiagnostics(int argc,
                                                           char **argv) {
  static char off[] = "--mlir-print-op-on-diagnostic=false";
  llvm::SmallVector<char *> arguments(argv, argv + argc);
  for (llvm::StringRef argument : arguments)
    if (argument.ltrim('-').starts_with("mlir-print-op-on-diagnostic"))
      return arguments;
  arguments.insert(arguments.begin() + (argc > 0), off);
  return arguments;
}

llvm::SmallVector<char *>
chimera::withReadableBytecode(llvm::SmallVector<char *> arguments) {
  static char version[] = "--emit-bytecode-version=4";
  bool isAskedFor = false;
  for (llvm::StringRef argument : arguments) {
    llvm::StringRef name = argument.ltrim('-');
    if (name.starts_with("emit-bytecode-version"))
      return arguments;
    isAskedFor |= name == "emit-bytecode" || name == "emit-bytecode=true";
  }
  if (isAskedFor)
    arguments.insert(arguments.begin() + 1, version);
  return arguments;
}

bool chimera::reportBadOutputs(llvm::ArrayRef<char *> arguments) {
  std::string error = DriverFiles(arguments).error();
  if (!error.empty())
    llvm::errs() << llvm::sys::path::filename(arguments.front()) << ": "
                 << error << "\n";
  return !error.empty();
}
