"""One picture model asked in different masking modes by many threads: each gets what it would have got alone."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from torch import Tensor

from anyorder.errors import UserError
from anyorder.heads import Bernoulli
from anyorder.model import AnyOrderModel
from anyorder.model.few_steps import draw_in_groups
from anyorder.protocols import Random
from anyorder.query import Query
from anyorder.variables.codecs import LevelCodec
from anyorder.variables.encoding import Encoding
from anyorder.variables.schema import Kind, Schema, Variable

MODES = 7
THREADS, QUESTIONS = 8, 20


@pytest.fixture(scope="module")
def model() -> AnyOrderModel:
    variables = tuple(Variable(f"p{pixel}", Kind.CATEGORICAL, ("0", "1"), dtype="str") for pixel in range(9))
    encoding = Encoding(Schema(variables, grid=(3, 3), alike=True), tuple(map(LevelCodec, variables)))
    network = {"name": "unet", "channels": 8, "blocks": 1, "modes": MODES}
    model = AnyOrderModel.build(encoding, [Bernoulli() for _ in variables], network, Random(), seed=0)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator))
    return model


def answer(model: AnyOrderModel, question: int) -> Tensor:
    """A draw and how probable the model held its values, in a mode or in none."""
    mode = None if question % (MODES + 1) == MODES else question % (MODES + 1)
    generator = torch.Generator().manual_seed(question)
    known = torch.rand(2, 9, generator=generator) < 0.3
    values = torch.randint(2, (2, 9), generator=generator).float()
    view = model.in_mode(mode)
    chain = view.chain(Query(known, ~known), generator)
    with torch.no_grad():
        drawn = draw_in_groups(view, values, chain, (0,), generator)
        return torch.cat([drawn, view.log_prob_beside(drawn, known)], dim=1)


def test_threads_get_what_they_would_get_alone(model: AnyOrderModel) -> None:
    weights = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    questions = range(THREADS * QUESTIONS)
    alone = [answer(model, question) for question in questions]
    with ThreadPoolExecutor(THREADS) as pool:
        together = list(pool.map(lambda question: answer(model, question), questions))
    wrong = [question for question in questions if not torch.equal(alone[question], together[question])]
    assert not wrong
    # Nor is the model left changed.
    assert all(torch.equal(tensor, weights[name]) for name, tensor in model.state_dict().items())
    assert all(torch.equal(answer(model, question), alone[question]) for question in range(2 * MODES))


def test_modes_do_matter_and_none_is_the_model_itself(model: AnyOrderModel) -> None:
    known, values = torch.zeros(1, 9, dtype=torch.bool), torch.zeros(1, 9)
    with torch.no_grad():
        answers = [model.in_mode(mode).log_prob_beside(values, known).numpy() for mode in (None, *range(MODES))]
    assert len({answer.tobytes() for answer in answers}) == MODES + 1
    assert model.in_mode(None) is model
    assert model.in_mode(3).network is not model.network
    assert model.in_mode(3).heads is model.heads
    np.testing.assert_array_equal(model.log_prob_beside(values, known).detach().numpy(), answers[0])
    with pytest.raises(UserError, match="modes 0 to 6"):
        model.in_mode(MODES)
