"""Hostile fuzz: models, data, dtypes, frames, rules, targets and bad rows are drawn; the user's own model is asked.

`models` are the kinds of models and how their owner asks them, `data` the tables and the types they come in, `draw`
makes a case of a seed, `check` says what is wrong with its answer. `python -m tests.fuzz --seed 7` runs one case,
`python -m tests.fuzz --rows 20000` runs many.
"""
