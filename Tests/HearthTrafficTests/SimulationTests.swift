import HearthTestSupport
import HearthTraffic
import Testing

/// Short runs; `hearth-traffic simulate` has the long ones.
@Suite struct SimulationTests {
    @Test(arguments: TestRun.numbers(24))
    func everyAnswerIsWholeAndInOrder(seed: UInt64) throws {
        // A trap ends the process: the seed is the last that begins.
        let counts = try TrafficSimulation(Choices(seed: seed)).run(steps: 300)
        #expect(counts.steps >= 300)
    }

    /// What a run of the program has found:
    /// 139: the rest of a request was not read once its answer had ended while its handler had paused reading.
    @Test(arguments: [139 as UInt64])
    func whatWasFoundStaysMended(seed: UInt64) throws {
        let counts = try TrafficSimulation(Choices(seed: seed)).run(steps: 300)
        #expect(!counts.whole.isEmpty)
    }

    @Test func aRunInWhichAProtocolDoesNothingFails() throws {
        let failure = #expect(throws: TrafficFailure.self) {
            try TrafficEpisodes.run(from: 1, kinds: [.http1], eachWithin: 300) { $0.steps >= 300 }
        }
        #expect(failure?.description == "nothing was done over HTTP/2, gRPC, WebSocket")
    }

    @Test func anEpisodeCanBeRepeated() throws {
        let first = try TrafficSimulation(Choices(seed: 77)).run(steps: 200)
        let second = try TrafficSimulation(Choices(seed: 77)).run(steps: 200)
        #expect(first == second && !first.whole.isEmpty)
    }
}
