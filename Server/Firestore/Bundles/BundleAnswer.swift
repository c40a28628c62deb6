import HearthHost
import HearthConcurrency
import HearthModel
import HearthNetwork

/// The response to a request for a bundle: compressed, uncompressed, or only that nothing has changed.
struct BundleAnswer {
    private let answer: BundleCache.Answer
    private let definition: BundleDefinition

    init(_ answer: BundleCache.Answer, _ definition: BundleDefinition) {
        self.answer = answer
        self.definition = definition
    }

    /// - Parameters:
    ///   - call: used only for its end and its errors.
    ///   - readers: threads that read files.
    func send(_ exchange: HTTPExchange, _ call: RESTCall, _ readers: WorkerGroup) {
        let head = exchange.head
        let isCompressed = Self.acceptsGzip(head.values("accept-encoding"))
        // Each encoding has its own tag: a cache must not mix them.
        let tag = "\"\(answer.made.digest)\(isCompressed ? "-gzip" : "")\""
        var headers = [
            HTTPHeader("etag", tag), HTTPHeader("cache-control", cacheControl), HTTPHeader("vary", "accept-encoding"),
            HTTPHeader("age", String(answer.ageSeconds)),
        ]
        headers += CORS.headers(for: head)
        if Self.lists(head.values("if-none-match"), tag) {
            call.end(.ok)
            return exchange.respond(status: 304, headers: headers, body: [])
        }
        let content = isCompressed ? answer.made.compressed : answer.made.plain
        headers.append(HTTPHeader("content-type", "application/octet-stream"))
        headers.append(HTTPHeader("content-length", String(content.count)))
        if isCompressed { headers.append(HTTPHeader("content-encoding", "gzip")) }
        if head.method == "HEAD" {
            call.end(.ok)
            return exchange.respond(status: 200, headers: headers, body: [])
        }
        exchange.start(status: 200, headers: headers)
        FileSender(content, exchange, readers, for: call.requester) { call.end($0) }.proceed()
    }

    private var cacheControl: String {
        // Without an age a cache revalidates each time, which costs little when nothing has changed.
        if definition.maxAgeSeconds == 0, (definition.sharedMaxAgeSeconds ?? 0) == 0 {
            return definition.isPublic ? "public, no-cache" : "private, no-cache"
        }
        guard definition.isPublic else { return "private, max-age=\(definition.maxAgeSeconds)" }
        let shared = definition.sharedMaxAgeSeconds.map { ", s-maxage=\($0)" } ?? ""
        return "public, max-age=\(definition.maxAgeSeconds)\(shared)"
    }

    // MARK: Headers

    /// Whether `gzip` is among the codings, with a weight other than 0.
    static func acceptsGzip(_ values: [String]) -> Bool {
        for item in items(values) {
            let parts = item.split(separator: ";").map { trimmed($0).lowercased() }
            guard let coding = parts.first, coding == "gzip" || coding == "x-gzip" else { continue }
            let weight = parts.dropFirst().first { $0.hasPrefix("q=") }.flatMap { Double($0.dropFirst(2)) } ?? 1
            return weight > 0
        }
        return false
    }

    /// Whether an entity tag is among those of `if-none-match`. The comparison is the weak one. Source: RFC 9110,
    /// section 13.1.2.
    static func lists(_ values: [String], _ tag: String) -> Bool {
        items(values).contains { item in item == "*" || item == tag || item == "W/\(tag)" }
    }

    private static func items(_ values: [String]) -> [String] {
        values.flatMap { $0.split(separator: ",") }.map { trimmed($0) }.filter { !$0.isEmpty }
    }

    private static func trimmed(_ string: Substring) -> String {
        var string = string.drop { $0 == " " || $0 == "\t" }
        while string.last == " " || string.last == "\t" { string.removeLast() }
        return String(string)
    }
}
