pytest_plugins = ["cluster.fixtures"]
