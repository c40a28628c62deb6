import HearthConcurrency
import HearthEngine
import HearthEvents
import HearthHost
import HearthModel
import HearthTestSupport
import HearthTree
import Testing

@testable import HearthTreeStorage
@testable import HearthTriggers

/// One made-up event of the Realtime Database, sent for an administrator.
struct TreeTriggerTestTests {
    /// A service with the namespace `ns`, and a trigger `t` that is paused.
    private final class Bench: Sendable {
        let service: TriggerService
        let database: TreeDatabase
        let owner = Owner()

        init(_ definition: TriggerDefinition, _ namespace: String = "ns") throws {
            var configuration = TriggerService.Configuration()
            configuration.definitions = [definition]
            service = try TriggerService(configuration)
            database = try TreeDatabase(name: namespace, store: MemoryStore(), clock: SystemClock())
            let outcome = Promise<TreeOutcome>()
            let node = tree(#"{"a": {"x": 1, "y": [1, 2]}, "b": "leaf"}"#)
            database.submit(
                TreeWrite(changes: [TreeChange(path: "n", node: node)], nowMilliseconds: 0)
            ) { outcome.give($0) }
            _ = outcome.wait()
            try service.opened(database, of: owner)
            service.start(
                TriggerDirectory(
                    names: { [] }, exists: { _ in false }, open: { _, done in done(.failure(.notFound(""))) },
                    namespaces: { [namespace] }))
        }

        func test(_ path: String, _ namespace: String? = nil) throws(Status) -> ConfigurationValue {
            let result = Promise<TriggerService.TestResult>()
            try service.test("t", .location(path, namespace: namespace), project: "p") { result.give($0) }
            return try ConfigurationValue(parsing: result.wait().json, file: "answer")
        }

        func stop() {
            service.stop()
            database.close()
        }
    }

    private func header(_ name: String, _ message: ConfigurationValue?) throws -> String? {
        for header in try message?.member("headers")?.elements() ?? [] {
            if try header.member("name")?.string() == name { return try header.member("value")?.string() }
        }
        return nil
    }

    @Test(arguments: [
        ("created", "n/a", #""data":null,"delta":{"x":1,"y":[1,2]}}"#),
        ("updated", "/n/a", #""data":{"x":1,"y":{"0":1,"1":2}},"delta":{}}"#),
        ("written", "n/b", #""data":"leaf","delta":"leaf"}"#), ("deleted", "n/b", #""data":"leaf","delta":null}"#),
    ])
    func theEventHasTheValueOfTheLocation(kind: String, path: String, data: String) throws {
        let endpoint = ScriptedEndpoint { connection, _ in
            connection.write("HTTP/1.1 204 Yes\r\n\r\n")
            return true
        }
        let bench = try Bench(
            try treeDefinition(
                "t", "n/{id}", "google.firebase.database.ref.v1.\(kind)", url: endpoint.url, more: ",\"paused\":true"))
        defer { bench.stop() }
        let value = try bench.test(path, "ns")
        let request = try value.member("request")
        #expect(try request?.member("body")?.string().hasSuffix(data) == true, "\(data)")
        #expect(try header("x-hearth-test", request) == "true" && header("ce-instance", request) == "ns")
        #expect(try header("ce-type", request) == "google.firebase.database.ref.v1.\(kind)")
        #expect(try header("ce-ref", request) == (path == "/n/a" ? "n/a" : path))
        #expect(try value.member("event")?.member("id")?.string() == header("ce-id", request))
        #expect(try value.member("answer")?.member("acknowledged")?.boolean() == true)
        #expect(bench.service.pending("t") == 0)
    }

    /// The only namespace that the trigger is for, or the default one.
    @Test(arguments: [("ns", ",\"instance\":\"ns\""), ("p-default-rtdb", "")])
    func theNamespaceMayBeLeftOut(namespace: String, more: String) throws {
        let bench = try Bench(try treeDefinition("t", "n/{id}", more: ",\"paused\":true" + more), namespace)
        defer { bench.stop() }
        #expect(try header("ce-instance", bench.test("n/a").member("request")) == namespace)
    }

    @Test(arguments: [
        ("n/none", "ns", Status.Code.notFound, "there is no value"), ("n/a", "nsother", .notFound, "there is no value"),
        ("n/a", "other", .invalidArgument, "instance: "), ("n", "ns", .invalidArgument, "does not match"),
        ("", "ns", .invalidArgument, "does not match"), ("n/a.b", "ns", .invalidArgument, "ref: "),
    ])
    func refusals(path: String, namespace: String, code: Status.Code, part: String) throws {
        let bench = try Bench(try treeDefinition("t", "n/{id}", more: #","paused":true,"instance":"ns*""#))
        defer { bench.stop() }
        do throws(Status) {
            _ = try bench.test(path, namespace)
            Issue.record("\(path) was taken")
        } catch {
            #expect(error.code == code && error.message.contains(part), "\(error)")
        }
    }

    @Test func aTestIsOfTheProductOfTheTrigger() throws {
        let bench = try Bench(try treeDefinition("t", "n/{id}"))
        defer { bench.stop() }
        do throws(Status) {
            try bench.service.test("t", .document("c/d"), project: "p") { _ in }
            Issue.record("It was taken.")
        } catch {
            #expect(error.code == .invalidArgument && error.message.contains("expected \"ref\""))
        }
    }
}
