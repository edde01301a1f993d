"""How solutions are drawn: Gumbel maths, the trie, rounds of expansion, the samplers. Knows no problem and no network."""
