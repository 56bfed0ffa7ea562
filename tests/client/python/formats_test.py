"""Plans in the words of others: what they say, and what training by them takes."""

import copy

import pytest
import stowage
from profiles import STAGE, chain
from stowage import formats

FORMATS = [formats.checkpointed_blocks, formats.remat_regions, formats.every_n_layers, formats.megatron_arguments]


@pytest.mark.parametrize("translate", FORMATS)
def test_a_plan_that_keeps_all_loses_nothing_that_counts(translate):
    profile = chain()
    plan = profile.plan("100%")
    translation = translate(profile, plan)
    assert translation.value in ([], {}, 0) or not any(translation.value.values())
    assert (translation.takes.peak_bytes, translation.takes.makespan_ns) == (plan.peak_bytes, plan.makespan_ns)
    assert not any("in place of" in loss for loss in translation.losses)


@pytest.mark.parametrize("budget", ["90%", "70%", "least"])
@pytest.mark.parametrize("translate", FORMATS)
def test_what_others_take_is_what_the_evaluator_says(translate, budget):
    profile = chain()
    plan = profile.plan(budget)
    value, takes, losses = translate(profile, plan)
    over = takes.peak_bytes - plan.budget_bytes
    assert (over > 0) == any(f"{over} more than the budget" in loss for loss in losses)
    assert takes.makespan_ns <= plan.makespan_ns or any(f"{takes.makespan_ns} ns in place of" in loss for loss in losses)
    assert takes.peak_bytes > plan.peak_bytes or takes.makespan_ns >= plan.makespan_ns


def test_rules_choose_the_fastest_within_the_budget():
    profile = chain()
    plan = profile.plan("85%")
    n, takes, _ = formats.every_n_layers(profile, plan)
    assert n > 1 and takes.peak_bytes <= plan.budget_bytes and takes.recomputed_forwards == len(range(0, 8, n))
    slower = formats._each(8, list(range(0, 8, n - 1)))
    assert profile.plan_of(slower).makespan_ns > takes.makespan_ns
    arguments, takes, _ = formats.megatron_arguments(profile, plan)
    assert arguments["recompute_method"] == "block" and takes.recomputed_forwards == arguments["recompute_num_layers"]
    assert takes.peak_bytes <= plan.budget_bytes


def test_groups_are_those_of_megatron():
    profile = chain()
    schedule = formats._in_groups(8, 3)
    assert profile.plan_of(schedule).recomputed_forwards == 8
    assert [step for step in schedule if step[0] == "forward-no-save"] == [("forward-no-save", n) for n in (1, 4, 7)]


def test_blocks_that_must_be_kept_are():
    profile = stowage.Profile.of_chain([dict(STAGE, must_keep=n == 3) for n in range(8)], input_bytes=100)
    plan = profile.plan("70%")
    assert 3 not in formats.checkpointed_blocks(profile, plan).value
    assert formats.every_n_layers(profile, plan).value not in (1, 3)
    with_method = formats.megatron_arguments(profile, plan).value
    assert not with_method or (with_method["recompute_method"] == "block" and with_method["recompute_num_layers"] <= 3)


def test_names_and_kinds():
    profile = chain(2)
    plan = profile.plan("least")
    assert formats.remat_regions(profile, plan, ["a", "b"]).value == {"a": True, "b": False}
    with pytest.raises(stowage.InvalidArgument, match="names"):
        formats.remat_regions(profile, plan, ["a"])
    graph = stowage.Profile.from_dict({"graph": {"vertices": [{"id": 1, "output_bytes": 1}]}})
    with pytest.raises(stowage.InvalidArgument, match="chain"):
        formats.checkpointed_blocks(graph, plan)


def test_offloads_are_said_to_be_lost():
    link = {"duplex": "DUPLEX_FULL", "to_host_bytes_per_second": 10**12, "to_device_bytes_per_second": 10**12}
    fields = {**chain(forward_time_ns=1000, backward_time_ns=2000).to_dict(), "device": {**link, "host_memory_bytes": 10**6}}
    profile = stowage.Profile.from_dict(fields)
    plan = profile.plan("60%")
    assert any(step.op.startswith("offload") for step in plan.schedule())
    assert "nothing goes to host memory" in formats.checkpointed_blocks(profile, plan).losses


torch = pytest.importorskip("torch")
checkpoint = pytest.importorskip("torch.utils.checkpoint")


def network_and_plan():
    torch.manual_seed(0)
    blocks = [torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.GELU(), torch.nn.Linear(32, 8)) for _ in range(6)]
    profile = chain(6)
    return blocks, torch.randn(4, 8), profile, profile.plan("70%")


def gradients(blocks, x, call):
    out = x.clone().requires_grad_()
    for number, block in enumerate(blocks):
        out = call(number, block, out)
    out.square().sum().backward()
    return [p.grad for block in blocks for p in block.parameters()]


def matrix_products(function):
    """How many ran, by the profiler."""
    with torch.autograd.profiler.profile() as profiled:
        result = function()
    return result, sum(event.name == "aten::addmm" for event in profiled.function_events)


def test_training_by_a_list_of_blocks():
    blocks, x, profile, plan = network_and_plan()
    expected = gradients(copy.deepcopy(blocks), x, lambda number, block, x: block(x))
    chosen = formats.checkpointed_blocks(profile, plan).value

    def call(number, block, x):
        return checkpoint.checkpoint(block, x, use_reentrant=False) if number in chosen else block(x)

    got, products = matrix_products(lambda: gradients(blocks, x, call))
    assert all(torch.equal(a, b) for a, b in zip(got, expected))
    assert products >= 2 * 6 + len(chosen) > 2 * 6


@pytest.mark.skipif(
    not hasattr(checkpoint, "create_selective_checkpoint_contexts"), reason="PyTorch without selective checkpointing"
)
def test_training_by_a_selective_policy():
    from torch.utils.flop_counter import FlopCounterMode

    blocks, x, profile, plan = network_and_plan()
    expected = gradients(copy.deepcopy(blocks), x, lambda number, block, x: block(x))
    contexts = formats.selective_checkpoint_contexts(profile, plan).value

    def call(number, block, x):
        return checkpoint.checkpoint(block, x, use_reentrant=False, context_fn=contexts[number])

    chosen = formats.checkpointed_blocks(profile, plan).value

    def of_list(number, block, x):
        return checkpoint.checkpoint(block, x, use_reentrant=False) if number in chosen else block(x)

    flops = []
    for called in (call, of_list):
        with FlopCounterMode(display=False) as counter:
            got = gradients(copy.deepcopy(blocks), x, called)
        assert all(torch.equal(a, b) for a, b in zip(got, expected))
        flops.append(counter.get_total_flops())
    assert chosen and flops[0] == flops[1]


@pytest.mark.skipif(hasattr(checkpoint, "create_selective_checkpoint_contexts"), reason="PyTorch with selective checkpointing")
def test_without_selective_checkpointing_that_is_said():
    _, _, profile, plan = network_and_plan()
    with pytest.raises(stowage.FailedPrecondition, match="create_selective_checkpoint_contexts"):
        formats.selective_checkpoint_contexts(profile, plan)


def test_training_by_regions():
    remat = pytest.importorskip("torch_remat")
    blocks, x, profile, plan = network_and_plan()
    expected = gradients(copy.deepcopy(blocks), x, lambda number, block, x: block(x))
    regions = formats.remat_regions(profile, plan).value

    def call(number, block, x):
        name = f"block {number}"
        return remat.checkpoint(region_name=name)(block)(x) if regions[name] else block(x)

    got, products = matrix_products(lambda: gradients(blocks, x, call))
    assert all(torch.equal(a, b) for a, b in zip(got, expected))
    assert products >= 2 * 6 + sum(regions.values())


def test_training_by_every_n_layers_of_transformers():
    transformers = pytest.importorskip("transformers")
    config = transformers.GPT2Config(n_layer=4, n_embd=32, n_head=2, vocab_size=64, n_positions=16, use_cache=False)
    model = transformers.GPT2LMHeadModel(config).train()
    if not hasattr(model, "activation_checkpointing_enable"):
        pytest.skip("Transformers without every_n_layers")
    profile = chain(4)
    n = formats.every_n_layers(profile, profile.plan("85%")).value
    model.activation_checkpointing_enable(every_n_layers=n)
    assert [block.gradient_checkpointing for block in model.transformer.h] == [number % n == 0 for number in range(4)]
    words = torch.arange(8).view(2, 4)
    plain = copy.deepcopy(model)
    for block in plain.transformer.h:
        block.gradient_checkpointing = False
    runs = []
    for number, block in enumerate(model.transformer.h):
        block.attn.register_forward_pre_hook(lambda *_, number=number: runs.append(number))
    for each in (plain, model):
        torch.manual_seed(0)
        each(words, labels=words).loss.backward()
    assert sorted(runs) == sorted([*range(4), *range(0, 4, n)])
    assert all(torch.equal(a.grad, b.grad) for a, b in zip(plain.parameters(), model.parameters()))
