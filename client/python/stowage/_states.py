"""What a job keeps in its checkpoint of the plans that it trains by, and what a restart makes of it: plain values, for JSON or
torch.save."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Dict, Mapping, Optional, Sequence

from stowage._versions import is_out_of_memory
from stowage.errors import InvalidArgument, StowageError
from stowage.planning import Plan, Profile

if TYPE_CHECKING:
    from stowage._chain import Book, Chain

STATE_VERSION = 1
SOURCE = "state"  # of a plan that came by a state
LESS = 0.9  # of a plan's peak, where memory ran out by it
NEAR = 0.02  # budgets that differ by less of it are one: what else takes memory is not the same in two processes


def name_of(profile: Profile, shape: Any) -> str:
    """Of what processes must have in common to train by one plan. ``shape`` None: batches of any."""
    fields = profile.to_dict()
    of_all = fields["device"]["framework"], [stage["op_kind"] for stage in fields["chain"]["stages"]]
    return hashlib.sha256(repr(of_all if shape is None else (of_all, shape)).encode()).hexdigest()


def less_than(plan: Plan) -> int:
    """What the next plan may take where memory ran out by this one."""
    return int(LESS * plan.peak_bytes)


def state_of(chain: Chain, error: Optional[BaseException]) -> Dict[str, Any]:
    """``error``: what has ended the training. Where memory ran out, the plan of the last step takes less after a restart."""
    plans: Dict[str, Dict[str, Any]] = {}
    for shape, book in chain.books.items():
        profile = book.own_profile or book.profile
        if profile is None:
            continue
        lacked = book.lacked_memory or (error is not None and book is chain.last_book and is_out_of_memory(error))
        # Under one schedule batches of several shapes have one entry.
        entry = plans.setdefault(chain.name_of(profile, shape), {"at_most_bytes": None})
        limits = [entry["at_most_bytes"], book.at_most_bytes, book.reduced_bytes]
        if book.plan is not None:
            limits.append(less_than(book.plan) if lacked else None)
            lacked = lacked or ("plan" in entry and entry["plan"] is None)
            entry.update(budget_bytes=book.plan.budget_bytes, digest=book.plan.digest, revision=book.plan.revision)
            entry["plan"] = None if lacked else book.plan.to_dict()
        entry["at_most_bytes"] = min([known for known in limits if known is not None], default=None)
    ranks = 1 if chain.ranks is None else chain.ranks.group.size
    return {"version": STATE_VERSION, "ranks": ranks, "plans": plans}


class Resumed:
    """A state that was loaded: each of its plans serves once."""

    def __init__(self, state: Optional[Mapping[str, Any]] = None) -> None:
        """Raises InvalidArgument for what state_of has not made."""
        self._ranks = 0
        self._plans: Dict[str, Mapping[str, Any]] = {}
        if state is None:
            return
        try:
            version, self._ranks, plans = int(state["version"]), int(state["ranks"]), dict(state["plans"])
            for name, entry in plans.items() if version == STATE_VERSION else ():
                self._plans[str(name)] = {**entry, "at_most_bytes": _bytes(entry["at_most_bytes"])}
        except (KeyError, TypeError, ValueError):
            raise InvalidArgument("state: must be what Training.state() has returned") from None
        if version != STATE_VERSION:
            raise InvalidArgument(f"state: version = {version}: must be {STATE_VERSION}")

    def take(self, name: str, ranks: int) -> Mapping[str, Any]:
        """What there is for these. Another number of ranks plans anew, within what memory that ran out has left."""
        entry = self._plans.pop(name, {})
        return entry if ranks == self._ranks or not entry else {"at_most_bytes": entry["at_most_bytes"]}


def limit(books: Sequence[Book], entry: Mapping[str, Any]) -> None:
    """What earlier plans were held to, later ones are."""
    if entry.get("at_most_bytes") is not None:
        for book in books:
            book.at_most_bytes = book.reduced_bytes = entry["at_most_bytes"]


def plan_in(entry: Mapping[str, Any], profile: Profile, budget_bytes: int) -> Optional[Plan]:
    """The plan of then, if it was one within about this budget, and is one within it under the costs of now."""
    try:
        if abs(int(entry["budget_bytes"]) - budget_bytes) > NEAR * budget_bytes:
            return None
        plan = profile.plan_from_dict({**entry["plan"], "budget_bytes": budget_bytes}, recompute_only=True)
    except (KeyError, StowageError, TypeError, ValueError):
        return None
    return plan if plan.digest == entry.get("digest") and plan.peak_bytes <= budget_bytes else None


def _bytes(value: Any) -> Optional[int]:
    return None if value is None else int(value)
