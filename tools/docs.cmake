# Writes the reference of ops, attributes, types and passes from the .td files:
# OUTPUT/dialect/Chimera.md and OUTPUT/passes/Passes.md. The target `docs` writes
# to the source folder. A test writes to the build folder and compares.
#
#   cmake -DTABLEGEN=mlir-tblgen -DINCLUDES=-IDIR,-IDIR -DSOURCE=DIR
#         -DOUTPUT=DIR -P docs.cmake

string(REPLACE "," ";" INCLUDES "${INCLUDES}")

function(write_reference file title td)
  execute_process(COMMAND ${TABLEGEN} ${ARGN} ${INCLUDES} ${SOURCE}/${td}
    OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
  # Only site generators understand this mark.
  string(REPLACE "[TOC]\n\n" "" text "${text}")
  # git calls empty lines at the end of a file a whitespace error.
  string(REGEX REPLACE "\n+$" "\n" text "${text}")
  # A heading needs an empty line before it, and not every description ends with
  # one.
  string(REGEX REPLACE "([^\n])\n(##+ )" "\\1\n\n\\2" text "${text}")
  string(REPLACE "don't manually edit -->\n"
    "change ${td} and build the target docs -->\n${title}" text "${text}")
  file(WRITE ${OUTPUT}/${file} "${text}")
endfunction()

write_reference(dialect/Chimera.md "" dialect/Ops.td
  -gen-dialect-doc -dialect=chimera)
write_reference(passes/Passes.md "# Passes, by name

One more, `chimera-verify-program`, proves the program that allocated IR is; it
and the pipelines `chimera-to-<phase>` are in [compiler](../compiler/README.md).
" passes/Passes.td -gen-pass-doc)
