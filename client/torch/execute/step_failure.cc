#include "client/torch/execute/step_failure.h"

#include <c10/util/Exception.h>

#include <cstdint>
#include <new>
#include <string>
#include <vector>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/torch/base/torch_status.h"
#include "client/torch/execute/movable_parts.h"
#include "client/torch/offload/host_pool.h"

namespace stowage {
namespace {

constexpr char kPayload[] = "stowage/step-failure";

// What the error's words say counts where the allocator does not tell.
std::optional<MemoryRefusal> RefusalBehind(const std::string& words, MemoryMeter* meter) {
  RefusalLog* const told = meter->refusals();
  const std::optional<MemoryRefusal> last = told == nullptr ? std::nullopt : told->Take();
  return last ? last : ReadMemoryRefusal(words);
}

void Note(const MemoryRefusal& said, ExecutionDevice* device, StepFailure* failure) {
  const MemoryRefusal refusal = said.ExactBy(*device->meter());
  failure->fault = StepFault::kDeviceMemory;
  failure->allocated = refusal.allocated;
  failure->reserved = refusal.reserved;
  failure->asked = refusal.asked;
  failure->limit = refusal.limit;
  failure->rounding = refusal.rounding;
}

void NoteWords(const std::string& words, ExecutionDevice* device, StepFailure* failure) {
  const std::optional<MemoryRefusal> refusal = RefusalBehind(words, device->meter());
  if (refusal) return Note(*refusal, device, failure);
  failure->fault = StepFault::kDeviceMemory;
  failure->asked = AskedIn(words);
  failure->limit = device->Hardware().memory;
}

StepFailure FailureNow(size_t instruction, ExecutionDevice* device) {
  StepFailure failure;
  failure.instruction = instruction;
  failure.allocated = failure.live_after = device->meter()->current();
  failure.reserved = device->meter()->reserved();
  return failure;
}

}  // namespace

StepFailure RefusedStepFailure(size_t instruction, const MemoryRefusal& refusal,
                               ExecutionDevice* device) {
  StepFailure failure = FailureNow(instruction, device);
  Note(refusal, device, &failure);
  return failure;
}

StepFailure CurrentStepFailure(size_t instruction, ExecutionDevice* device) {
  StepFailure failure = FailureNow(instruction, device);
  try {
    throw;
  } catch (const c10::OutOfMemoryError& error) {
    NoteWords(error.what_without_backtrace(), device, &failure);
  } catch (const HostMemoryError&) {
    failure.fault = StepFault::kHostMemory;
  } catch (const std::bad_alloc&) {
    failure.fault = StepFault::kHostMemory;
  } catch (const ImmovableError&) {
    failure.fault = StepFault::kImmovable;
  } catch (...) {
  }
  return failure;
}

void SetStepFailure(const StepFailure& failure, absl::Status* status) {
  status->SetPayload(kPayload, absl::Cord(absl::StrCat(
                                   static_cast<int>(failure.fault), " ", failure.instruction, " ",
                                   failure.allocated.value(), " ", failure.reserved.value(), " ",
                                   failure.asked.value(), " ", failure.limit.value(), " ",
                                   failure.live_after.value(), " ", failure.rounding.value())));
}

std::optional<StepFailure> GetStepFailure(const absl::Status& status) {
  const auto payload = status.GetPayload(kPayload);
  if (!payload) return std::nullopt;
  std::vector<int64_t> numbers;
  const std::vector<std::string> words = absl::StrSplit(std::string(*payload), ' ');
  for (const std::string& word : words) {
    int64_t number = 0;
    if (!absl::SimpleAtoi(word, &number)) return std::nullopt;
    numbers.push_back(number);
  }
  if (numbers.size() != 8) return std::nullopt;
  return StepFailure{static_cast<StepFault>(numbers[0]),
                     static_cast<size_t>(numbers[1]),
                     Bytes(numbers[2]),
                     Bytes(numbers[3]),
                     Bytes(numbers[4]),
                     Bytes(numbers[5]),
                     Bytes(numbers[6]),
                     Bytes(numbers[7])};
}

}  // namespace stowage
