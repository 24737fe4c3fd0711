"""A Slurm cluster as a place, from its login node or over OpenSSH."""
