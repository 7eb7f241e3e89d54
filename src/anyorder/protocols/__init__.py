"""In what order the variables of a question are answered: one protocol per file."""

from anyorder.protocols.any_evidence import AnyEvidence
from anyorder.protocols.base import Protocol
from anyorder.protocols.canonical import Canonical
from anyorder.protocols.hashed import Hashed
from anyorder.protocols.pixelwise import Pixelwise
from anyorder.protocols.random import Random
from anyorder.support.registry import Registry

protocols: Registry[Protocol] = Registry("anyorder.protocols", Protocol, "protocol")

__all__ = ["AnyEvidence", "Canonical", "Hashed", "Pixelwise", "Protocol", "Random", "protocols"]
