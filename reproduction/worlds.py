"""How methods fare in other worlds: studies/worlds.yaml."""

from reproduction.study import Study

worlds = Study("worlds")
