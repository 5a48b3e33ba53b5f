"""Bootstrap and curator: peers with a role, as machines with the same contract as protocols."""
