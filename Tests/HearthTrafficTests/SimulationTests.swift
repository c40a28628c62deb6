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

    @Test func anEpisodeCanBeRepeated() throws {
        let first = try TrafficSimulation(Choices(seed: 77)).run(steps: 200)
        let second = try TrafficSimulation(Choices(seed: 77)).run(steps: 200)
        #expect(first == second && first.completed > 0)
    }
}
