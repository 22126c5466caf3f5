"""Ways to a candidate. A method is a generator of `Candidates`.

It reads the live costs of the incumbents (`best`) to leave out points that are not cheaper, and writes nothing: the
driver offers what it yields to the incumbents before the method goes on.
"""
