#include "client/agent/group_agreement.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/torch/base/torch_status.h"
#include "solvers/model/field_error.h"

namespace stowage {
namespace {

// Not of LibTorch's allocator, whose memory is what profiles measure: a group's threads let go of what they have carried
// some time after its work is done.
at::Tensor Uncounted(int64_t numbers, c10::ScalarType type) {
  const size_t bytes = static_cast<size_t>(numbers) * c10::elementSize(type);
  void* const data = ::operator new(bytes);
  return at::from_blob(
      data, {numbers}, [](void* made) { ::operator delete(made); }, type);
}

at::Tensor BytesOf(const std::string& text) {
  at::Tensor bytes = Uncounted(static_cast<int64_t>(text.size()), at::kByte);
  if (!text.empty()) std::memcpy(bytes.data_ptr(), text.data(), text.size());
  return bytes;
}

std::string TextOf(const at::Tensor& bytes) {
  return {static_cast<const char*>(bytes.data_ptr()), static_cast<size_t>(bytes.numel())};
}

at::Tensor NumbersOf(const std::vector<int64_t>& values) {
  at::Tensor numbers = Uncounted(static_cast<int64_t>(values.size()), at::kLong);
  std::copy(values.begin(), values.end(), numbers.data_ptr<int64_t>());
  return numbers;
}

// Texts one after another, each behind its length.
void Append(const std::string& text, std::string* all) {
  const auto length = static_cast<int64_t>(text.size());
  all->append(reinterpret_cast<const char*>(&length), sizeof(length));
  all->append(text);
}

absl::StatusOr<std::vector<std::string>> Parted(const std::string& all) {
  std::vector<std::string> texts;
  for (size_t at = 0; at < all.size();) {
    int64_t length = 0;
    if (all.size() - at < sizeof(length)) return absl::InternalError("a text is cut short");
    std::memcpy(&length, all.data() + at, sizeof(length));
    at += sizeof(length);
    if (length < 0 || all.size() - at < static_cast<size_t>(length)) {
      return absl::InternalError("a text is cut short");
    }
    texts.push_back(all.substr(at, static_cast<size_t>(length)));
    at += static_cast<size_t>(length);
  }
  return texts;
}

class GroupAgreement : public PlanAgreement {
 public:
  explicit GroupAgreement(c10::intrusive_ptr<c10d::ProcessGroup> group)
      : group_(std::move(group)), rank_(group_->getRank()), ranks_(group_->getSize()) {}

  int rank() const override { return rank_; }
  int ranks() const override { return ranks_; }

  absl::StatusOr<std::vector<std::string>> Gather(const std::string& mine) override {
    std::string all;
    Append(mine, &all);
    const absl::Status status = Tried([&] {
      // Those below a rank are the next ones, so that texts stay in the order of ranks.
      UpTheTree([&](int child) { all += ReceiveText(child); },
                [&](int parent) { SendText(all, parent); });
      all = BroadcastText(all);
    });
    if (!status.ok()) return status;
    return Parted(all);
  }

  absl::StatusOr<std::string> Broadcast(const std::string& mine) override {
    std::string said;
    const absl::Status status = Tried([&] { said = BroadcastText(mine); });
    if (!status.ok()) return status;
    return said;
  }

  absl::StatusOr<std::vector<int64_t>> Greatest(const std::vector<int64_t>& mine) override {
    std::vector<int64_t> greatest = mine;
    const absl::Status status = Tried([&] {
      at::Tensor own = NumbersOf(mine);
      const at::Tensor theirs = Uncounted(own.numel(), at::kLong);
      UpTheTree(
          [&](int child) {
            Receive(theirs, child);
            at::maximum_out(own, own, theirs);
          },
          [&](int parent) { Send(own, parent); });
      BroadcastTensor(own);
      std::copy_n(own.data_ptr<int64_t>(), greatest.size(), greatest.begin());
    });
    if (!status.ok()) return status;
    return greatest;
  }

  bool votes() const override { return true; }

  absl::Status Say(uint32_t word) override {
    return Tried([&] {
      std::vector<at::Tensor> tensors = {Uncounted(1, at::kInt)};
      tensors.front().fill_(static_cast<int64_t>(word));
      c10d::AllreduceOptions options;
      options.reduceOp = c10d::ReduceOp::BOR;
      Word said;
      said.bits = tensors.front();
      said.work = group_->allreduce(tensors, options);
      words_.push_back(std::move(said));
    });
  }

  absl::StatusOr<uint32_t> Hear() override {
    if (words_.empty()) return absl::FailedPreconditionError("no word was said");
    const Word said = std::move(words_.front());
    words_.pop_front();
    const absl::Status status = Tried([&] { said.work->wait(); });
    if (!status.ok()) return status;
    return static_cast<uint32_t>(said.bits.item<int32_t>());
  }

 private:
  struct Word {
    at::Tensor bits;
    c10::intrusive_ptr<c10d::Work> work;
  };

  absl::Status Tried(const std::function<void()>& exchange) const {
    try {
      exchange();
      return absl::OkStatus();
    } catch (...) {
      return CurrentExceptionToStatus(
          absl::StrCat("rank ", rank_, " of ", ranks_,
                       ": another rank is gone, or late beyond the process group's timeout"),
          absl::StatusCode::kUnavailable);
    }
  }

  // Takes from all ranks below this one, then gives to the one above it.
  void UpTheTree(const std::function<void(int)>& take, const std::function<void(int)>& give) const {
    for (int distance = 1; distance < ranks_; distance *= 2) {
      if ((rank_ & distance) != 0) {
        give(rank_ - distance);
        return;
      }
      if (rank_ + distance < ranks_) take(rank_ + distance);
    }
  }

  void Send(const at::Tensor& tensor, int rank) const {
    if (tensor.numel() == 0) return;
    std::vector<at::Tensor> tensors = {tensor};
    group_->send(tensors, rank, /*tag=*/0)->wait();
  }

  void Receive(const at::Tensor& tensor, int rank) const {
    if (tensor.numel() == 0) return;
    std::vector<at::Tensor> tensors = {tensor};
    group_->recv(tensors, rank, /*tag=*/0)->wait();
  }

  void BroadcastTensor(const at::Tensor& tensor) const {
    if (tensor.numel() == 0 || ranks_ == 1) return;
    std::vector<at::Tensor> tensors = {tensor};
    group_->broadcast(tensors)->wait();
  }

  void SendText(const std::string& text, int rank) const {
    Send(NumbersOf({static_cast<int64_t>(text.size())}), rank);
    Send(BytesOf(text), rank);
  }

  std::string ReceiveText(int rank) const {
    const at::Tensor length = NumbersOf({0});
    Receive(length, rank);
    const at::Tensor bytes = Uncounted(length.item<int64_t>(), at::kByte);
    Receive(bytes, rank);
    return TextOf(bytes);
  }

  // Of rank 0.
  std::string BroadcastText(const std::string& text) const {
    const at::Tensor length = NumbersOf({static_cast<int64_t>(text.size())});
    BroadcastTensor(length);
    const at::Tensor bytes =
        rank_ == 0 ? BytesOf(text) : Uncounted(length.item<int64_t>(), at::kByte);
    BroadcastTensor(bytes);
    return TextOf(bytes);
  }

  const c10::intrusive_ptr<c10d::ProcessGroup> group_;
  const int rank_;
  const int ranks_;
  std::deque<Word> words_;  // said, and not heard
};

}  // namespace

absl::StatusOr<std::unique_ptr<PlanAgreement>> MakeGroupAgreement(
    c10::intrusive_ptr<c10d::ProcessGroup> group) {
  if (!group) return FieldError("group", "null", "must be a process group");
  return std::make_unique<GroupAgreement>(std::move(group));
}

}  // namespace stowage
