ServeCommand.run(Array(CommandLine.arguments.dropFirst()))
