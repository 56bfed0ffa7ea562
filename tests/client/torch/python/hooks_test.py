#!/usr/bin/env python3
"""Python trains under saved-tensor hooks, Stowage trains by plans in the same process: Python's hooks must be called as if it did not.

    hooks_test.py LIBRARY     planned_training.cc as a shared library; run by the Python whose torch it was built against
"""
import ctypes
import os
import sys
import threading
import unittest

import torch

LIBRARY = None
SEEDS = range(12)


def load(path):
    library = ctypes.CDLL(path)  # lets go of the interpreter's lock while it runs
    for name in ("StowageStart", "StowagePlainStep", "StowageStoreAllStep", "StowageMovingStep"):
        getattr(library, name).restype = ctypes.c_char_p
    return library


def do_nothing():
    pass


class Training:
    """A small model and all calls of the hooks around it, those during `in_forward` and `in_backward` apart."""

    def __init__(self, copies=False):
        generator = torch.Generator().manual_seed(3)
        shapes = [(16, 6), (16, 16), (16, 16), (1, 16)]
        self.weights = [(torch.randn(shape, generator=generator) * 0.3).requires_grad_() for shape in shapes]
        self.input = torch.randn((5, 6), generator=generator)
        self.copies = copies
        self.own, self.inside = [], []
        self.calls = self.own

    def note(self, hook, tensor):
        self.calls.append((hook, tuple(tensor.shape), float(tensor.detach().double().sum())))
        return tensor.clone() if self.copies else tensor

    def run_apart(self, function):
        before, self.calls = self.calls, self.inside
        try:
            function()
        finally:
            self.calls = before

    def step(self, in_forward=do_nothing, in_backward=do_nothing):
        first, second, third, last = self.weights
        with torch.autograd.graph.saved_tensors_hooks(lambda t: self.note("pack", t), lambda t: self.note("unpack", t)):
            h = torch.tanh(self.input @ first.t())
            h = torch.sigmoid(h @ second.t()) * h
            self.run_apart(in_forward)
            h.register_hook(lambda gradient: self.run_apart(in_backward))
            h = torch.softmax(h @ third.t(), 1)
            loss = (h @ last.t()).square().sum()
        loss.backward()
        return self

    def outcome(self):
        return self.own, [weight.grad for weight in self.weights]


class HooksTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.alone = Training().step()
        cls.library = load(LIBRARY)
        cls.plain = cls.library.StowageStart()
        assert cls.plain.startswith(b"ok "), cls.plain

    def assert_as_alone(self, training):
        calls, gradients = training.outcome()
        expected_calls, expected_gradients = self.alone.outcome()
        self.assertGreater(len(calls), 8)
        self.assertEqual(calls, expected_calls)
        for gradient, expected in zip(gradients, expected_gradients):
            self.assertTrue(torch.equal(gradient, expected))

    def move(self, seed, alone=False):
        """`alone`: no hook of Python's takes memory meanwhile, so that the step's peak must be the predicted one."""
        self.assertEqual(self.library.StowageMovingStep(seed, alone), self.plain)

    def test_after_planned_steps(self):
        for seed in SEEDS:
            self.move(seed, alone=True)
            self.assert_as_alone(Training().step())

    def test_planned_steps_within_hooks(self):
        for seed in SEEDS:
            for copies in (False, True):
                with self.subTest(seed=seed, copies=copies):
                    self.assert_as_alone(Training(copies).step(in_forward=lambda: self.move(seed)))

    def test_planned_steps_within_a_backward(self):
        for seed in SEEDS:
            self.assert_as_alone(Training().step(in_backward=lambda: self.move(seed)))

    def test_a_plan_that_moves_nothing_is_seen_as_plain_training_is(self):
        plain = Training().step(in_forward=self.library.StowagePlainStep).inside
        planned = Training().step(in_forward=self.library.StowageStoreAllStep).inside
        self.assertGreater(len(plain), 8)
        self.assertEqual(sorted(planned), sorted(plain))

    def test_what_moves_is_seen_by_the_inner_hooks_alone(self):
        plain = len(Training().step(in_forward=self.library.StowagePlainStep).inside)
        seen = [len(Training().step(in_forward=lambda: self.move(seed)).inside) for seed in SEEDS]
        self.assertLess(min(seen), plain)

    def test_beside_threads_that_train(self):
        trained, said = [], []
        going = True

        def train():
            while going:
                trained.append(Training().step())

        threads = [threading.Thread(target=train) for _ in range(2)]
        for thread in threads:
            thread.start()
        try:
            while len(said) < len(SEEDS) or len(trained) < 20:
                said.append(self.library.StowageMovingStep(len(said) % len(SEEDS), False))
        finally:
            going = False
            for thread in threads:
                thread.join()
        for training in trained:
            self.assert_as_alone(training)
        for text in said:
            # What the threads take meanwhile may look like a graph's.
            if b" bytes that autograd has not saved" not in text:
                self.assertEqual(text, self.plain)

    def test_under_anomaly_detection(self):
        with torch.autograd.set_detect_anomaly(True):
            self.assert_as_alone(Training().step(in_forward=lambda: self.move(1)))

    def test_where_hooks_are_forbidden_a_plan_that_needs_them_says_so(self):
        with torch.autograd.graph.disable_saved_tensors_hooks("none here"):
            said = [self.library.StowageMovingStep(seed, False) for seed in SEEDS]
            self.assertEqual(self.library.StowageStoreAllStep(), self.plain)
        refused = [text for text in said if text != self.plain]
        self.assertGreater(len(refused), 0)
        for text in refused:
            self.assertIn(b"saved-tensor hooks are forbidden here: none here", text)
        self.assert_as_alone(Training().step(in_forward=lambda: self.move(1)))

    def test_a_child_process_trains_as_before(self):
        self.move(1)
        child = os.fork()
        if child == 0:
            try:
                self.assert_as_alone(Training().step())
                os._exit(0)
            finally:
                os._exit(1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)


if __name__ == "__main__":
    LIBRARY = sys.argv.pop(1)
    torch.set_num_threads(1)
    unittest.main(verbosity=2)
