import HearthEvents
import HearthModel
import HearthTestSupport
import Testing

@testable import HearthEvents

struct EventPatternTests {
    @Test(arguments: [
        ("users/{u}", "users/a", true), ("users/{u}", "users/a/posts/b", false), ("/users/{u}", "users/a", true),
        ("users/{u=**}", "users/a", true), ("users/{u=**}", "users/a/posts/b", true),
        ("users/a/**", "users/a", true), ("{all=**}", "x/y/z/w", true), ("**", "a/b", true),
        ("a/pre*", "a/pre", true), ("a/pre*", "a/prefix", true), ("a/pre*", "a/pr", false),
        ("a/*post", "a/post", true), ("a/p*t", "a/pt", true), ("a/p*t", "a/post", true), ("a/aba*aba", "a/aba", false),
        ("a/{x=pre*}", "a/pre1", true), ("a/{x=*post}", "a/1post", true), ("a/{x=lit}", "a/lit", true),
        ("a.b/c+(d)", "a.b/c+(d)", true), ("a.b/c", "axb/c", false), ("é/b", "é/b", true), ("é/b", "e\u{301}/b", false),
        ("a/{x=**}/b/*", "a/b/c", true), ("a/**/b/*", "a/1/2/b/c", true), ("a/**/b/*", "a/1/2/b", false),
    ])
    func matches(pattern: String, path: String, isMatch: Bool) throws {
        #expect(try EventPattern(pattern, of: .documents).matches(EventPath(path)) == isMatch)
    }

    @Test(arguments: [
        ("users/{u}", "users/a", "u=a"), ("users/{u=**}", "users/a/posts/b", "u=a/posts/b"),
        ("users/{u}/{rest=**}", "users/a", "u=a rest="), ("a/{m=**}/b/{c=p*}", "a/1/2/b/pc", "m=1/2 c=pc"),
        ("{all=**}/{last}", "a/b/c/d", "all=a/b/c last=d"),
    ])
    func captures(pattern: String, path: String, expected: String) throws {
        let pattern = try EventPattern(pattern, of: .documents)
        let path = EventPath(path)
        #expect(pattern.matches(path))
        #expect(pattern.captures(path).map { "\($0.name)=\($0.value)" }.joined(separator: " ") == expected)
    }

    @Test(arguments: [
        ("", "has an empty segment"), ("a//b", "has an empty segment"), ("a/b/", "has an empty segment"),
        ("a/*b*", "has two stars in a segment"), ("a/***", "has two stars in a segment"),
        ("**/a/{x=**}", "has more than one **"), ("{a}/{a}", "has two captures with the name a"),
        ("a/..", "has the segment .."), ("a/{x", "has a capture that is not closed within its segment: {x"),
        ("a/{}", "has a capture without a name: {}"), ("a/{=b*}", "has a capture without a name: {=b*}"),
        ("a/{x=}", "has a capture of nothing: {x=}"),
        ("a/b{x}", "has a brace that is not the beginning or the end of a segment"),
        ("a/b/c", "is one of collections: a document's path has an even number of segments"),
    ])
    func refuses(pattern: String, fault: String) {
        #expect(throws: Status.invalidArgument("The pattern \"\(pattern)\" \(fault).")) {
            try EventPattern(pattern, of: .documents)
        }
    }

    @Test func theRealtimeDatabaseHasNoPatternsOfManySegments() throws {
        #expect(throws: Status.self) { try EventPattern("a/**", of: .locations) }
        #expect(try EventPattern("a/{b}/c", of: .locations).matches(EventPath("a/x/c")))
    }

    /// Patterns and paths of few words, compared with a matcher that tries every way.
    @Test(arguments: 0..<8) func matchesAsANaiveMatcherDoes(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let words = ["a", "ab", "abc", "b", "*", "a*", "*c", "a*c", "**", "{x}", "{y=a*}", "{z=**}"]
        for _ in 0..<2000 {
            let parts = (0..<Int.random(in: 1...5, using: &random)).map { _ in words.randomElement(using: &random)! }
            guard let pattern = try? EventPattern(parts.joined(separator: "/"), of: .documents) else { continue }
            let path = (0..<Int.random(in: 1...6, using: &random)).map { _ in
                ["a", "ab", "abc", "b", "c", "ac"].randomElement(using: &random)!
            }
            #expect(
                pattern.matches(EventPath(path.joined(separator: "/"))) == naive(parts[...], path[...]),
                "\(pattern.string) \(path)")
        }
    }

    private func naive(_ pattern: ArraySlice<String>, _ path: ArraySlice<String>) -> Bool {
        guard var first = pattern.first else { return path.isEmpty }
        if first.hasPrefix("{") {
            first = String(first.dropFirst().dropLast())
            first = first.contains("=") ? String(first.split(separator: "=")[1]) : "*"
        }
        if first == "**" {
            return (0...path.count).contains { naive(pattern.dropFirst(), path.dropFirst($0)) }
        }
        guard let segment = path.first, glob(Array(first.utf8)[...], Array(segment.utf8)[...]) else { return false }
        return naive(pattern.dropFirst(), path.dropFirst())
    }

    private func glob(_ pattern: ArraySlice<UInt8>, _ bytes: ArraySlice<UInt8>) -> Bool {
        guard let first = pattern.first else { return bytes.isEmpty }
        if first == UInt8(ascii: "*") {
            return (0...bytes.count).contains { glob(pattern.dropFirst(), bytes.dropFirst($0)) }
        }
        return bytes.first == first && glob(pattern.dropFirst(), bytes.dropFirst())
    }

    @Test(arguments: 0..<4) func theIndexFindsWhatMatches(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let words = ["a", "b", "c", "{x}", "b*", "**"]
        var patterns: [EventPattern] = []
        var index = PatternIndex<Int>()
        while patterns.count < 200 {
            let parts = (0..<Int.random(in: 1...4, using: &random)).map { _ in words.randomElement(using: &random)! }
            guard let pattern = try? EventPattern(parts.joined(separator: "/"), of: .documents) else { continue }
            index.insert(patterns.count, at: pattern)
            patterns.append(pattern)
        }
        for _ in 0..<500 {
            let parts = (0..<Int.random(in: 1...5, using: &random)).map { _ in
                ["a", "b", "c", "d", "bc"].randomElement(using: &random)!
            }
            let path = EventPath(parts.joined(separator: "/"))
            var found: [Int] = []
            index.forEach(path) { found.append($0) }
            #expect(found.sorted() == patterns.indices.filter { patterns[$0].matches(path) })
        }
    }

    @Test func disjointPatternsAreNotTriedOneByOne() throws {
        var index = PatternIndex<Int>()
        for number in 0..<500 { index.insert(number, at: try EventPattern("c\(number)/{id}", of: .documents)) }
        #expect(index.comparisons(EventPath("c77/x")) == 1)
    }
}
