import HearthToolSupport

ToolProcess.run(named: "hearth-traffic", TrafficProgram.run)
