"""Programs that `segue lab` runs at its hosts, beside those of `segue-lab app`."""
