"""Papers reproduced: per paper its experiments, its figures and its claims."""
