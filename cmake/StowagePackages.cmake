# Every outside library, found once. Rooms name the targets they use; the layers test watches who does.
find_package(absl CONFIG REQUIRED)
find_package(OpenSSL REQUIRED COMPONENTS Crypto SSL)
find_package(SQLite3 REQUIRED)
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(HIREDIS REQUIRED IMPORTED_TARGET hiredis)

if(STOWAGE_RPC)
  find_package(Protobuf REQUIRED)
  find_package(gRPC CONFIG REQUIRED)
  find_package(prometheus-cpp CONFIG REQUIRED)
endif()

if(STOWAGE_TORCH)
  find_package(Torch REQUIRED)
  # An imported target, so that LibTorch's headers count as system headers and its flags reach only its users.
  separate_arguments(STOWAGE_TORCH_FLAGS NATIVE_COMMAND "${TORCH_CXX_FLAGS}")
  add_library(stowage_libtorch INTERFACE)
  target_include_directories(stowage_libtorch SYSTEM INTERFACE ${TORCH_INCLUDE_DIRS})
  # -pthread, because gRPC brings it: a precompiled header is good only for users with its very flags.
  target_compile_options(stowage_libtorch INTERFACE ${STOWAGE_TORCH_FLAGS} -pthread)
  target_link_libraries(stowage_libtorch INTERFACE ${TORCH_LIBRARIES})
  if(TARGET torch_cuda)
    target_compile_definitions(stowage_libtorch INTERFACE STOWAGE_TORCH_CUDA)
  endif()
endif()

if(STOWAGE_TESTS)
  find_package(GTest CONFIG REQUIRED)
  find_package(benchmark CONFIG QUIET)  # timed figures only
endif()
