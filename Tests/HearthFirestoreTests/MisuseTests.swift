import Foundation
import Testing

@testable import HearthFirestore

/// Calls that break the API's rules end the program with a message. Other tests check the rules with the throwing
/// forms; these tests check that the public calls use them.
struct MisuseTests {
    private func expectMessage(_ result: ExitTest.Result?, _ message: String) {
        let string = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
        #expect(string.contains(message), "\(string)")
    }

    @Test func data() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let bench = try Bench()
            bench.firestore.document("c/d").setData(["a": [[1]]])
        }
        expectMessage(result, "Nested arrays are not supported (found in field a).")
    }

    @Test func query() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            _ = try Bench().firestore.collection("c").limit(to: 0)
        }
        expectMessage(result, "Limit must be positive")
    }

    @Test func unconfiguredApp() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            _ = Firestore.firestore()
        }
        expectMessage(result, "Please call FirebaseApp.configure() before using Firestore.")
    }

    @Test func useAfterTerminate() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let bench = try Bench()
            try await bench.firestore.terminate()
            bench.firestore.document("c/d").delete(completion: nil)
        }
        expectMessage(result, "The client has already been terminated.")
    }

    @Test func path() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            _ = try Bench().firestore.document("c")
        }
        expectMessage(result, "even number of segments")
    }
}
