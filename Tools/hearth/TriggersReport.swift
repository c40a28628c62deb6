import HearthHost
import HearthModel
import HearthTriggers

/// What a server says about triggers, for people. What it quotes was written by others: no character of it reaches a
/// terminal that would obey it.
enum TriggersReport {
    // MARK: Triggers

    /// A line for each trigger, and another one for its last error.
    static func list(_ answer: ConfigurationValue) throws(Status) -> String {
        let triggers = try answer.elements(of: "triggers")
        if triggers.isEmpty { return "There are no triggers." }
        var rows = [["NAME", "STATE", "PENDING", "DELIVERED", "FAILED", "DEAD", "EVENT", "PATTERN", "URL"]]
        var errors: [String?] = [nil]
        for trigger in triggers {
            rows.append(
                ["name", "state", "pending", "delivered", "failedAttempts", "deadLetters"].map { trigger.shown($0) }
                    + [event(trigger), pattern(trigger), trigger.shown("url")])
            errors.append(try trigger.member("lastError").map { $0.shownError })
        }
        var widths = [Int](repeating: 0, count: rows[0].count)
        for row in rows { for (index, cell) in row.enumerated() { widths[index] = max(widths[index], cell.count) } }
        var lines: [String] = []
        for (row, error) in zip(rows, errors) {
            let cells = zip(row, widths).map { $0 + String(repeating: " ", count: $1 - $0.count) }
            lines.append(trimmed(cells.joined(separator: "  ")))
            if let error { lines.append("    " + error) }
        }
        return lines.joined(separator: "\n")
    }

    private static func trimmed(_ line: String) -> String {
        var line = line[...]
        while line.last == " " { line = line.dropLast() }
        return String(line)
    }

    /// The end of the type, as `written`. What Firebase's tools register has other members.
    private static func event(_ trigger: ConfigurationValue) -> String {
        let registered = trigger.value("eventTrigger")
        let type = trigger.shown("event", "eventType") + (registered?.shown("eventType") ?? "")
        guard let last = type.split(separator: "/").last else { return "" }
        return String(end(of: ".v1.", in: last).map { last[$0...] } ?? last)
    }

    private static func end(of part: String, in string: Substring) -> Substring.Index? {
        var index = string.startIndex
        while index < string.endIndex {
            if string[index...].hasPrefix(part) { return string.index(index, offsetBy: part.count) }
            index = string.index(after: index)
        }
        return nil
    }

    private static func pattern(_ trigger: ConfigurationValue) -> String {
        if let nested = trigger.value("document")?.value("value") { return nested.shown }
        if let registered = trigger.value("eventTrigger") { return registered.shown("resource") }
        return trigger.shown("document", "ref", "path")
    }

    /// A line for each member.
    static func one(_ trigger: ConfigurationValue) throws(Status) -> String {
        let members = try trigger.members()
        let width = (members.map(\.name.count).max() ?? 0) + 2
        return members.map { member in
            let name = Printable.line(member.name)
            return name + String(repeating: " ", count: max(1, width - name.count))
                + (member.name == "lastError" ? member.value.shownError : member.value.shown)
        }.joined(separator: "\n")
    }

    // MARK: Dead letters

    /// The lines of a page.
    /// - Returns: them, and the id of the last dead letter; nil when the page is empty.
    static func deadLetters(
        _ answer: ConfigurationValue, asJSON: Bool
    ) throws(Status) -> (lines: String, last: String?) {
        var lines: [UInt8] = []
        var last: String?
        for letter in try answer.elements(of: "deadLetters") {
            guard let id = try letter.member("id")?.string() else { throw letter.failure("\"id\" is missing.") }
            last = id
            if asJSON {
                letter.appendJSON(to: &lines)
            } else {
                let attempts = letter.shown("attempts")
                let cells = [
                    Printable.line(id), letter.shown("time"), letter.shown("document"),
                    attempts + (attempts == "1" ? " attempt" : " attempts"),
                    letter.value("lastError")?.shownError ?? "",
                ]
                lines += Array(trimmed(cells.joined(separator: "  ")).utf8)
            }
            lines.append(UInt8(ascii: "\n"))
        }
        return (String(decoding: lines, as: UTF8.self), last)
    }

    // MARK: Tests

    /// Request and answer of a test, as HTTP has them.
    static func test(_ answer: ConfigurationValue) throws(Status) -> String {
        guard let request = try answer.member("request"), let received = try answer.member("answer") else {
            throw answer.failure("\"request\" or \"answer\" is missing.")
        }
        var lines = ["\(request.shown("method")) \(request.shown("url"))"]
        lines += try headers(request) + [""]
        if let body = try body(request) {
            lines.append(body)
        } else if let event = try answer.member("event") {
            lines.append("(\(request.shown("bodyBytes")) bytes of protobuf; as JSON:)")
            lines.append(Printable.string((event.value("data") ?? event).json))
        }
        let status = try received.member("status")
        let isAnswered = status.map { if case .number = $0.content { true } else { false } } ?? false
        let result = (isAnswered ? "HTTP " : "") + received.shown("status")
        lines += ["", "\(result) after \(received.shown("milliseconds")) ms"]
        guard try received.member("headers") != nil else {
            return (lines + [received.shown("message")]).joined(separator: "\n")
        }
        lines += try headers(received)
        let bytes = received.shown("bodyBytes")
        if bytes != "0" { lines += ["", try body(received) ?? "(\(bytes) bytes that are not UTF-8)"] }
        return lines.joined(separator: "\n")
    }

    private static func headers(_ message: ConfigurationValue) throws(Status) -> [String] {
        try message.elements(of: "headers").map { "\($0.shown("name")): \($0.shown("value"))" }
    }

    private static func body(_ message: ConfigurationValue) throws(Status) -> String? {
        guard let body = try message.member("body")?.string() else { return nil }
        let bytes = message.shown("bodyBytes")
        let isCut = "\(body.utf8.count)" != bytes
        return Printable.string(body) + (isCut ? "\n(the first \(body.utf8.count) of \(bytes) bytes)" : "")
    }

    /// Why the endpoint did not acknowledge a test; nil when it did.
    static func failure(_ answer: ConfigurationValue) throws(Status) -> String? {
        guard let received = try answer.member("answer") else { throw answer.failure("\"answer\" is missing.") }
        if try received.member("acknowledged")?.boolean() ?? false { return nil }
        return received.shown("message")
    }
}

extension ConfigurationValue {
    fileprivate func elements(of name: String) throws(Status) -> [ConfigurationValue] {
        guard let member = try member(name) else { throw failure("\"\(name)\" is missing.") }
        return try member.elements()
    }

    /// The first member of a name, if there is one: what a registration calls the same comes later.
    fileprivate func value(_ name: String) -> ConfigurationValue? {
        guard case .object(let members) = content else { return nil }
        return members.first { $0.name == name }?.value
    }

    /// The first of some members that is a scalar; empty without.
    fileprivate func shown(_ names: String...) -> String {
        for name in names {
            switch value(name)?.content {
            case .string, .number, .boolean: return value(name)?.shown ?? ""
            default: continue
            }
        }
        return ""
    }

    /// On one line.
    fileprivate var shown: String {
        if case .string(let string) = content { return Printable.line(string) }
        return Printable.line(json)
    }

    fileprivate var json: String {
        var json: [UInt8] = []
        appendJSON(to: &json)
        return String(decoding: json, as: UTF8.self)
    }

    /// `{"time", "status", "message"}`
    fileprivate var shownError: String {
        let time = shown("time")
        return (time.isEmpty ? "" : time + " ") + "\(shown("status")): \(shown("message"))"
    }
}
