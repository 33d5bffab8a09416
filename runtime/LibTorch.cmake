# LibTorch as imported targets: chimera::torch, and chimera::openmp. An executable whose
# property CHIMERA_TORCH_ON_DEMAND is ON links none of its libraries, although it links
# libraries of chimera that use LibTorch. It must define all functions that use it, as
# runtime/libtorch does.
#
# LibTorch is a folder with include/ and lib/: an unpacked `torch` wheel or a
# LibTorch archive. It is searched in this order: CHIMERA_TORCH_DIR (cache or
# environment), then the virtual environment that tools/setup.sh makes in
# build/venv.
#
# This does not use find_package(Torch), which probes for GPUs and fails without
# a CUDA toolkit. Binaries in the build tree find the libraries by their rpath.
# The libraries find their own dependencies by the wheel's rpath.

set(CHIMERA_TORCH_DIR "$ENV{CHIMERA_TORCH_DIR}" CACHE PATH
  "LibTorch's folder, with include/ and lib/ (default: the wheel in build/venv)")

set(torch_dir "${CHIMERA_TORCH_DIR}")
if(NOT torch_dir)
  file(GLOB torch_found
    "${PROJECT_SOURCE_DIR}/build/venv/lib/python3*/site-packages/torch")
  list(SORT torch_found COMPARE NATURAL ORDER DESCENDING)
  list(POP_FRONT torch_found torch_dir)
endif()

if(NOT torch_dir OR NOT EXISTS "${torch_dir}/include/ATen/ATen.h"
    OR NOT EXISTS "${torch_dir}/lib/libtorch_cpu.so")
  if(CHIMERA_TORCH_DIR)
    set(looked "CHIMERA_TORCH_DIR=${CHIMERA_TORCH_DIR} has no LibTorch (include/torch and lib/libtorch_cpu.so)")
  else()
    set(looked "there is none in build/venv, and CHIMERA_TORCH_DIR is not set")
  endif()
  message(FATAL_ERROR
    "expected LibTorch: ${looked}\n"
    "Run tools/setup.sh to install it in build/venv, or name the folder of one "
    "with -DCHIMERA_TORCH_DIR=..., or build without the runtime: "
    "-DCHIMERA_BUILD_RUNTIME=OFF")
endif()
# The file with the version number differs between versions.
foreach(header headeronly/version.h csrc/api/include/torch/version.h)
  if(NOT torch_version AND EXISTS "${torch_dir}/include/torch/${header}")
    file(STRINGS "${torch_dir}/include/torch/${header}" torch_version
      REGEX "define TORCH_VERSION_(MAJOR|MINOR) ")
    string(REGEX REPLACE "[^0-9;]" "" torch_version "${torch_version}")
    string(REPLACE ";" "." torch_version "${torch_version}")
  endif()
endforeach()
message(STATUS "LibTorch ${torch_version}: ${torch_dir}")
set_property(GLOBAL PROPERTY CHIMERA_TORCH_VERSION ${torch_version})

foreach(library c10 torch_cpu)
  add_library(chimera::${library} SHARED IMPORTED GLOBAL)
  set_target_properties(chimera::${library} PROPERTIES
    IMPORTED_LOCATION "${torch_dir}/lib/lib${library}.so")
endforeach()

# The linker must find the libraries' own dependencies, and does not use their
# rpath for that.
file(GLOB torch_needed LIST_DIRECTORIES true "${torch_dir}/../nvidia/*/lib")
list(TRANSFORM torch_needed PREPEND "-Wl,-rpath-link,")

set(torch_linked "$<NOT:$<BOOL:$<TARGET_PROPERTY:CHIMERA_TORCH_ON_DEMAND>>>")
add_library(chimera::torch INTERFACE IMPORTED GLOBAL)
target_include_directories(chimera::torch SYSTEM INTERFACE
  "${torch_dir}/include" "${torch_dir}/include/torch/csrc/api/include")
target_link_libraries(chimera::torch INTERFACE
  "$<${torch_linked}:chimera::torch_cpu;chimera::c10>" Threads::Threads)
target_link_options(chimera::torch INTERFACE
  "-Wl,-rpath-link,${torch_dir}/lib" ${torch_needed})

# LibTorch's own OpenMP library, so that our loops use LibTorch's threads and do
# not start additional ones.
add_library(chimera::openmp INTERFACE IMPORTED GLOBAL)
file(GLOB torch_gomp "${torch_dir}/lib/libgomp*.so*")
if(torch_gomp)
  list(GET torch_gomp 0 torch_gomp)
  target_compile_options(chimera::openmp INTERFACE -fopenmp)
  target_link_libraries(chimera::openmp INTERFACE "$<${torch_linked}:${torch_gomp}>")
else()
  find_package(OpenMP REQUIRED COMPONENTS CXX)
  target_link_libraries(chimera::openmp INTERFACE
    "$<${torch_linked}:OpenMP::OpenMP_CXX>")
endif()
