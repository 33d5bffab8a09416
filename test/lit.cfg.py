"""lit's configuration for chimera's .mlir tests. Paths come from lit.site.cfg.py."""

import os
import shutil
import sys

import lit.formats

config.name = "chimera"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.chimera_build, "test")
config.environment["PATH"] = os.pathsep.join(
    [os.path.join(config.chimera_build, "bin"), config.llvm_tools,
     os.environ["PATH"]])
config.environment["FILECHECK_OPTS"] = "-enable-var-scope --dump-input=fail"
config.substitutions.append(("%examples", config.chimera_examples))
config.substitutions.append(("%python", sys.executable))
config.substitutions.append(
    ("%plugin", os.path.join(config.chimera_build, "lib", "ChimeraPlugin.so")))
# Runs a command with at most a gigabyte of memory.
config.substitutions.append(
    ("%limited", "bash -c 'ulimit -d 1000000; exec \"$0\" \"$@\"'"
     if "limits" in config.chimera_features else ""))
for feature in config.chimera_features:
    config.available_features.add(feature)
# setup.sh --full installs it here.
xdsl = os.path.join(config.test_source_root, "..", "build", "venv", "bin",
                    "xdsl-opt")
if os.path.exists(xdsl):
    config.available_features.add("xdsl")
config.substitutions.append(("%xdsl-opt", xdsl))
config.substitutions.append(
    ("%tools", os.path.join(config.test_source_root, "..", "tools")))
if shutil.which("git") and shutil.which("cmake"):
    config.available_features.add("git")
# chimera-show --pdf runs it. setup.sh --full installs it.
if shutil.which("rsvg-convert"):
    config.available_features.add("rsvg-convert")
