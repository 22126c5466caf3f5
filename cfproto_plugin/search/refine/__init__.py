"""From candidate to answer: candidates in, candidates out. What is returned is confirmed by the model itself."""
