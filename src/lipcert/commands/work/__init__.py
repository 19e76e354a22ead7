"""What commands do: one file per command that is more than a call. Heavy imports are at home here."""
