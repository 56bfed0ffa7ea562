#include "server/rpc/fit_batch_call.h"

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/codec/codec.h"
#include "server/service/solve_outcome.h"
#include "solvers/model/field_error.h"

namespace stowage {
namespace {

// An error of one of the profiles, as one of the request.
absl::Status ProfileError(int index, const absl::Status& status) {
  const std::optional<FieldViolation> violation = GetFieldViolation(status);
  if (!violation) return status;
  return FieldError(absl::StrCat("profiles[", index, "].", violation->field), violation->value,
                    violation->rule);
}

absl::StatusOr<BatchModel> ModelOf(const v1::FitBatchRequest& request,
                                   const RequestLimits& limits) {
  std::vector<BatchProfile> profiles;
  for (int i = 0; i < request.profiles_size(); ++i) {
    const v1::BatchProfile& measured = request.profiles(i);
    if (absl::Status status = CheckLimits(measured.profile(), limits); !status.ok()) {
      return ProfileError(i, status);
    }
    absl::StatusOr<Profile> profile = FromProto(measured.profile());
    if (!profile.ok()) return ProfileError(i, profile.status());
    profiles.push_back({measured.batch_size(), *std::move(profile)});
  }
  return BatchModel::Create(std::move(profiles));
}

absl::StatusOr<BatchRequest> Convert(const v1::FitBatchRequest& request,
                                     const RequestLimits& limits) {
  const absl::StatusOr<BatchBounds> bounds =
      MakeBatchBounds(Bytes(request.device_budget_bytes()), Bytes(request.reserved_bytes()),
                      request.max_batch_size());
  if (!bounds.ok()) return bounds.status();
  absl::StatusOr<BatchModel> model = ModelOf(request, limits);
  if (!model.ok()) return model.status();
  return BatchRequest{std::make_shared<const BatchModel>(*std::move(model)), bounds->budget,
                      bounds->max_batch};
}

void Fill(const BatchFit& fit, v1::FitBatchResponse* response) {
  response->set_largest_batch_size(fit.largest);
  response->set_fastest_batch_size(fit.fastest);
  response->set_samples_per_second(fit.samples_per_second);
  for (const BatchPoint& point : fit.points) {
    v1::BatchPoint* filled = response->add_points();
    filled->set_batch_size(point.batch_size);
    filled->set_makespan_ns(point.makespan.value());
    filled->set_peak_bytes(point.peak.value());
    filled->set_samples_per_second(point.samples_per_second);
    filled->set_fits(point.fits);
    filled->set_within_profiles(point.within_profiles);
  }
}

}  // namespace

void FitBatchCall::Begin(const v1::FitBatchRequest& request) {
  const absl::StatusOr<BatchRequest> batches =
      CatchingBadAlloc([&] { return Convert(request, limits_); });
  if (!batches.ok()) return End(batches.status());
  const absl::StatusOr<KeyOptions> options = FromProto(request.options(), record_.caller()->tenant);
  if (!options.ok()) return End(options.status());
  ComputeRequest asked{batches->model->profiles().front().profile, batches->budget, *options,
                       std::nullopt};
  Sign(&asked);
  const CallHandle handle = handle_;
  handle.Set(planning_->FitBatches(
      asked, *batches, [this](const absl::StatusOr<ComputeAnswer>& answer) { Answer(answer); }));
}

void FitBatchCall::Answer(const absl::StatusOr<ComputeAnswer>& answer) {
  if (!answer.ok()) return End(answer.status());
  End(CatchingBadAlloc([&] {
    v1::FitBatchResponse response;
    Fill(*answer->batches, &response);
    return Write(response);
  }));
}

}  // namespace stowage
