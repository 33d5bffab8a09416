# `cmake --install`: the tools, and the runtime as a CMake package, `chimera`,
# with the targets chimera::program, chimera::proof, chimera::model,
# chimera::tensors, chimera::optimizer, chimera::weights,
# chimera::weight_files, chimera::stage_weights, chimera::graph, chimera::checkpoint,
# chimera::saved_state, chimera::system, chimera::device, chimera::channel,
# chimera::control (and with _mpi where MPI was found), chimera::interpreter,
# chimera::watch, chimera::train, chimera::train_job, chimera::calibrate and
# chimera::calibrate_ranks. Headers are
# included as here: "runtime/train/Run.h".
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(libraries options program proof system random device data model tensors optimizer
  weights weight_files stage_weights graph checkpoint saved_state channel
  channel_mpi control control_tcp control_store control_join interpreter watch train train_job
  calibrate calibrate_ranks)
set(targets)
foreach(library IN LISTS libraries)
  if(TARGET chimera_${library})
    set_target_properties(chimera_${library} PROPERTIES EXPORT_NAME ${library})
    list(APPEND targets chimera_${library})
  endif()
endforeach()
install(TARGETS ${targets} EXPORT chimera
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
foreach(tool run compile show plan opt translate lsp-server reduce)
  if(TARGET chimera-${tool})
    install(TARGETS chimera-${tool} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  endif()
endforeach()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/runtime
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/chimera
  FILES_MATCHING PATTERN "*.h"
  # Headers that include LibTorch's or MPI's headers are for their own folders.
  PATTERN mpi/AllReduce.h EXCLUDE PATTERN mpi/Calls.h EXCLUDE
  PATTERN mpi/TransportAllReduce.h EXCLUDE
  # And these of CUDA's and NCCL's are for the module.
  PATTERN cuda EXCLUDE PATTERN nccl EXCLUDE)

get_target_property(torch_library chimera::torch_cpu IMPORTED_LOCATION)
cmake_path(GET torch_library PARENT_PATH torch_lib)
cmake_path(GET torch_lib PARENT_PATH torch_dir)
foreach(module torch cuda mpi)
  if(TARGET chimera_${module})
    # CMake leaves out folders in the build tree, such as build/venv.
    set_property(TARGET chimera_${module} APPEND PROPERTY INSTALL_RPATH ${torch_lib})
    install(TARGETS chimera_${module}
      LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/chimera)
  endif()
endforeach()
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/chimera)
install(EXPORT chimera NAMESPACE chimera:: DESTINATION ${package}
  FILE chimera-targets.cmake)
set(has_mpi NO)
if(TARGET chimera_channel_mpi)
  set(has_mpi YES)
endif()
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/chimera-config.cmake.in
  ${PROJECT_BINARY_DIR}/chimera-config.cmake INSTALL_DESTINATION ${package})
write_basic_package_version_file(
  ${PROJECT_BINARY_DIR}/chimera-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/chimera-config.cmake
  ${PROJECT_BINARY_DIR}/chimera-config-version.cmake
  ${PROJECT_SOURCE_DIR}/runtime/LibTorch.cmake
  DESTINATION ${package})
