"""Bounds and proofs for tree models: how far an answer is from the best possible, by mixed-integer programs.

supported  which models and tables proofs are for
choices    what every column of a row can become, as far as the trees can tell values apart, and what it costs
leaves     which leaves of the trees these values can reach
target     the classes that are asked for, as linear conditions on the scores of the trees
related    linear relations between columns, in a program
program    choices, leaves and conditions as a mixed-integer program; forms: its linear forms
solver     programs by HiGHS; quiet: without what it prints
prove      one row: programs until its answer is proved, or until the time is over
known      points that the model itself confirmed, which no program may contradict
certify    the rows of a task: bounds for their answers, and better answers
"""
