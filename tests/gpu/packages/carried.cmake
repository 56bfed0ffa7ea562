# Before PyTorch's headers, among which are those of another protobuf.
include_directories(BEFORE SYSTEM ${STOWAGE_CARRIED}/include)
