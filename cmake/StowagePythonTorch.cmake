# stowage_libtorch_of_python: the LibTorch of the PyTorch that Python_EXECUTABLE imports, by its headers and libraries alone. find_package(Torch)
# asks for a CUDA toolkit where that PyTorch has CUDA, which its users need not have. No target where there is no PyTorch with headers.
include_guard(GLOBAL)
execute_process(
  COMMAND ${Python_EXECUTABLE} -c "import os, torch; print(os.path.dirname(torch.__file__), torch.__version__, torch.compiled_with_cxx11_abi(), sep=';')"
  OUTPUT_VARIABLE found OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT found)
  message(STATUS "No PyTorch in ${Python_EXECUTABLE}: the Python package will plan alone")
  return()
endif()
list(GET found 0 folder)
list(GET found 1 STOWAGE_PYTHON_TORCH_VERSION)
list(GET found 2 cxx11_abi)
if(NOT EXISTS ${folder}/include/c10 OR NOT cxx11_abi)
  message(WARNING "PyTorch ${STOWAGE_PYTHON_TORCH_VERSION} in ${folder} has no headers, or is of the C++ ABI before C++11: "
                  "the Python package will plan alone")
  return()
endif()
message(STATUS "The Python package is for PyTorch ${STOWAGE_PYTHON_TORCH_VERSION} in ${folder}")

add_library(stowage_libtorch_of_python INTERFACE IMPORTED GLOBAL)
target_include_directories(stowage_libtorch_of_python SYSTEM INTERFACE ${folder}/include ${folder}/include/torch/csrc/api/include)
# Before it, the system's libstdc++, as for stowage_libtorch.
target_link_libraries(stowage_libtorch_of_python INTERFACE stdc++ ${folder}/lib/libc10.so ${folder}/lib/libtorch_cpu.so)
if(STOWAGE_PYTHON_TORCH_VERSION VERSION_GREATER_EQUAL 2.12)
  target_compile_features(stowage_libtorch_of_python INTERFACE cxx_std_20)  # its headers are of C++20
endif()
