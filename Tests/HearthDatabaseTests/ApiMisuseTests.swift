import Foundation
import HearthApp
import Testing

@testable import HearthDatabase

/// Calls that violate the API's rules end the program with a message. The checks are tested by internal variants that
/// throw; these tests show that the public calls use them.
struct ApiMisuseTests {
    private func expect(_ result: ExitTest.Result?, _ message: String) {
        let string = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
        #expect(string.contains("FirebaseDatabase: "), "\(string)")
        #expect(string.contains(message), "\(string)")
    }

    @Test func value() async {
        expect(
            await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
                let root = try ApiBench().database.reference()
                plainly { root.child("a").setValue(["x": Date()]) }
            }, "setValue got a Date, which can't be stored")
    }

    @Test func nanIsInvalid() async {
        expect(
            await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
                let root = try ApiBench().database.reference()
                plainly { root.updateChildValues(["a/b": Double.nan]) }
            }, "updateChildValues got nan, which can't be stored, at /a/b.")
    }

    @Test func path() async {
        expect(
            await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
                _ = try ApiBench().database.reference(withPath: "a.b")
            }, "reference(withPath:) got the key \"a.b\".")
    }

    @Test func infoIsReadOnly() async {
        expect(
            await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
                let info = try ApiBench().database.reference(withPath: ".info/connected")
                plainly { info.setValue(true) }
            }, "can't write to /.info/connected")
    }

    @Test func query() async {
        expect(
            await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
                _ = try ApiBench().database.reference().queryLimited(toFirst: 0)
            }, "needs a limit from 1 to")
    }

    @Test func lateConfiguration() async {
        expect(
            await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
                let database = try ApiBench().database
                _ = database.reference()
                database.isPersistenceEnabled = true
            }, "isPersistenceEnabled must be set before any other use")
    }

    @Test func lateEmulator() async {
        expect(
            await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
                let database = try ApiBench().database
                _ = database.reference()
                database.useEmulator(withHost: "localhost", port: 9000)
            }, "useEmulator() must be set before any other use")
    }

    @Test func cacheSize() async {
        expect(
            await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
                try ApiBench().database.persistenceCacheSizeBytes = 1_000
            }, "persistenceCacheSizeBytes must be from 1048576 to 104857600")
    }

    @Test func otherHost() async {
        expect(
            await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
                _ = try ApiBench().database.reference(fromURL: "https://other.firebaseio.com/a")
            }, "is not of this database")
    }

    @Test func transactionsValue() async {
        expect(
            await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
                let bench = try ApiBench()
                plainly {
                    bench.database.reference().runTransactionBlock { data in
                        data.value = [1: 2]
                        return .success(withValue: data)
                    }
                }
                await bench.settle()
            }, "MutableData.value got a dictionary with a key that is not a string")
    }

    @Test func uselessObjects() async {
        expect(
            await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
                plainly { DatabaseReference().setValue(1) }
            }, "made by init()")
    }

    @Test func unconfiguredApp() async {
        expect(
            await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
                _ = Database.database()
            }, "call FirebaseApp.configure() before using Database")
    }
}
