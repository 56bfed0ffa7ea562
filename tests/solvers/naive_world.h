// The plainest replay of compute and copies: named tensors in maps, memory summed anew at every
// moment, time advanced from event to event. Slow on purpose.
//
// What is the same on chains and graphs: streams, transfers, memory. A subclass has the ops.
// Naive, too, about who waits for communication: sets of names are compared.
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
#include "solvers/schedule/schedule.h"
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
  using NameSet = std::set<std::string>;

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
  // Whether the instruction is an op that communicates.
  virtual bool IsCollective(const Instruction& i) const = 0;
  // NameSet of what an op reads, and of what it makes, drops or changes. They need not be those of
  // tensors.
  virtual void Touch(const Instruction& i, NameSet* reads, NameSet* writes) const = 0;
  // Whether all backwards have run.
  virtual bool Done() const = 0;

  // Whether, from the op that runs now to the backward of its stage, no forward and no other backward runs, and no
  // instruction names the stage but, if `may_drop`, one that discards its plain output, which `*drops` then says.
  bool RunsRightBeforeItsBackward(bool* drops) const;

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

  // On the communication stream.
  struct Communication {
    size_t instruction = 0;
    int64_t duration = 0;
    int64_t kept = 0;  // memory, until it is observed
    NameSet reads, writes;
  };

  std::optional<int64_t> NextEvent() const;
  bool ChannelMoves(size_t c);
  bool CommunicationMoves();
  bool ComputeMoves();
  bool MustWait(const Instruction& i) const;
  bool MayCommunicate(const Instruction& i) const;
  void NamesOf(const Instruction& i, NameSet* reads, NameSet* writes) const;
  // Whether compute need not wait for communications before the instruction.
  bool Observes(const Instruction& i);
  bool Communicate(const Instruction& i);
  bool Carry(const Instruction& i);
  bool Transfer(const Instruction& i);
  void Enqueue(const std::string& name, size_t channel, int64_t duration);
  void NotePeak(Bytes beside);
  int64_t Taken() const;
  void EndInstruction();

  const Schedule& schedule_;
  const TransferModel* transfers_;

  int64_t now_ = 0;
  size_t next_ = 0;           // instruction
  int64_t compute_ends_ = 0;  // what compute has begun
  std::optional<int64_t> waited_since_;
  std::deque<Copy> queues_[2];
  std::optional<int64_t> channel_ends_[2];     // of the first in the queue, if it runs
  std::deque<Communication> communications_;   // that compute has not observed
  size_t communicated_ = 0;                    // how many of them have ended
  std::optional<int64_t> communication_ends_;  // of the one after, if it runs

  Tensors host_, coming_;
  std::map<std::string, Tensors> away_;  // what was held of what is on the host
  std::set<std::string> leaving_, arrived_;
  int64_t duration_ = 0;
  int64_t most_ = 0;  // memory since the instruction began
  bool failed_ = false;
  NaiveResult result_;
};

}  // namespace stowage::testing

#endif  // STOWAGE_TESTS_SOLVERS_NAIVE_WORLD_H_
