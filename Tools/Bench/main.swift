import HearthToolSupport

// Closures written in this file are bound to the main actor and trap on other threads, so only a function is named here.
ToolProcess.run(named: "hearth-bench", Bench.run)
