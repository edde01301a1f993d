"""Files in, files out: instances, solutions, weights, and the files of the public code."""
