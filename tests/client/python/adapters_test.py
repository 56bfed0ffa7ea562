"""Training frameworks, the real ones: the same training with a budget as without."""

import copy

import pytest
import stowage
import torch
from networks import Mlp
from stowage import adapters
from torch import nn

torch.set_num_threads(1)
BUDGET = {"budget": "70%"}


def equal(a, b):
    return all(torch.equal(x, y) for x, y in zip(a.state_dict().values(), b.state_dict().values()))


class Recorded:
    """What was seen of a model's training, before it is plain again."""

    def __init__(self):
        self.plans, self.peaks, self.resident = [], [], None

    def see(self, model):
        self.plans.append(model.stowage.plan)
        self.peaks.append(model.stowage.measured_peak_bytes)
        self.resident = model.stowage.resident

    def assert_within(self):
        plan = self.plans[-1]
        assert plan.recomputed_forwards > 0 and self.peaks[-1] <= plan.peak_bytes <= plan.budget_bytes


def train_one_epoch(model, criterion, optimizer, data_loader, lr_scheduler, clip_grad_norm=1.0):
    """The loop of torchvision's references/classification/train.py, without its meters."""
    model.train()
    for image, target in data_loader:
        with torch.autocast("cpu", enabled=False):
            output = model(image)
            loss = criterion(output, target)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), clip_grad_norm)
        optimizer.step()
    lr_scheduler.step()


def test_the_loop_of_torchvisions_references():
    torchvision = pytest.importorskip("torchvision")
    torch.manual_seed(0)
    plain = torchvision.models.VisionTransformer(32, 8, 4, 2, 32, 64, dropout=0.1, num_classes=4)
    model = stowage.wrap(copy.deepcopy(plain), "70%")
    data = torch.utils.data.TensorDataset(torch.randn(24, 3, 32, 32), torch.arange(24) % 4)
    for each in (plain, model):
        torch.manual_seed(1)
        optimizer = torch.optim.SGD(each.parameters(), lr=0.1, momentum=0.9)
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
        for _ in range(2):
            loader = torch.utils.data.DataLoader(data, batch_size=8, shuffle=True, num_workers=1)
            train_one_epoch(each, nn.CrossEntropyLoss(label_smoothing=0.1), optimizer, loader, scheduler)
    assert equal(plain, model)
    seen = Recorded()
    seen.see(model)
    seen.assert_within()


def tiny_gpt2(transformers):
    torch.manual_seed(0)
    config = transformers.GPT2Config(n_layer=4, n_embd=32, n_head=2, vocab_size=64, n_positions=16, use_cache=False)
    return transformers.GPT2LMHeadModel(config)


def sentences():
    return [{"input_ids": torch.arange(n, n + 16) % 64, "labels": torch.arange(n, n + 16) % 64} for n in range(24)]


@pytest.mark.parametrize("budget", ["budget", "device_budget"])
def test_transformers(tmp_path, budget):
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    from stowage.adapters.transformers import StowageCallback

    seen = Recorded()

    class Looks(transformers.TrainerCallback):
        def on_step_end(self, args, state, control, model=None, **_):
            seen.see(model)

        def on_log(self, args, state, control, logs=None, **_):
            logged.append(logs.get("stowage_peak_bytes"))

    logged = []

    def train(callbacks):
        model = tiny_gpt2(transformers)
        settings = transformers.TrainingArguments(
            tmp_path,
            max_steps=5,
            per_device_train_batch_size=4,
            logging_steps=1,
            report_to=[],
            use_cpu=True,
            save_steps=3,
            seed=3,
        )
        trainer = transformers.Trainer(model, settings, train_dataset=sentences(), callbacks=callbacks)
        trainer.train()
        return model, trainer

    plain, _ = train([])
    arguments = BUDGET
    if budget == "device_budget":  # of which plain training leaves nothing, and a plan must give some back
        train([StowageCallback(device_budget="100MiB"), Looks()])
        plenty = seen.plans[-1]
        assert plenty.recomputed_forwards == 0
        arguments = {budget: seen.resident.total_bytes + int(0.8 * plenty.store_all_peak_bytes)}
        logged.clear()
        seen.peaks.clear()
    model, _ = train([StowageCallback(**arguments), Looks()])
    assert equal(plain, model) and "stowage" not in model.__dict__
    assert logged[:5] == seen.peaks
    seen.assert_within()
    settings = transformers.TrainingArguments(tmp_path, max_steps=1, report_to=[], use_cpu=True, gradient_checkpointing=True)
    with pytest.raises(stowage.InvalidArgument, match="gradient_checkpointing"):
        transformers.Trainer(plain, settings, train_dataset=sentences(), callbacks=[StowageCallback(**BUDGET)]).train()


def test_transformers_begins_again(tmp_path):
    """After an error, as with auto_find_batch_size, nobody says that the training has ended."""
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    from stowage.adapters.transformers import StowageCallback

    class Fails(transformers.TrainerCallback):
        tried = 0

        def on_step_end(self, args, state, control, **_):
            self.tried += 1
            if self.tried == 2:
                raise RuntimeError("out of memory, somewhere")

    settings = transformers.TrainingArguments(tmp_path, max_steps=3, per_device_train_batch_size=4, report_to=[], use_cpu=True)
    model, callbacks = tiny_gpt2(transformers), [StowageCallback(**BUDGET), Fails()]
    trainer = transformers.Trainer(model, settings, train_dataset=sentences(), callbacks=callbacks)
    with pytest.raises(RuntimeError, match="somewhere"):
        trainer.train()
    assert "stowage" in model.__dict__
    trainer.train()
    assert "stowage" not in model.__dict__ and callbacks[1].tried == 5


@pytest.mark.parametrize("precision", ["no", "bf16"])
def test_accelerate(precision):
    accelerate = pytest.importorskip("accelerate")
    from stowage.adapters.accelerate import prepare

    def train(planned):
        torch.manual_seed(0)
        accelerate.state.AcceleratorState._reset_state(True)
        accelerator = accelerate.Accelerator(cpu=True, mixed_precision=precision, gradient_accumulation_steps=2)
        model = nn.Sequential(*[Mlp(64) for _ in range(6)])
        optimizer = torch.optim.Adam(model.parameters())
        loader = torch.utils.data.DataLoader(torch.randn(192, 64), batch_size=32)
        parts = model, optimizer, loader
        model, optimizer, loader = prepare(accelerator, *parts, **BUDGET) if planned else accelerator.prepare(*parts)
        for batch in loader:
            with accelerator.accumulate(model):
                accelerator.backward(model(batch).square().mean())
                optimizer.step()
                optimizer.zero_grad()
        return accelerator.unwrap_model(model)

    plain, model = train(False), train(True)
    assert equal(plain, model)
    seen = Recorded()
    seen.see(model)
    seen.assert_within()


def test_lightning(tmp_path):
    lightning = pytest.importorskip("lightning")
    from stowage.adapters.lightning import StowageCallback

    seen = Recorded()

    class Net(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = nn.Sequential(*[Mlp(64) for _ in range(6)])

        def training_step(self, batch, index):
            return self.net(batch).square().mean()

        def on_train_batch_end(self, outputs, batch, index):
            if "stowage" in self.net.__dict__:
                seen.see(self.net)

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters())

    def fit(callbacks):
        torch.manual_seed(0)
        module = Net()
        settings = {"accelerator": "cpu", "max_epochs": 1, "enable_progress_bar": False, "enable_model_summary": False}
        trainer = lightning.Trainer(**settings, logger=False, default_root_dir=tmp_path, callbacks=callbacks)
        trainer.fit(module, torch.utils.data.DataLoader(torch.randn(128, 64), batch_size=32))
        return module

    plain, module = fit([]), fit([StowageCallback(path="net", **BUDGET)])
    assert equal(plain, module) and "stowage" not in module.net.__dict__
    seen.assert_within()


def test_an_optimizer_is_given_where_a_device_is_planned():
    optimizer = torch.optim.SGD([torch.zeros(1)], lr=1)

    class Wrapper:
        def __init__(self):
            self.optimizer, self.param_groups = optimizer, optimizer.param_groups

    device = {"device_budget": 1}
    assert adapters.with_optimizer(device, [None, Wrapper()]) == {**device, "optimizer": optimizer}
    assert adapters.with_optimizer(device, []) == device and adapters.with_optimizer(BUDGET, [optimizer]) == BUDGET
