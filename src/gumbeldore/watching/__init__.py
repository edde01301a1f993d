"""How a run is looked at: the pulse it leaves while it works, its folder as data, curves in a terminal, a page of HTML."""
