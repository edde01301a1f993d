"""What our kits bring along, as tables by problem."""

from __future__ import annotations

from gumbeldore.kits.registry import BUILT_IN, kit_named

KITS = {name: kit_named(name) for name in BUILT_IN}
KINDS = {name: kit.instances for name, kit in KITS.items() if kit.instances}
RECIPES = {name: kit.generator for name, kit in KITS.items() if kit.instances}
STANDARD = {name: kit.standard for name, kit in KITS.items() if kit.standard}
SOLVERS = {name: kit.experts for name, kit in KITS.items() if kit.experts}
