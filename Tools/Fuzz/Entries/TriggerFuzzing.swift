import HearthEvents
import HearthHost
import HearthModel
import HearthTriggers

/// Entry points for fuzzing what administrators say of triggers. A violated invariant traps.
package enum TriggerFuzzing {
    // MARK: Definitions

    /// The member `triggers` of hearth.json: it is refused with a reason, or defines triggers that are within their bounds
    /// and are the same when they are read again from what is stored.
    package static func fuzzDefinitions(_ bytes: [UInt8]) {
        // No file is there: none of those beside the tests is read.
        let file = TriggerFile(path: "/no-such-folder-of-fuzzing/hearth.json", project: "p")
        do throws(Status) {
            let value = try ConfigurationValue(parsing: bytes, file: "f")
            let definitions = try file.definitions(value, source: .api)
            precondition(definitions.count <= TriggerService.countMax, "too many triggers")
            precondition(Set(definitions.map(\.name)).count == definitions.count, "a name twice")
            for definition in definitions { check(definition, file) }
        } catch {
            precondition(!error.message.isEmpty && error.code != .internal, "\(error)")
        }
    }

    private static func check(_ definition: TriggerDefinition, _ file: TriggerFile) {
        precondition(TriggerDefinition.isName(definition.name), "a name that is none")
        let terms = definition.terms
        precondition((1...256).contains(terms.concurrency), "a concurrency out of range")
        precondition((1...604_800).contains(definition.maxAgeSeconds), "an age out of range")
        precondition((1...3_600_000).contains(definition.target.timeoutMilliseconds), "a timeout out of range")
        precondition(
            terms.minBackoffNanoseconds > 0 && terms.minBackoffNanoseconds <= terms.maxBackoffNanoseconds,
            "pauses that are not in order")
        precondition(TriggerURL.fault(of: definition.target.url) == nil, "a URL that is none")
        precondition((definition.pattern.string.isEmpty) == false, "an empty pattern")
        let stored = Array("{\"\(definition.name)\":".utf8) + definition.members + [UInt8(ascii: "}")]
        do throws(Status) {
            let again = try file.definitions(try ConfigurationValue(parsing: stored, file: "f"), source: .api)
            precondition(again == [definition], "what is stored defines another trigger")
        } catch {
            preconditionFailure("what is stored is refused: \(error)")
        }
    }

    // MARK: Patterns

    /// Lines with patterns, and a last one with a path: patterns match, and capture, as a matcher does that tries each way.
    package static func fuzzPatterns(_ bytes: [UInt8]) {
        var lines = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        let path = lines.removeLast()
        for subject in [EventPattern.Subject.documents, .locations] {
            var index = PatternIndex<Int>()
            var expected: Set<Int> = []
            for (number, line) in lines.prefix(64).enumerated() {
                guard let string = String(validating: line, as: UTF8.self) else { continue }
                do throws(Status) {
                    let pattern = try EventPattern(string, of: subject)
                    index.insert(number, at: pattern)
                    if compare(pattern, Array(line), Array(path)) { expected.insert(number) }
                } catch {
                    precondition(error.code == .invalidArgument && !error.message.isEmpty, "\(error)")
                }
            }
            var found: [Int] = []
            index.forEach(EventPath(Array(path))) { found.append($0) }
            precondition(Set(found) == expected && found.count == expected.count, "the index finds others")
        }
    }

    /// - Returns: whether the path matches.
    private static func compare(_ pattern: EventPattern, _ source: [UInt8], _ path: [UInt8]) -> Bool {
        let (eventPath, segments) = (EventPath(path), NaivePattern.split(path))
        let expected = NaivePattern(source).match(segments)
        precondition(pattern.matches(eventPath) == (expected != nil), "\(pattern.string) matches otherwise")
        guard let expected else { return false }
        let captures = pattern.captures(eventPath)
        precondition(captures.count == expected.count, "other captures")
        for (capture, (name, value)) in zip(captures, expected) {
            precondition(Array(capture.name.utf8) == name, "a capture of another name")
            precondition(capture.value == String(decoding: value, as: UTF8.self), "a capture of something else")
        }
        return true
    }
}

/// A pattern that was accepted, matched by trying everything.
private struct NaivePattern {
    private struct Part {
        var name: [UInt8]?
        var glob: [UInt8]
    }

    private var parts: [Part] = []
    private static let star = UInt8(ascii: "*")

    static func split(_ bytes: [UInt8]) -> [[UInt8]] {
        bytes.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false).map { Array($0) }
    }

    init(_ source: [UInt8]) {
        var segments = Self.split(source)
        if segments.count > 1, segments[0].isEmpty { segments.removeFirst() }
        for segment in segments {
            guard segment.first == UInt8(ascii: "{") else {
                parts.append(Part(name: nil, glob: segment))
                continue
            }
            let inner = segment.dropFirst().dropLast()
            let sides = inner.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
            parts.append(Part(name: Array(sides[0]), glob: sides.count > 1 ? Array(sides[1]) : [Self.star]))
        }
    }

    /// The captures; nil when the path does not match.
    func match(_ path: [[UInt8]]) -> [(name: [UInt8], value: [UInt8])]? { match(parts[...], path[...]) }

    private func match(
        _ parts: ArraySlice<Part>, _ path: ArraySlice<[UInt8]>
    ) -> [(name: [UInt8], value: [UInt8])]? {
        guard let part = parts.first else { return path.isEmpty ? [] : nil }
        let counts = part.glob == [Self.star, Self.star] ? 0...path.count : 1...1
        for count in counts where count <= path.count {
            let taken = path.prefix(count)
            if counts == 1...1, !Self.matches(part.glob[...], taken.first.map { $0[...] } ?? []) { return nil }
            guard let rest = match(parts.dropFirst(), path.dropFirst(count)) else { continue }
            let value = Array(taken.joined(separator: [UInt8(ascii: "/")]))
            return (part.name.map { [($0, value)] } ?? []) + rest
        }
        return nil
    }

    private static func matches(_ glob: ArraySlice<UInt8>, _ bytes: ArraySlice<UInt8>) -> Bool {
        guard let first = glob.first else { return bytes.isEmpty }
        if first != star { return bytes.first == first && matches(glob.dropFirst(), bytes.dropFirst()) }
        return (0...bytes.count).contains { matches(glob.dropFirst(), bytes.dropFirst($0)) }
    }
}
