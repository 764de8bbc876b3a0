"""What two runs of one version say about noise: the tightest file under which they are equal."""
