import HearthModel
import HearthWire
import Testing

@testable import HearthBundle

struct ReaderConformanceTests {
    @Test func everyCaseLoadsOrIsRefused() throws {
        let cases = try TestData.cases("load.json")
        #expect(cases.count == 51)
        for test in cases {
            let name = test["name"] as? String ?? ""
            let reading = Reading(Array((test["bundle"] as? String ?? "").utf8))
            if test["result"] as? String == "error" {
                let failure = try #require(reading.failure, "\(name) was read")
                #expect(failure.code == .dataLoss || failure.code == .invalidArgument, "\(name): \(failure)")
                continue
            }
            #expect(reading.failure == nil, "\(name)")
            try expectSameState(reading, test, name)
        }
    }

    private func expectSameState(_ reading: Reading, _ test: [String: Any], _ name: String) throws {
        let metadata = try #require(reading.reader.metadata)
        let updates = try #require(test["progress"] as? [[Any]])
        for (expected, progress) in zip(updates.dropLast(), reading.progress) {
            #expect(expected[0] as? Int == Int(progress[0]), "\(name)")
            #expect(expected[1] as? Int == metadata.totalDocuments, "\(name)")
            #expect(expected[2] as? Int == Int(progress[1]), "\(name)")
            #expect(expected[3] as? Int == Int(metadata.totalBytes), "\(name)")
        }
        #expect(updates.count - 1 == reading.progress.count, "\(name)")

        let documents = try #require(test["documents"] as? [String: [String: Any]])
        #expect(Set(reading.documents.map(\.name.path.string)) == Set(documents.keys), "\(name)")
        for document in reading.documents {
            let expected = try #require(documents[document.name.path.string])
            #expect(document.exists == expected["exists"] as? Bool, "\(name)")
            let version = try time(expected["version"])
            #expect(document.version == version, "\(name)")
        }

        let queries = try #require(test["namedQueries"] as? [String: [String: Any]])
        #expect(Set(reading.queries.map(\.name)) == Set(queries.keys), "\(name)")
        for query in reading.queries {
            let expected = try #require(queries[query.name])
            let readTime = try time(expected["readTime"])
            #expect(query.readTime == readTime, "\(name)")
            #expect((query.limitType == .last ? "LAST" : "FIRST") == expected["limitType"] as? String, "\(name)")
            let keys = reading.documents.filter { $0.exists && $0.queries.contains(query.name) }.map(\.name.path.string)
            #expect(Set(keys) == Set(expected["keys"] as? [String] ?? []), "\(name)")
        }
    }

    private func time(_ string: Any?) throws -> Timestamp {
        let instant = try #require(RFC3339.parse(string as? String ?? ""))
        return try #require(Timestamp(seconds: instant.seconds, nanoseconds: Int64(instant.nanoseconds)))
    }

    @Test func refusalsHaveTheirCodes() throws {
        let invalid: Set = [
            "version 2", "second metadata", "document without its metadata", "document does not match its metadata",
            "ends with the metadata of a found document", "found document left out in the middle",
            "missing document with a body", "fewer documents than promised", "more documents than promised",
        ]
        var seen: Set<String> = []
        for test in try TestData.cases("load.json") where test["result"] as? String == "error" {
            let name = test["name"] as? String ?? ""
            let failure = Reading(Array((test["bundle"] as? String ?? "").utf8)).failure
            #expect(failure?.code == (invalid.contains(name) ? .invalidArgument : .dataLoss), "\(name): \(failure!)")
            if invalid.contains(name) { seen.insert(name) }
        }
        #expect(seen == invalid)
    }

    @Test func theWorkedExampleReadsTheSameWhereverItIsCut() throws {
        let bytes = try TestData.bytes("example.bundle")
        let whole = Reading(bytes)
        #expect(whole.failure == nil)
        #expect(whole.progress == [[0, 0], [1, 1092], [2, 1504], [3, 1650]])
        for cut in 0...bytes.count {
            let pieces = Reading(bytes, cuts: [cut])
            #expect(pieces.failure == nil, "cut at \(cut)")
            #expect(pieces.progress == whole.progress, "cut at \(cut)")
            #expect("\(pieces.elements)" == "\(whole.elements)", "cut at \(cut)")
        }
        let single = Reading(bytes, cuts: Array(1..<bytes.count))
        #expect("\(single.elements)" == "\(whole.elements)")
    }

    @Test func noPrefixOfTheWorkedExampleIsABundle() throws {
        let bytes = try TestData.bytes("example.bundle")
        for count in 0..<bytes.count {
            let failure = try #require(Reading(Array(bytes.prefix(count))).failure, "\(count) bytes were read")
            // Between two elements the bytes are complete, but documents are missing.
            let isKnown = failure.code == .dataLoss || ["documents", "ends"].contains { failure.message.contains($0) }
            #expect(isKnown, "\(count): \(failure)")
        }
    }
}

@Suite struct ReaderTests {
    @Test func aFalseLengthCostsNoMemory() throws {
        var framing = BundleFraming()
        framing.feed(Array("999999999999999{".utf8))
        #expect(throws: Status.self) { try framing.next() }

        var patient = BundleFraming()
        patient.feed(Array("\(Limits.bundleElementSizeBytesMax){\"a\"".utf8))
        #expect(try patient.next() == nil)
        #expect(patient.buffer.capacity < 1000)
        patient.finish()
        #expect(throws: Status.self) { try patient.next() }
    }

    @Test(arguments: ["x", "12 {}", "-1{}", "+1{}", "1.5{}", "0x1{}", "1234567890123456{}", " 2{}", "\n", "{}", "é{}"])
    func lengthsAreDigits(_ string: String) throws {
        let failure = try #require(Reading(Array(string.utf8)).failure)
        #expect(failure.code == .dataLoss)
    }

    @Test func onlyTheCurrentElementIsBuffered() throws {
        var framing = BundleFraming()
        let element = Array(("1000{" + String(repeating: " ", count: 998) + "}").utf8)
        for number in 0..<1000 {
            framing.feed(element)
            let frame = try framing.next()
            #expect(frame?.offset == Int64(number * element.count))
        }
        #expect(framing.buffer.count <= 2 * element.count)
        #expect(framing.offset == Int64(1000 * element.count))
    }

    @Test func invalidUTF8IsRefused() throws {
        var bytes = bundle(metadata(documents: 0))
        let position = try #require(bytes.firstIndex(of: UInt8(ascii: "x")))
        bytes[position] = 0xff
        let failure = try #require(Reading(bytes).failure)
        #expect(failure.code == .dataLoss)
        #expect(failure.message.contains("UTF-8"))
    }

    @Test func failuresAreRepeated() {
        var reader = BundleReader(database: nil)
        reader.feed(Array("nonsense".utf8))
        #expect(throws: Status.self) { try reader.next() }
        #expect(throws: Status.self) { try reader.next() }
        #expect(!reader.isAtEnd)
    }

    @Test func repeatedDocumentsCountOnce() {
        let reading = Reading(
            bundle(metadata(documents: 1), missing("a/b", queries: #"["one"]"#), missing("a/b", queries: #"["two"]"#)))
        #expect(reading.failure == nil)
        #expect(reading.documents.map(\.isRepeated) == [false, true])
        #expect(reading.reader.documentCount == 1)
    }

    @Test func theFirstNameDecidesTheDatabaseWhenNoneIsGiven() throws {
        let one = Reading(bundle(metadata(documents: 1), missing("a/b")), database: nil)
        #expect(one.reader.database == TestData.database)
        let other = missing("a/c").replacing("test-project", with: "other")
        let failure = Reading(bundle(metadata(documents: 2), missing("a/b"), other), database: nil).failure
        #expect(failure?.code == .dataLoss)
    }

    @Test func referencesStayInTheDatabase() {
        func reading(_ reference: String) -> Status? {
            let map = #"{"mapValue":{"fields":{"r":{"referenceValue":"\#(reference)"}}}}"#
            let value = #"{"a":{"arrayValue":{"values":[\#(map)]}}}"#
            let elements = found("a/b", fields: value)
            return Reading(bundle(metadata(documents: 1), elements[0], elements[1])).failure
        }
        #expect(reading(TestData.root + "/c/d") == nil)
        #expect(reading(TestData.root + "/c")?.code == .dataLoss)
        #expect(reading(TestData.root)?.code == .dataLoss)
        #expect(reading("projects/other/databases/(default)/documents/c/d")?.code == .dataLoss)
        #expect(reading("c/d")?.code == .dataLoss)
    }

    @Test func objectFormsAreAcceptedOnlyInBundles() throws {
        let string = #"{"timestampValue":{"seconds":"7","nanos":5000}}"#
        let elements = found("a/b", fields: #"{"t":\#(string)}"#)
        let reading = Reading(bundle(metadata(documents: 1), elements[0], elements[1]))
        #expect(reading.documents.first?.contents?.fields["t"] == .timestamp(Timestamp(microseconds: 7_000_005)))
        #expect(throws: Status.self) { try CursorMessage(json: #"{"values":[\#(string)]}"#) }
        #expect(throws: Status.self) { try StructuredQueryMessage(json: #"{"limit":{"value":2}}"#) }
        let limit = Array(#"{"limit":{"value":"2"}}"#.utf8)
        let query = try limit.withUnsafeBytes { try StructuredQueryMessage(json: $0, forms: .bundle) }
        #expect(query.limit == 2)
    }

    @Test(
        arguments: [
            #""limit":-1"#, #""findNearest":{}"#, #""offset":1"#, #""select":{}"#, #""unknown":1"#,
            #""orderBy":[{"field":{"fieldPath":"a"},"direction":7}]"#,
            #""where":{"fieldFilter":{"field":{"fieldPath":"a"},"op":"EQUAL"}}"#,
            #""where":{"fieldFilter":{"field":{"fieldPath":"a"},"op":"EQUAL","value":{"referenceValue":"c/d"}}}"#,
            #""startAt":{"values":[{"referenceValue":"projects/other/databases/(default)/documents/c/d"}]}"#,
        ])
    func queriesThatNoClientCanListenToAreRejected(_ member: String) throws {
        func query(_ member: String) -> [UInt8] {
            bundle(
                metadata(documents: 0),
                #"{"namedQuery":{"name":"q","bundledQuery":{"parent":"\#(TestData.root)","structuredQuery":"#
                    + #"{"from":[{"collectionId":"c"}],\#(member)}},"readTime":"2024-05-01T10:00:09Z"}}"#)
        }
        let failure = try #require(Reading(query(member)).failure)
        #expect(failure.code == .dataLoss)
        #expect(Reading(query(#""limit":1"#)).failure == nil)
    }

    @Test func cursorsWithoutValuesAreIgnored() throws {
        let reading = Reading(
            bundle(
                metadata(documents: 0),
                #"{"namedQuery":{"name":"q","bundledQuery":{"parent":"\#(TestData.root)/a/b","structuredQuery":"#
                    + #"{"from":[{"collectionId":"c","allDescendants":true}],"startAt":{"before":true},"limit":3},"#
                    + #""limitType":"LAST"},"readTime":"2024-05-01T10:00:09Z"}}"#))
        let query = try #require(reading.queries.first)
        #expect(query.query.start == nil)
        #expect(query.query.scope == .collectionGroup("c"))
        #expect(query.query.parent.path.string == "a/b")
        #expect(query.query.limit == 3)
        #expect(query.limitType == .last)
    }
}
