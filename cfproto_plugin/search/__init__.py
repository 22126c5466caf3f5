"""The search for counterfactuals: NumPy only, batched over rows.

solve        the driver: search, refine, fall back, confirm
task         what is asked            judge       cost, margin and validity of points
guide        what leads the search    plan        method and weights settled for the models at hand
model        the classifier, counted  targets     which classes a counterfactual may have
candidates   points on their way      incumbent   the best point of every row; the driver alone writes it
clock        deadline and progress    tuning      constants of the search
portions     many lines, a thousand or so at a time
lookup       points and quantiles of the training rows
how          the record of how a counterfactual was found
objective/   pure numerics            methods/    ways to a candidate            refine/   from candidate to answer
"""
