"""Runs with real hosts, as `segue-lab` records them."""
