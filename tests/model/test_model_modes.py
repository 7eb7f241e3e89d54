"""One picture model in different masking modes: each is a view, and none of them changes the model."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from anyorder.errors import UserError
from anyorder.heads import Bernoulli
from anyorder.model import AnyOrderModel
from anyorder.protocols import Random
from anyorder.variables.codecs import LevelCodec
from anyorder.variables.encoding import Encoding
from anyorder.variables.schema import Kind, Schema, Variable

MODES = 7


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
