# stowage_libtorch: what find_package(Torch) has found, as one imported target, so that LibTorch's headers count as system headers and its
# flags reach only its users. Of the build and of the installed package alike.
include_guard(GLOBAL)
separate_arguments(STOWAGE_TORCH_FLAGS NATIVE_COMMAND "${TORCH_CXX_FLAGS}")
add_library(stowage_libtorch INTERFACE IMPORTED GLOBAL)
target_include_directories(stowage_libtorch SYSTEM INTERFACE ${TORCH_INCLUDE_DIRS})
# -pthread, because gRPC brings it: a precompiled header is good only for users with its very flags.
target_compile_options(stowage_libtorch INTERFACE ${STOWAGE_TORCH_FLAGS} -pthread)
# Before it, the system's libstdc++: PyTorch's wheels export a std::filesystem of their own, with which programs crash that find it first.
target_link_libraries(stowage_libtorch INTERFACE stdc++ ${TORCH_LIBRARIES})
if(TARGET torch_cuda)
  target_compile_definitions(stowage_libtorch INTERFACE STOWAGE_TORCH_CUDA)
endif()
