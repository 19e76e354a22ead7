"""The bodies of the commands, one file each."""
