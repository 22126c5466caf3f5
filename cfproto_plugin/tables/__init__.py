"""The user's columns, the table of numbers and codes made of them, the space of the search, and the rules."""
