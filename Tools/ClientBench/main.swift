import Foundation
import HearthFirestore

// hearth-client-bench: measures the Swift client through its public API. All measures except `idle` run without a
// server.
//
//   hearth-client-bench [measure …] [--server HOST:PORT] [--folder FOLDER] [--starts COUNT]
//
// Measures: write, call, index, start, bundle, idle. Default: all, `idle` only with a server.

let options = BenchOptions(Array(CommandLine.arguments.dropFirst()))
do {
    try await ClientBench(options).run()
} catch {
    FileHandle.standardError.write(Data("hearth-client-bench: \(error.localizedDescription)\n".utf8))
    exit(1)
}
exit(0)
