import Glibc
import HearthNetwork
import HearthToolSupport
import HearthTraffic

/// The command line.
enum TrafficProgram {
    static let usage = """
        hearth-traffic: random traffic with a model that knows every answer

          hearth-traffic simulate [--seed N] [--steps N] [--seconds N] [--episodes N]
                                                   the network engine in this process, in virtual time

        It ends with 0 when every answer came whole and in order and the server held nothing at the end.
        """

    static func run(_ words: [String]) throws(ToolFailure) {
        guard let command = words.first else { throw .usage(usage) }
        let rest = Array(words.dropFirst())
        switch command {
        case "simulate": try simulate(rest)
        case "--help", "help": Output.line(usage)
        default: throw .usage(usage)
        }
    }

    private static func simulate(_ words: [String]) throws(ToolFailure) {
        let options = try ParsedOptions(
            words,
            options: [
                Option("seed", "N", "The seed of the first episode."),
                Option("steps", "N", "How many steps."),
                Option("seconds", "N", "How long, instead of a number of steps."),
                Option("episodes", "N", "How many episodes; 1 repeats the one of a seed."),
            ])
        let seed = UInt64(try options.integer("seed", 0...Int.max, default: Int.random(in: 0..<1 << 48)))
        let seconds = try options.integer("seconds", 0...1 << 30, default: 0)
        let steps = try options.integer("steps", 1...Int.max, default: seconds > 0 ? .max : 100_000)
        let end = seconds > 0 ? EventLoop.monotonicNanoseconds() + UInt64(seconds) * 1_000_000_000 : .max
        let episodesMax = try options.integer("episodes", 1...Int.max, default: .max)
        CrashNote.install()
        Output.line("seed \(seed)")
        var episodes = 0
        var reportedSteps = 0
        var lastSeed = seed
        let began = EventLoop.monotonicNanoseconds()
        func willBegin(_ seed: UInt64) {
            lastSeed = seed
            CrashNote.set(seed)
        }
        do {
            let counts = try TrafficEpisodes.run(from: seed, willBegin: willBegin) { counts in
                if counts.steps - reportedSteps >= 500_000 {
                    reportedSteps = counts.steps
                    Output.line(description(counts))
                }
                defer { episodes += 1 }
                return counts.steps >= steps || episodes >= episodesMax || EventLoop.monotonicNanoseconds() >= end
            }
            let milliseconds = Int((EventLoop.monotonicNanoseconds() - began) / 1_000_000)
            Output.line(description(counts))
            Output.line("seeds \(seed) to \(lastSeed), \(counts.steps * 1_000 / max(1, milliseconds)) steps a second")
        } catch { throw ToolFailure(.failed, "\(error)") }
    }

    static func description(_ counts: TrafficSimulation.Counts) -> String {
        let whole = Exchange.Carrier.allCases.map { "\(counts.whole[$0, default: 0]) over \($0.rawValue)" }
        return "\(counts.steps) steps, whole: \(whole.joined(separator: ", ")); "
            + "\(counts.failed) failed as they should, \(counts.cancelled) cancelled, \(counts.bytes >> 20) MiB"
    }
}
