"""A covariance that comes out of a file must be one: every conditional of it has to be computable."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from anyorder.errors import UserError
from anyorder.heads import Gaussian
from anyorder.model import layout_of
from anyorder.networks import GaussianNetwork, ResidualMLP
from anyorder.networks.base import Network
from anyorder.variables.schema import Kind, Schema, Variable

WRONG = {
    "negative": torch.tensor([[1.0, 0.0], [0.0, -1.0]]),
    "zero": torch.zeros(2, 2),
    "too dependent": torch.tensor([[1.0, 2.0], [2.0, 1.0]]),
    "singular": torch.ones(2, 2),
    "lopsided": torch.tensor([[1.0, 0.5], [0.0, 1.0]]),
}


def networks() -> list[Network]:
    schema = Schema(tuple(Variable(name, Kind.CONTINUOUS) for name in "ab"))
    layout = layout_of(schema, [Gaussian(), Gaussian()])
    return [GaussianNetwork(layout), ResidualMLP(layout, width=4, blocks=1, expert=True)]


@pytest.mark.parametrize("covariance", WRONG.values(), ids=WRONG)
@pytest.mark.parametrize("network", networks(), ids=lambda network: network.name)
def test_what_is_no_covariance_is_refused(network: Network, covariance: Tensor) -> None:
    with pytest.raises(UserError, match="symmetric and positive definite"):
        network.load_state_dict({**network.state_dict(), "covariance": covariance.double()})


@pytest.mark.parametrize("network", networks(), ids=lambda network: network.name)
@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_units_do_not_matter(network: Network, scale: float) -> None:
    covariance = torch.tensor([[1.0, 0.99 * scale], [0.99 * scale, scale**2]], dtype=torch.float64)
    network.load_state_dict({**network.state_dict(), "covariance": covariance})
    assert torch.equal(network.get_buffer("covariance"), covariance)
