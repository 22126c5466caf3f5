"""Ways to a candidate: the closed-form path, the path of an encoder, the paper's iteration, the fallback, the beam."""
