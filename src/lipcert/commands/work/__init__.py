"""The work of commands that are more than a call, one file each. Heavy imports belong here."""
