#include "client/torch/step_failure.h"

#include <c10/util/Exception.h>

#include <cstdint>
#include <new>
#include <variant>
#include <vector>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/torch/host_pool.h"
#include "client/torch/memory_limit_error.h"
#include "client/torch/saved_tensor_scope.h"
#include "solvers/model/budget.h"

namespace stowage {
namespace {

constexpr char kPayload[] = "stowage/step-failure";

}  // namespace

StepFailure CurrentStepFailure(size_t instruction, ExecutionDevice* device) {
  StepFailure failure;
  failure.instruction = instruction;
  failure.allocated = failure.live_after = device->meter()->current();
  failure.reserved = device->meter()->reserved();
  try {
    throw;
  } catch (const MemoryLimitError& error) {
    failure.fault = StepFault::kDeviceMemory;
    failure.allocated = error.allocated;
    failure.reserved = error.reserved;
    failure.asked = error.asked;
    failure.limit = error.limit;
  } catch (const c10::OutOfMemoryError& error) {
    failure.fault = StepFault::kDeviceMemory;
    failure.asked = AskedIn(error.what_without_backtrace());
    failure.limit = device->Hardware().memory;
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
  status->SetPayload(
      kPayload, absl::Cord(absl::StrCat(static_cast<int>(failure.fault), " ", failure.instruction,
                                        " ", failure.allocated.value(), " ",
                                        failure.reserved.value(), " ", failure.asked.value(), " ",
                                        failure.limit.value(), " ", failure.live_after.value())));
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
  if (numbers.size() != 7) return std::nullopt;
  return StepFailure{static_cast<StepFault>(numbers[0]),
                     static_cast<size_t>(numbers[1]),
                     Bytes(numbers[2]),
                     Bytes(numbers[3]),
                     Bytes(numbers[4]),
                     Bytes(numbers[5]),
                     Bytes(numbers[6])};
}

Bytes AskedIn(const std::string& message) {
  constexpr char kBefore[] = "Tried to allocate ";
  const size_t at = message.find(kBefore);
  if (at == std::string::npos) return Bytes(0);
  const std::vector<std::string> words =
      absl::StrSplit(message.substr(at + sizeof(kBefore) - 1), absl::MaxSplits(' ', 2));
  if (words.size() < 2) return Bytes(0);
  const std::string unit = words[1].substr(0, words[1].find_first_not_of("KMGTiBbytes"));
  const absl::StatusOr<Budget> asked =
      ParseBudget(unit == "bytes" ? words[0] : absl::StrCat(words[0], " ", unit));
  if (!asked.ok() || !std::holds_alternative<Bytes>(*asked)) return Bytes(0);
  return std::get<Bytes>(*asked);
}

}  // namespace stowage
