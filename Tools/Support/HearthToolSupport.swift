// HearthToolSupport: the frame of the package's programs. Begin at `ToolCommand`, one command of a program, and
// `ToolProcess`, which runs it: options (`OptionParser`), output, signals, exit codes (`ToolFailure`).
