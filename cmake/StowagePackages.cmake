# Every outside library, found once. Folders name the targets they use; the layers test watches who does.
find_package(absl CONFIG REQUIRED)
find_package(OpenSSL REQUIRED COMPONENTS Crypto)
find_package(Threads REQUIRED)

if(STOWAGE_SERVER)
  find_package(OpenSSL REQUIRED COMPONENTS Crypto SSL)
  find_package(SQLite3 REQUIRED)
  find_path(HIREDIS_INCLUDE_DIR hiredis/hiredis.h REQUIRED)
  find_library(HIREDIS_LIBRARY hiredis REQUIRED)
  add_library(hiredis::hiredis UNKNOWN IMPORTED)
  set_target_properties(hiredis::hiredis PROPERTIES IMPORTED_LOCATION ${HIREDIS_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${HIREDIS_INCLUDE_DIR}
    INTERFACE_COMPILE_DEFINITIONS _FILE_OFFSET_BITS=64)
endif()

if(STOWAGE_RPC)
  find_package(Protobuf REQUIRED)
  find_package(gRPC CONFIG REQUIRED)
  find_package(prometheus-cpp CONFIG REQUIRED)
endif()

if(STOWAGE_TORCH)
  # PyTorch's CMake files ask for nvcc, unless they find this target: no file here is compiled for a GPU, and CUDA's runtime is its headers
  # and its library. tests/run_torch finds these where there is no nvcc.
  set(STOWAGE_CUDA_RUNTIME "" CACHE FILEPATH "CUDA's runtime library, of a LibTorch with CUDA that is built against without nvcc; empty: with nvcc")
  set(STOWAGE_CUDA_HEADERS "" CACHE PATH "Folders of that runtime's headers")
  if(STOWAGE_CUDA_RUNTIME)
    add_library(torch::cudart SHARED IMPORTED)
    set_target_properties(torch::cudart PROPERTIES IMPORTED_LOCATION ${STOWAGE_CUDA_RUNTIME}
      INTERFACE_INCLUDE_DIRECTORIES "${STOWAGE_CUDA_HEADERS}")
  endif()
  find_package(Torch REQUIRED)
  include(StowageLibtorch)
endif()

if(STOWAGE_PYTHON)
  # tests/run makes this environment of the Python whose torch is of the LibTorch that is built with.
  if(NOT Python_EXECUTABLE AND EXISTS ${PROJECT_SOURCE_DIR}/build/python_torch/bin/python3)
    set(Python_EXECUTABLE ${PROJECT_SOURCE_DIR}/build/python_torch/bin/python3)
  endif()
  find_package(Python 3.8 REQUIRED COMPONENTS Interpreter Development.Module)
  if(NOT pybind11_DIR)
    execute_process(COMMAND ${Python_EXECUTABLE} -m pybind11 --cmakedir
      OUTPUT_VARIABLE pybind11_DIR OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  endif()
  find_package(pybind11 2.10 CONFIG REQUIRED)
  include(StowagePythonTorch)
endif()

if(STOWAGE_TESTS)
  find_package(GTest CONFIG REQUIRED)
  find_package(benchmark CONFIG QUIET)  # timed figures only
endif()
