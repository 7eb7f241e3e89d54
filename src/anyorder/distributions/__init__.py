"""One-dimensional distributions: the contract, and what can be made of any of them."""
