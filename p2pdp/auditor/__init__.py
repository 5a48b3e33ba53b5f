"""The auditor: verify, rebuild the transcript, replay over linear forms, account."""
