# Strips the programs and modules in the folder FOLDER with STRIP. Makes their paths to
# libraries relative with PATCHELF: a library of a Python package is beside the package
# chimera. All other paths are removed, since they are those of the machine that builds.
file(GLOB files ${FOLDER}/chimera-* ${FOLDER}/*.so)
list(FILTER files EXCLUDE REGEX "[.]py$")
foreach(file IN LISTS files)
  execute_process(COMMAND ${STRIP} ${file} COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND ${PATCHELF} --print-rpath ${file}
    OUTPUT_VARIABLE paths OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  string(REPLACE ":" ";" paths "${paths}")
  list(FILTER paths INCLUDE REGEX "/(site|dist)-packages/")
  list(TRANSFORM paths REPLACE ".*/(site|dist)-packages/" "\$ORIGIN/../../")
  list(JOIN paths ":" paths)
  if(paths STREQUAL "")
    execute_process(COMMAND ${PATCHELF} --remove-rpath ${file} COMMAND_ERROR_IS_FATAL ANY)
  else()
    execute_process(COMMAND ${PATCHELF} --set-rpath "${paths}" ${file}
      COMMAND_ERROR_IS_FATAL ANY)
  endif()
endforeach()
