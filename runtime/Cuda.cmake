# CUDA and NCCL for the module that runs programs on GPUs: chimera::cuda_headers,
# and chimera::cuda, which also links the libraries.
#
# Taken from a CUDA toolkit where CMake finds one, else from the wheels that the
# `torch` wheel brings (tools/setup.sh --full or --cuda). No compiler of CUDA is
# needed: the kernels are compiled for the GPU at hand when a run begins.
#
# Sets CHIMERA_CUDA_MISSING to the reason where there are no headers, and
# CHIMERA_CUDA_LIBRARIES_MISSING where there are no libraries to link.

find_package(CUDAToolkit QUIET)
get_filename_component(cuda_wheels "${torch_dir}/../nvidia" ABSOLUTE)
file(GLOB cuda_wheel "${cuda_wheels}/cu1*")
# The wheels first: LibTorch is linked with those.
find_path(CHIMERA_CUDA_INCLUDE cuda_runtime_api.h NO_DEFAULT_PATH
  HINTS "${cuda_wheel}/include" ${CUDAToolkit_INCLUDE_DIRS})
find_path(CHIMERA_NVRTC_INCLUDE nvrtc.h NO_DEFAULT_PATH
  HINTS "${cuda_wheel}/include" ${CUDAToolkit_INCLUDE_DIRS})
find_path(CHIMERA_NCCL_INCLUDE nccl.h
  HINTS "${cuda_wheels}/nccl/include" ${CUDAToolkit_INCLUDE_DIRS})
set(CHIMERA_CUDA_MISSING "")
foreach(header CUDA_INCLUDE:cuda_runtime_api.h NVRTC_INCLUDE:nvrtc.h
    NCCL_INCLUDE:nccl.h)
  string(REPLACE ":" ";" header "${header}")
  list(GET header 0 variable)
  list(GET header 1 file)
  if(NOT CHIMERA_${variable} AND NOT CHIMERA_CUDA_MISSING)
    set(CHIMERA_CUDA_MISSING "${file} was not found")
  endif()
endforeach()
if(CHIMERA_CUDA_MISSING)
  return()
endif()

add_library(chimera::cuda_headers INTERFACE IMPORTED GLOBAL)
target_include_directories(chimera::cuda_headers SYSTEM INTERFACE
  ${CHIMERA_CUDA_INCLUDE} ${CHIMERA_NVRTC_INCLUDE} ${CHIMERA_NCCL_INCLUDE})

# Wheels have no names for linkers (libcudart.so), only those of versions.
file(GLOB cuda_runtime "${cuda_wheel}/lib/libcudart.so.*")
file(GLOB cuda_compiler "${cuda_wheel}/lib/libnvrtc.so.*")
file(GLOB cuda_nccl "${cuda_wheels}/nccl/lib/libnccl.so.*")
if(NOT cuda_runtime)
  find_library(cuda_runtime cudart HINTS ${CUDAToolkit_LIBRARY_DIR})
endif()
if(NOT cuda_compiler)
  find_library(cuda_compiler nvrtc HINTS ${CUDAToolkit_LIBRARY_DIR})
endif()
if(NOT cuda_nccl)
  find_library(cuda_nccl nccl HINTS ${CUDAToolkit_LIBRARY_DIR})
endif()
# Alone it compiles for GPUs that are not there.
if(cuda_compiler)
  list(GET cuda_compiler 0 cuda_compiler)
  add_library(chimera::nvrtc INTERFACE IMPORTED GLOBAL)
  target_link_libraries(chimera::nvrtc INTERFACE chimera::cuda_headers
    ${cuda_compiler})
endif()
set(CHIMERA_CUDA_LIBRARIES_MISSING "")
foreach(library cuda_runtime:libcudart cuda_compiler:libnvrtc
    cuda_nccl:libnccl)
  string(REPLACE ":" ";" library "${library}")
  list(GET library 0 variable)
  list(GET library 1 file)
  if(NOT ${variable} AND NOT CHIMERA_CUDA_LIBRARIES_MISSING)
    set(CHIMERA_CUDA_LIBRARIES_MISSING "${file} was not found")
  endif()
endforeach()
if(NOT CHIMERA_CUDA_LIBRARIES_MISSING AND
    NOT EXISTS "${torch_dir}/lib/libtorch_cuda.so")
  set(CHIMERA_CUDA_LIBRARIES_MISSING "this LibTorch has no libtorch_cuda.so")
endif()
if(NOT CHIMERA_CUDA_LIBRARIES_MISSING)
  list(GET cuda_runtime 0 cuda_runtime)
  list(GET cuda_nccl 0 cuda_nccl)
  add_library(chimera::cuda INTERFACE IMPORTED GLOBAL)
  target_link_libraries(chimera::cuda INTERFACE chimera::cuda_headers
    chimera::nvrtc ${cuda_runtime} ${cuda_nccl})
endif()
