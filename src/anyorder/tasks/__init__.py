"""What people do with answers: fill, check, find what is odd, measure next, compress."""
