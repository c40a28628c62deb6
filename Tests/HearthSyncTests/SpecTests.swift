import Foundation
import Testing

/// The reference SDKs' scripted tests of the sync engine: see `Tests/Vectors/sync-spec`.
///
/// `SYNC_SPEC_DIR` names another folder with them.
@Suite("Sync spec tests")
struct SpecTests {
    static let files = [
        "bundle", "collection", "existence_filter", "garbage_collection", "index", "limbo", "limit", "listen",
        "listen_source", "offline", "orderby", "persistence", "query", "recovery", "remote_store", "resume_token",
        "write",
    ].map { $0 + "_spec_test.json" }

    /// The tests of one file; a missing file is an error.
    static func tests(_ file: String) throws -> [(name: String, test: SpecRunner.Object)] {
        let url = Conformance.folder("sync-spec", environment: "SYNC_SPEC_DIR").appending(path: file)
        let json = try JSONSerialization.jsonObject(with: Data(contentsOf: url))
        guard let object = json as? [String: SpecRunner.Object] else {
            throw SpecFailure("\(file) is not an object of tests.")
        }
        return object.sorted { $0.key < $1.key }.map { (name: $0.key, test: $0.value) }
    }

    private static func tags(_ test: SpecRunner.Object) -> Set<String> { Set(test["tags"] as? [String] ?? []) }

    /// The reason why a test is not run on a cache; nil when it is run.
    static func reasonToLeaveOut(_ tags: Set<String>, _ cache: SpecCache) -> String? {
        for tag in ["multi-client", "no-ios", "benchmark"] where tags.contains(tag) { return tag }
        if cache == .memory, tags.contains("durable-persistence") { return "durable-persistence" }
        if cache == .durable, tags.contains("eager-gc") { return "eager-gc" }
        return nil
    }

    @Test("A file's tests pass on every cache that they apply to", arguments: files, SpecCache.allCases)
    func run(file: String, cache: SpecCache) throws {
        let tests = try Self.tests(file)
        #expect(!tests.isEmpty, "\(file) has no tests")
        var passed = 0
        var failed = 0
        var leftOut: [(name: String, reason: String)] = []
        for (name, test) in tests {
            let tags = Self.tags(test)
            #expect(!tags.contains("exclusive"), "\(name) prevents the others from running")
            if let reason = Self.reasonToLeaveOut(tags, cache) {
                leftOut.append((name, reason))
                continue
            }
            do {
                try SpecRunner(test, cache: cache).run()
                passed += 1
            } catch {
                failed += 1
                Issue.record("\(file), \(cache): \(name): \(error)")
            }
        }
        var report = "\(file), \(cache): \(passed) passed, \(failed) failed, \(leftOut.count) left out"
        for (name, reason) in leftOut { report += "\n    left out (\(reason)): \(name)" }
        print(report)
        #expect(passed + failed + leftOut.count == tests.count)
    }

    @Test("Every file of the folder is run")
    func allFiles() throws {
        let folder = Conformance.folder("sync-spec", environment: "SYNC_SPEC_DIR")
        let present = try FileManager.default.contentsOfDirectory(atPath: folder.path(percentEncoded: false))
            .filter { $0.hasSuffix("_spec_test.json") && $0 != "perf_spec_test.json" }
        #expect(Set(present) == Set(Self.files))
    }

    /// Tests that the mobile SDKs do not pass: limbo lookups in a round with an ordinary target, and failures there.
    @Test("Tests of the web SDK that need no browser pass", arguments: SpecCache.allCases)
    func webOnly(cache: SpecCache) throws {
        var count = 0
        for file in ["limbo_spec_test.json", "remote_store_spec_test.json"] {
            for (name, test) in try Self.tests(file) {
                let tags = Self.tags(test)
                guard tags.contains("no-ios"), !tags.contains("multi-client") else { continue }
                if Self.reasonToLeaveOut(tags.subtracting(["no-ios"]), cache) != nil { continue }
                count += 1
                do { try SpecRunner(test, cache: cache).run() } catch {
                    Issue.record("\(file), \(cache): \(name): \(error)")
                }
            }
        }
        print("Web only, \(cache): \(count) run")
        #expect(count > 0)
    }
}
