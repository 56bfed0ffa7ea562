"""Random schedules of a chain of blocks and its loss, for tests of what executes them."""

import random

from stowage import _steps

SAVE, NO_SAVE, FREE, BACKWARD = "forward-save", "forward-no-save", "forward-no-save-free-input", "backward"
DISCARD, DROP = "discard", "drop-saved-keep-output"


def persistent(length, rng, kept=()):
    """What is stored stays until its backward. Stages 1..length, and the loss as stage length + 1."""

    def sub(first, last):
        if first == last:
            return [(SAVE, first), (BACKWARD, first)]
        if first in kept or rng.random() < 0.4:
            return [(SAVE, first), *sub(first + 1, last), (BACKWARD, first)]
        end = rng.randint(first + 1, last)
        stop = next((block for block in range(first, end) if block in kept), end)
        if stop == first or stop < first + 1:
            return [(SAVE, first), *sub(first + 1, last), (BACKWARD, first)]
        run = [(NO_SAVE, first)] + [(FREE, block) for block in range(first + 1, stop)]
        return run + sub(stop, last) + sub(first, stop - 1)

    return sub(1, length + 1)


class _State:
    """What is held, by the evaluator's table."""

    def __init__(self, length):
        self.plain = {0}
        self.saved = set()
        self.out = []
        self.length = length

    def held(self, block):
        return block in self.plain or block in self.saved

    def do(self, op, block, tensor=None):
        self.out.append((op, block) if tensor is None else (op, block, tensor))
        if op == SAVE:
            self.saved.add(block)
        elif op in (NO_SAVE, FREE):
            self.plain.add(block)
            if op == FREE:
                self.plain.discard(block - 1)
        elif op == BACKWARD:
            self.saved.discard(block)
            self.plain.discard(block - 1)
        elif op == DROP:
            self.saved.discard(block)
            self.plain.add(block)
        elif tensor == "saved":
            self.saved.discard(block)
        else:
            self.plain.discard(block)


def general(length, rng):
    """Anything goes: stored and dropped and stored again, saved tensors whose input is gone."""
    state = _State(length)

    def drop_some(but):
        while rng.random() < 0.2:
            choices = [(DISCARD, b, "activation") for b in state.plain if b not in (0, but)]
            for block in state.saved - {but}:
                choices.append((DISCARD, block, "saved"))
                if block not in state.plain:
                    choices.append((DROP, block))
            if not choices:
                return
            state.do(*rng.choice(sorted(choices)))

    def forward(block):
        ops = []
        if block not in state.saved:
            ops += [SAVE]
        if block not in state.plain:
            ops += [NO_SAVE] + ([FREE] if block > 1 and block - 1 in state.plain else [])
        state.do(rng.choice(ops), block)

    def forward_to(target):
        start = max(block for block in range(target) if state.held(block))
        for block in range(start + 1, target + 1):
            forward(block)
            drop_some(block)

    forward_to(length)
    state.do(SAVE, length + 1)
    state.do(BACKWARD, length + 1)
    for block in range(length, 0, -1):
        while block not in state.saved or not state.held(block - 1):
            if not state.held(block - 1):
                forward_to(block - 1)
            elif block not in state.saved:
                state.do(SAVE, block)
            if rng.random() < 0.3:
                drop_some(block - 1 if rng.random() < 0.5 else block)
        state.do(BACKWARD, block)
        for behind in range(block, length + 1):
            if behind in state.plain:
                state.do(DISCARD, behind, "activation")
            if behind in state.saved:
                state.do(DISCARD, behind, "saved")
    return state.out


def recomputes(schedule, length):
    forwards = [0] * (length + 2)
    for op, block, *_ in schedule:
        forwards[block] += op.startswith("forward")
    return [count - 1 for count in forwards[1 : length + 1]]


def random_schedule(length, seed):
    rng = random.Random(seed)
    return (persistent if seed % 2 else general)(length, rng)


class _Moving:
    """A schedule with copies to the host and back between its instructions."""

    def __init__(self, length, rng):
        self.length, self.rng, self.out = length, rng, []
        self.device, self.host, self.leaving = set(), set(), set()  # (block, is saved)

    def bring(self, held):
        if held in self.leaving:
            self.leaving.discard(held)
            self.put("offload-wait", held)
            self.device.discard(held)
            self.host.add(held)
        if held in self.host:
            self.put("prefetch-start", held)
            self.put("prefetch-wait", held)
            self.host.discard(held)
            self.device.add(held)

    def put(self, op, held):
        self.out.append((op, held[0], "saved" if held[1] else "activation"))

    def source(self, block):
        """The input is on the device."""
        both = [(block, False), (block, True)]
        if block and not any(held in self.device for held in both):
            self.bring(self.rng.choice([held for held in both if held in self.host]))

    def do(self, instruction):
        op, block, *tensor = instruction
        own = (block, True) if tensor == ["saved"] else (block, False)
        if op in (SAVE, NO_SAVE, FREE):
            self.source(block - 1)
        touched = {FREE: [(block - 1, False)], BACKWARD: [(block, True), (block - 1, False)], DISCARD: [own]}
        touched[DROP] = [(block, True)]
        for held in touched.get(op, []):
            self.bring(held)
        if op == BACKWARD:
            self.source(block - 1)
        self.out.append(instruction)
        self.device -= set(touched.get(op, []))
        if op in (SAVE, NO_SAVE, FREE, DROP):
            self.device.add((block, op == SAVE))

    def move_some(self):
        for held in sorted(self.leaving):
            self.put("offload-wait", held)
            self.device.discard(held)
            self.host.add(held)
        self.leaving.clear()
        free = sorted(held for held in self.device if 0 < held[0] <= self.length)
        if free and self.rng.random() < 0.5:
            held = self.rng.choice(free)
            self.put("offload-start", held)
            self.leaving.add(held)
        elif self.host and self.rng.random() < 0.3:
            self.bring(self.rng.choice(sorted(self.host)))


def with_moves(schedule, length, seed):
    moving = _Moving(length, random.Random(seed))
    for number, instruction in enumerate(schedule):
        moving.do(instruction)
        if number + 1 < len(schedule):
            moving.move_some()
    return moving.out


def between_backwards():
    """Schedules of six blocks that hold most in the backward of a kept block, right after memory is freed for it."""
    first = [(SAVE, block) for block in range(1, 8)]
    back = [(BACKWARD, block) for block in range(6, 0, -1)]
    away = [("offload-start", 2, "saved"), ("offload-wait", 2, "saved")]
    home = [("prefetch-start", 2, "saved"), ("prefetch-wait", 2, "saved")]
    again = [(DROP, 2), (SAVE, 2)]
    return {
        "copies": [*first[:2], away[0], *first[2:], (BACKWARD, 7), away[1], *back[:3], *home, *back[3:]],
        "drops": [*first, (BACKWARD, 7), again[0], *back[:4], again[1], *back[4:]],
    }


def follow(model, schedule):
    """Has the wrapped model train by this schedule. Returns what it takes."""
    book = model.stowage._chain.last_book
    plan = book.profile.plan_of(schedule)
    book.steps = _steps.Steps(schedule, book.length)
    book.was_watched = False
    return plan
