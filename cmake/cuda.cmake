# CUDA, with GODWIT_CUDA=ON: finds nvcc and says how device code is compiled.
# Compiling needs nvcc and the toolkit's headers; nothing here needs a GPU.
if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
  find_program(GODWIT_NVCC nvcc HINTS ENV CUDA_HOME ENV CUDA_PATH PATHS /usr/local/cuda
    PATH_SUFFIXES bin)
  if(NOT GODWIT_NVCC)
    message(FATAL_ERROR "GODWIT_CUDA is ON, but no nvcc was found: expected it in PATH, "
      "$CUDA_HOME/bin or /usr/local/cuda/bin. Install the CUDA toolkit (13.0 or later), name its "
      "nvcc by -DCMAKE_CUDA_COMPILER=<path>, or configure with -DGODWIT_CUDA=OFF.")
  endif()
  set(CMAKE_CUDA_COMPILER ${GODWIT_NVCC})
endif()
# The architecture is given below: CMake 3.25 has no name for all that sm_90a is.
set(CMAKE_CUDA_ARCHITECTURES OFF)
enable_language(CUDA)
find_package(CUDAToolkit 13.0 REQUIRED)

# Each adds its own machine code and compile time. The persistent executor is tuned for 90a.
set(GODWIT_CUDA_ARCHITECTURES "90a" CACHE STRING
  "Compute capabilities to compile for, as in 80;86;89;90a;100;120")
set(GODWIT_GENCODE "")
foreach(arch ${GODWIT_CUDA_ARCHITECTURES})
  list(APPEND GODWIT_GENCODE "SHELL:-gencode=arch=compute_${arch},code=sm_${arch}")
endforeach()
# Kernels are laid out for 90a's registers: there a spilled one is a mistake. ptxas spills a word
# or two of some on other cards (100, 120), which is no reason not to build.
set(GODWIT_SPILL_CHECK "")
if(GODWIT_CUDA_ARCHITECTURES STREQUAL "90a")
  set(GODWIT_SPILL_CHECK "SHELL:-Xptxas=--warn-on-spills")
endif()

# CMake 3.25 does not know that nvcc 13 has C++20 and drops the standard silently.
foreach(kind STANDARD EXTENSION)
  if(NOT CMAKE_CUDA20_${kind}_COMPILE_OPTION)
    set(CMAKE_CUDA20_${kind}_COMPILE_OPTION -std=c++20)
  endif()
endforeach()

# godwit_cuda_library(<name> <file.cu>...): an object library of device code.
# The directory's options are the host compiler's: nvcc refuses some and warns
# of others in code that it generates itself (-Wpedantic), so they are replaced.
function(godwit_cuda_library name)
  add_library(${name} OBJECT ${ARGN})
  set_target_properties(${name} PROPERTIES
    CUDA_STANDARD 20 CUDA_STANDARD_REQUIRED ON CUDA_EXTENSIONS OFF
    COMPILE_OPTIONS "")
  target_compile_options(${name} PRIVATE
    ${GODWIT_GENCODE}
    "SHELL:-Xcompiler=-ffp-contract=off,-Wall,-Wextra,-Wshadow"
    ${GODWIT_SPILL_CHECK}
    $<$<BOOL:${GODWIT_WERROR}>:-Werror=all-warnings>)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(${name} PRIVATE tl::expected fmt::fmt)
endfunction()

godwit_cuda_library(godwit_device_decode ${PROJECT_SOURCE_DIR}/src/quant/device_decode.cu)
