import HearthToolSupport

// Closures in this file are bound to the main actor and trap on other threads, so the file only names a function.
ToolProcess.run(named: "hearth-bench", Bench.run)
