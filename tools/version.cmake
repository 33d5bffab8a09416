# Writes the source file OUTPUT with the text of `--version` (tools/Version.h): VERSION and
# the commit of SOURCE, a folder. A build runs this script each time, but OUTPUT changes
# only with its text, so a new commit compiles one small file and links the tools.
set(commit "")
find_program(GIT git)
if(GIT)
  # In another project's checkout, the folder of the sources is not the top one.
  execute_process(COMMAND ${GIT} rev-parse --show-cdup
    WORKING_DIRECTORY ${SOURCE} OUTPUT_VARIABLE top RESULT_VARIABLE status
    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(status EQUAL 0 AND top STREQUAL "")
    execute_process(
      COMMAND ${GIT} describe --always --dirty --abbrev=8 --exclude=*
      WORKING_DIRECTORY ${SOURCE} OUTPUT_VARIABLE commit
      OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  endif()
endif()
if(commit)
  set(commit " (${commit})")
endif()
set(text "#include \"tools/Version.h\"

const char *const chimera::kVersion = \"${VERSION}${commit}\";
")
set(old "")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} old)
endif()
if(NOT text STREQUAL old)
  file(WRITE ${OUTPUT} "${text}")
endif()
