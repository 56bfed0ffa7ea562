#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/rpc/grpc_messages.h"
#include "proto/codec/codec.h"

namespace stowage {
namespace {

absl::Status CheckPoint(const FrontierReply::Point* before, const FrontierReply::Point& point) {
  if (point.budget < Bytes(0) || point.peak < Bytes(0) || point.makespan < Nanos(0) ||
      point.peak > point.budget) {
    return BrokenContract("a point of the frontier that cannot be");
  }
  if (before != nullptr && (point.budget <= before->budget || point.makespan >= before->makespan)) {
    return BrokenContract("budgets of a frontier that do not rise, or makespans that do not fall");
  }
  return absl::OkStatus();
}

bool IsRate(double value) { return std::isfinite(value) && value >= 0; }

absl::Status CheckPoint(const BatchReply::Point* before, const BatchReply::Point& point) {
  if (point.batch_size <= (before == nullptr ? 0 : before->batch_size)) {
    return BrokenContract("batch sizes that do not rise from 1 on");
  }
  if (point.makespan < Nanos(0) || point.peak < Bytes(0) || !IsRate(point.samples_per_second)) {
    return BrokenContract(absl::StrCat("figures of batch ", point.batch_size, " that cannot be"));
  }
  return absl::OkStatus();
}

// The batches that an answer names are among those that fit, and nothing larger fits.
absl::Status CheckNamed(const BatchReply& reply) {
  int64_t largest = 0;
  bool has_fastest = reply.fastest == 0;
  for (const BatchReply::Point& point : reply.points) {
    if (!point.fits) continue;
    largest = point.batch_size;
    has_fastest |= point.batch_size == reply.fastest;
  }
  if (reply.largest != largest || !has_fastest || !IsRate(reply.samples_per_second)) {
    return BrokenContract("the batch that it names is not one that it says fits");
  }
  return absl::OkStatus();
}

}  // namespace

v1::GetFrontierRequest MakeGetFrontierRequest(const Profile& profile, const KeyOptions& key_options,
                                              int max_points) {
  v1::GetFrontierRequest request;
  *request.mutable_profile() = ToProto(profile);
  *request.mutable_options() = ToProto(key_options);
  request.set_max_points(max_points);
  return request;
}

v1::FitBatchRequest MakeFitBatchRequest(const BatchQuery& query) {
  v1::FitBatchRequest request;
  for (const BatchQuery::Measured& measured : query.profiles) {
    v1::BatchProfile* profile = request.add_profiles();
    profile->set_batch_size(measured.batch_size);
    *profile->mutable_profile() = ToProto(measured.profile);
  }
  request.set_device_budget_bytes(query.device_budget.value());
  request.set_reserved_bytes(query.reserved.value());
  *request.mutable_options() = ToProto(query.options);
  request.set_max_batch_size(query.max_batch_size);
  return request;
}

absl::StatusOr<FrontierReply> ReadResponse(const v1::GetFrontierResponse& response) {
  const absl::StatusOr<PlanKey> key = ReadKey(response.key());
  if (!key.ok()) return key.status();
  FrontierReply reply;
  reply.key = *key;
  reply.solver = response.solver();
  reply.schedule_class = response.schedule_class();
  reply.least_budget = Bytes(response.least_budget_bytes());
  reply.exact = response.exact();
  reply.search_complete = response.search_complete();
  if (reply.least_budget < Bytes(0)) return BrokenContract("a least budget below 0");
  for (const v1::FrontierPoint& message : response.points()) {
    const FrontierReply::Point point{Bytes(message.budget_bytes()), Nanos(message.makespan_ns()),
                                     Bytes(message.peak_bytes())};
    const absl::Status status =
        CheckPoint(reply.points.empty() ? nullptr : &reply.points.back(), point);
    if (!status.ok()) return status;
    reply.points.push_back(point);
  }
  return reply;
}

absl::StatusOr<BatchReply> ReadResponse(const v1::FitBatchResponse& response) {
  BatchReply reply;
  reply.largest = response.largest_batch_size();
  reply.fastest = response.fastest_batch_size();
  reply.samples_per_second = response.samples_per_second();
  for (const v1::BatchPoint& message : response.points()) {
    BatchReply::Point point;
    point.batch_size = message.batch_size();
    point.makespan = Nanos(message.makespan_ns());
    point.peak = Bytes(message.peak_bytes());
    point.samples_per_second = message.samples_per_second();
    point.fits = message.fits();
    point.within_profiles = message.within_profiles();
    const absl::Status status =
        CheckPoint(reply.points.empty() ? nullptr : &reply.points.back(), point);
    if (!status.ok()) return status;
    reply.points.push_back(point);
  }
  const absl::Status status = CheckNamed(reply);
  if (!status.ok()) return status;
  return reply;
}

}  // namespace stowage
