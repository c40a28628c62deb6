import HearthModel
import Testing

@testable import HearthHost

@Suite struct DescriptorSharesTests {
    /// Whatever the limit: stores, files and connections together never need more than there are.
    @Test(arguments: [512, 1_024, 4_096, 20_000, 65_536, 1_000_000])
    func sharesFitIntoTheLimit(descriptorsMax: Int) throws {
        let shares = try DescriptorShares(descriptorsMax: descriptorsMax, loopCount: 2, connectionsMax: 20_000)
        let stores = shares.storesUsedMax * Limits.databaseDescriptorsMax
        #expect(stores + shares.connectionsMax + Limits.descriptorsOwn + 4 <= descriptorsMax)
        #expect(shares.storesUsedMax >= 8 && shares.connectionsMax >= Limits.connectionsLeastMax)
    }

    @Test func connectionsGetTheRest() throws {
        func shares(_ descriptorsMax: Int, connectionsMax: Int = 20_000) throws -> [Int] {
            let shares = try DescriptorShares(
                descriptorsMax: descriptorsMax, loopCount: 2, connectionsMax: connectionsMax)
            return [shares.storesUsedMax, shares.connectionsMax]
        }
        #expect(try shares(1_024) == [26, 270])
        #expect(try shares(20_000) == [263, 13_847])
        #expect(try shares(Limits.descriptorsAdvised) == [1_315, 20_000])
        #expect(try shares(1_048_576) == [4_096, 20_000])
        #expect(try shares(1_048_576, connectionsMax: 5) == [4_096, 5])
    }

    @Test func tooFewAreAnErrorThatNamesTheLimit() {
        let status = #expect(throws: Status.self) {
            try DescriptorShares(descriptorsMax: 256, loopCount: 2, connectionsMax: 20_000)
        }
        #expect(status?.code == .invalidArgument)
        #expect(status?.message.hasPrefix("The process may open 256 files, which leaves 0 for connections") == true)
    }
}
