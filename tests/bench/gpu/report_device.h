// Where the report trains: a GPU, or the test device in its place.
#ifndef STOWAGE_TESTS_BENCH_GPU_REPORT_DEVICE_H_
#define STOWAGE_TESTS_BENCH_GPU_REPORT_DEVICE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/torch/offload/execution_device.h"
#include "solvers/model/transfer_model.h"
#include "solvers/model/units.h"

namespace stowage {

// Not thread-safe. Functions throw what LibTorch throws.
class ReportDevice {
 public:
  virtual ~ReportDevice() = default;

  virtual bool is_gpu() const = 0;

  // Kernels repeat bit for bit from now on, and those that cannot throw, or, if `may_warn`, warn.
  virtual void BeDeterministic(bool may_warn) = 0;

  // With a link of this speed and so much host memory, which a GPU has locked at once. What the link says of its speed plans
  // go by; copies are as fast as they are. Errors: those of CudaDevice and TestDevice.
  virtual absl::StatusOr<std::unique_ptr<ExecutionDevice>> Make(const TransferModel& link) = 0;

  // Of the host for the device since this object was made: calls that wait for what the device was given.
  virtual int64_t waits() const = 0;

  // What tensors of this process may take from now on, those that there are among them: on a GPU what is free, on the test
  // device so much.
  virtual Bytes LimitMemory(Bytes of_test_device) = 0;
  // Gives what the allocator keeps back to the device.
  virtual void EmptyCache() = 0;

  // What host and GPU do in `run`, operation by operation and kernel by kernel, in a file that Perfetto shows. Waits for
  // the device. No file on the test device. Errors: those of `run`.
  virtual absl::Status TraceKernels(const std::string& path,
                                    const std::function<absl::Status()>& run) = 0;
};

// "test", "cuda" or "cuda:N". INVALID_ARGUMENT for anything else, and where this build or machine has no such device.
absl::StatusOr<std::unique_ptr<ReportDevice>> ReportDeviceNamed(const std::string& name);

}  // namespace stowage

#endif  // STOWAGE_TESTS_BENCH_GPU_REPORT_DEVICE_H_
