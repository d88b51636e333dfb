"""The two models: they learn, they are the same for one seed, and they leave random state alone."""

import itertools

import pytest
import torch
from torch import nn

from autograd_lab.teach import Digits, convnet, digits, train, transformer

MODELS = pytest.mark.parametrize("build", [convnet, transformer], ids=lambda build: build.__name__)


def few():
    d = digits()
    return Digits(
        train_images=d.train_images[:130],
        train_labels=d.train_labels[:130],
        test_images=d.test_images[:20],
        test_labels=d.test_labels[:20],
    )


@MODELS
def test_it_learns_to_read_digits(build):
    result = train(build(), digits(), steps=200)
    assert result.accuracy > 0.9
    assert sum(result.losses[-10:]) < 0.3 * sum(result.losses[:10])
    assert len(result.losses) == 200


@MODELS
def test_the_same_seed_gives_the_same_model_and_losses(build):
    losses = {train(build(seed=3), few(), steps=3, seed=1).losses for _ in range(2)}
    assert len(losses) == 1
    assert losses != {train(build(seed=4), few(), steps=3, seed=1).losses}


@MODELS
def test_the_batches_follow_from_their_own_seed(build):
    assert train(build(), few(), steps=3, seed=1) != train(build(), few(), steps=3, seed=2)


@MODELS
def test_torchs_random_state_is_not_touched(build):
    before = torch.get_rng_state()
    train(build(seed=5), few(), steps=2)
    assert torch.equal(torch.get_rng_state(), before)


@MODELS
def test_every_parameter_gets_a_gradient(build):
    model = build()
    d = few()
    nn.functional.cross_entropy(model(d.train_images), d.train_labels).backward()
    assert all(p.grad is not None and p.grad.any() for p in model.parameters())


@MODELS
def test_defaults_that_the_user_changed_make_no_difference(build):
    wanted = [p.clone() for p in build().parameters()]
    torch.set_default_dtype(torch.float64)
    try:
        with torch.device("meta"):
            model = build()
    finally:
        torch.set_default_dtype(torch.float32)
    assert {(p.dtype, p.device.type) for p in model.parameters()} == {(torch.float32, "cpu")}
    assert [p.shape for p in model.parameters()] == [p.shape for p in wanted]


def graph_names(output):
    seen, waiting = set(), [output.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is not None and node not in seen:
            seen.add(node)
            waiting += [parent for parent, _ in node.next_functions]
    return {node.name().rstrip("0123456789") for node in seen}


def test_the_convolutional_graph_has_what_a_lesson_wants_to_show():
    names = graph_names(convnet()(few().train_images))
    wanted = {"ConvolutionBackward", "NativeBatchNormBackward", "ReluBackward", "AddBackward"}
    assert wanted <= names


def test_the_transformers_graph_is_at_op_level():
    names = graph_names(transformer()(few().train_images))
    wanted = {"SoftmaxBackward", "BmmBackward", "NativeLayerNormBackward", "GeluBackward"}
    assert wanted <= names
    assert not any("ScaledDotProduct" in name for name in names)


def test_on_step_sees_each_step_and_loss():
    seen = []
    result = train(convnet(), few(), steps=3, on_step=lambda *told: seen.append(told))
    assert seen == list(zip(itertools.count(), result.losses))[:3]


def test_no_steps_only_measure():
    result = train(convnet(), few(), steps=0)
    assert result.losses == ()
    assert repr(result).startswith("Trained: 0 steps, held-out accuracy 0.")


@pytest.mark.parametrize("training", [True, False])
def test_train_or_eval_mode_is_put_back(training):
    model = convnet().train(training)
    train(model, few(), steps=1)
    assert model.training is training


def test_an_error_in_on_step_reaches_the_caller():
    with pytest.raises(ZeroDivisionError):
        train(convnet(), few(), steps=2, on_step=lambda step, loss: 1 / 0)
