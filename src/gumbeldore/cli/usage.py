"""Which commands there are, and help before a problem is known. It imports nothing heavy."""

from __future__ import annotations

from gumbeldore.kits.names import problem_names

OVERVIEW = """gumbeldore: neural solvers for combinatorial problems, trained without experts

  solve FILE...       solve your files: .tsp, .vrp, job shops, points, arrays
  solve PROBLEM       ... or random instances of a problem
  train PROBLEM       train by self-improvement; a run lives in a folder
  imitate PROBLEM     train on the solutions of a solver instead
  evaluate PROBLEM    compare policies, samplers and baselines, with intervals
  status FOLDER...    where runs stand: phase, rate, time left, memory, curves
  report FOLDER...    one page of HTML about runs and evaluations
  new NAME            write a problem of your own: a kit that works, to change
  check PROBLEM       test that a problem keeps the contract
  generate PROBLEM    write random instances, or a standard test set
  label PROBLEM       solve instances with PyVRP, HGS, CP-SAT or local search
  policies            the trained policies that ship, and what they reach
  info FILE           what a policy says about itself
  import FILE         convert a checkpoint or data of the method's public code
  reproduce [WHAT]    the paper's tables and figures again, at three scales
  demo                train on TSP-20 from scratch and compare samplers

Start with:
  gumbeldore solve berlin52.tsp ft10.txt --time-limit 20
  gumbeldore train tsp --folder runs/first
  gumbeldore train tsp --folder runs/first --resume
  gumbeldore solve tsp --policy runs/first/policy.safetensors --cities 20

`gumbeldore COMMAND --help` and `gumbeldore COMMAND PROBLEM --help` list options;
`--debug` shows the traceback where a kit of your own raises an error.
`gumbeldore train --help` lists the problems; one of your own is file.py:KIT or
package.module:KIT (naming a file executes it).
"""

_SOLVE = """Usage: gumbeldore solve FILE... | FOLDER [options]     # TSPLIB, CVRPLIB, job shops, points, .npz: guessed
       gumbeldore solve PROBLEM [FILE...] [options]  # random instances, or files of it

`gumbeldore solve FILE --help` and `gumbeldore solve PROBLEM --help` list the options.
Problems: {problems},
or file.py:KIT, which executes that file."""

_OTHERS = """Usage: gumbeldore {command} PROBLEM [options]

`gumbeldore {command} PROBLEM --help` lists its options.
Problems: {problems},
or file.py:KIT, which executes that file."""

WITH_PROBLEM = ("train", "imitate", "solve", "evaluate", "generate", "label", "check")
"""Commands whose options depend on the problem."""

COMMANDS = ("demo", *WITH_PROBLEM, "new", "status", "report", "import", "policies", "info", "reproduce")
"""Each is a file of this package with a function `command(arguments)`, imported when it is called."""


def usage(command: str) -> str:
    """How a command is called."""
    return (_SOLVE if command == "solve" else _OTHERS).format(command=command, problems=", ".join(problem_names()))
