"""A package, so that helpers of one test folder can be imported as `tests.folder.module`."""
