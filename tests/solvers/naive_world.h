// The plainest replay of compute and copies: named tensors in maps, memory summed anew at every
// moment, time advanced from event to event. Slow on purpose.
//
// What is the same on chains and graphs: streams, transfers, memory. A subclass has the ops.
#ifndef STOWAGE_TESTS_SOLVERS_NAIVE_WORLD_H_
#define STOWAGE_TESTS_SOLVERS_NAIVE_WORLD_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "solvers/model/transfer_model.h"
#include "solvers/plan/schedule.h"
#include "tests/solvers/naive_replay.h"

namespace stowage::testing {

class NaiveWorld {
 public:
  // `transfers` null: no transfer is valid.
  NaiveWorld(const Schedule& schedule, const TransferModel* transfers);
  virtual ~NaiveWorld() = default;

  NaiveResult Run();

 protected:
  using Tensors = std::map<std::string, int64_t>;

  // Whether the instruction names an op or a tensor that exists, and that may move if it is to.
  virtual bool Exists(const Instruction& i) const = 0;
  // Of the tensor that the instruction names.
  virtual std::string NameOf(const Instruction& i) const = 0;
  // The names by which that tensor is held, more than one if it has pieces that go singly, too.
  virtual std::vector<std::string> PiecesOf(const Instruction& i) const { return {NameOf(i)}; }
  // The tensor that it is a piece of, or itself.
  virtual std::string WholeOf(const Instruction& i) const { return NameOf(i); }
  // Drops the tensor wherever it is. Whether there is one, and none of it on its way.
  virtual bool Discarded(const Instruction& i) { return Vanishes({NameOf(i)}); }
  // An op that is neither a discard nor a transfer. Whether it is valid.
  virtual bool Execute(const Instruction& i) = 0;
  // Whether all backwards have run.
  virtual bool Done() const = 0;

  bool Has(const std::string& name) const { return held_.count(name) > 0; }
  bool Leaves(const std::string& name) const { return leaving_.count(name) > 0; }
  bool Anywhere(const std::string& name) const { return Has(name) || host_.count(name) > 0; }
  bool OnHost(const std::string& name) const { return host_.count(name) > 0; }
  // Drops these wherever they are. Whether there are any, and none on its way.
  bool Vanishes(const std::vector<std::string>& names);
  bool Erase(const std::string& name) { return !Leaves(name) && held_.erase(name) > 0; }
  // An op that takes so long, with `overhead` beside what is held now.
  void Runs(Nanos time, Bytes overhead);
  void RunsAgain(Nanos time);

  Tensors held_;  // and may be read

 private:
  struct Copy {
    std::string tensor;
    size_t instruction = 0;
    int64_t duration = 0;
  };

  std::optional<int64_t> NextEvent() const;
  bool ChannelMoves(size_t c);
  bool ComputeMoves();
  bool MustWait(const Instruction& i) const;
  bool Carry(const Instruction& i);
  bool Transfer(const Instruction& i);
  void Enqueue(const std::string& name, size_t channel, int64_t duration);
  void NotePeak(Bytes beside);

  const Schedule& schedule_;
  const TransferModel* transfers_;

  int64_t now_ = 0;
  size_t next_ = 0;           // instruction
  int64_t compute_ends_ = 0;  // what compute has begun
  std::optional<int64_t> waited_since_;
  std::deque<Copy> queues_[2];
  std::optional<int64_t> channel_ends_[2];  // of the first in the queue, if it runs

  Tensors host_, coming_;
  std::map<std::string, Tensors> away_;  // what was held of what is on the host
  std::set<std::string> leaving_, arrived_;
  int64_t duration_ = 0;
  bool failed_ = false;
  NaiveResult result_;
};

}  // namespace stowage::testing

#endif  // STOWAGE_TESTS_SOLVERS_NAIVE_WORLD_H_
