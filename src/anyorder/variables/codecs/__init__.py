"""One codec per variable: cells of a column <-> one column of the model tensor."""

from anyorder.variables.codecs.base import Codec, WarpName
from anyorder.variables.codecs.lattice import LatticeCodec
from anyorder.variables.codecs.level import LevelCodec
from anyorder.variables.codecs.line import LineCodec
from anyorder.variables.codecs.spiked import SpikedCodec

__all__ = ["Codec", "LatticeCodec", "LevelCodec", "LineCodec", "SpikedCodec", "WarpName"]
