# Every outside library, found once. Rooms name the targets they use; the layers test watches who does.
find_package(absl CONFIG REQUIRED)
find_package(OpenSSL REQUIRED COMPONENTS Crypto)
find_package(Threads REQUIRED)

if(STOWAGE_SERVER)
  find_package(SQLite3 REQUIRED)
  find_package(PkgConfig REQUIRED)
  pkg_check_modules(HIREDIS REQUIRED IMPORTED_TARGET hiredis)
endif()

if(STOWAGE_RPC)
  find_package(OpenSSL REQUIRED COMPONENTS Crypto SSL)
  find_package(Protobuf REQUIRED)
  find_package(gRPC CONFIG REQUIRED)
  find_package(prometheus-cpp CONFIG REQUIRED)
endif()

if(STOWAGE_TORCH)
  find_package(Torch REQUIRED)
  include(StowageLibtorch)
endif()

if(STOWAGE_TESTS)
  find_package(GTest CONFIG REQUIRED)
  find_package(benchmark CONFIG QUIET)  # timed figures only
endif()
