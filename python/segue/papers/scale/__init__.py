"""How many mobile hosts a home agent and a location manager bear: no paper has it, and it is run as theirs are."""
