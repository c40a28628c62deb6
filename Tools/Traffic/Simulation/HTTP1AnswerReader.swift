/// Reads answers of HTTP/1.1 as they arrive, in pieces of any size. Source: RFC 9112.
struct HTTP1AnswerReader {
    enum Event {
        case head(status: Int, fields: [(name: String, value: String)])
        case body(Range<Int>)
        case end(trailers: [(name: String, value: String)])
    }

    private enum State {
        case statusLine, fields, length(Int), chunkSize, chunk(Int), chunkEnd, trailers, untilClose
    }

    private var state = State.statusLine
    private var line: [UInt8] = []
    private var status = 0
    private var fields: [(name: String, value: String)] = []

    /// The next event from `position` on, or nil when more input is needed.
    mutating func next(_ bytes: UnsafeRawBufferPointer, _ position: inout Int) throws(TrafficFailure) -> Event? {
        while true {
            switch state {
            case .length(let remaining):
                if remaining == 0 { return finish() }
                guard let range = body(remaining, bytes, &position) else { return nil }
                state = .length(remaining - range.count)
                return .body(range)
            case .chunk(let remaining):
                if remaining == 0 {
                    state = .chunkEnd
                    continue
                }
                guard let range = body(remaining, bytes, &position) else { return nil }
                state = .chunk(remaining - range.count)
                return .body(range)
            case .untilClose:
                guard let range = body(.max, bytes, &position) else { return nil }
                return .body(range)
            case .statusLine, .fields, .chunkSize, .chunkEnd, .trailers:
                guard let line = nextLine(bytes, &position) else { return nil }
                if let event = try read(line) { return event }
            }
        }
    }

    private func body(_ lengthMax: Int, _ bytes: UnsafeRawBufferPointer, _ position: inout Int) -> Range<Int>? {
        guard position < bytes.count else { return nil }
        let range = position..<position + min(lengthMax, bytes.count - position)
        position = range.upperBound
        return range
    }

    private mutating func nextLine(_ bytes: UnsafeRawBufferPointer, _ position: inout Int) -> String? {
        while position < bytes.count {
            line.append(bytes[position])
            position += 1
            if line.suffix(2).elementsEqual([13, 10]) {
                defer { line = [] }
                return String(decoding: line.dropLast(2), as: UTF8.self)
            }
        }
        return nil
    }

    private mutating func read(_ line: String) throws(TrafficFailure) -> Event? {
        switch state {
        case .statusLine:
            let parts = line.split(separator: " ")
            guard parts.count >= 2, parts[0] == "HTTP/1.1", let status = Int(parts[1]) else {
                throw TrafficFailure("not a status line: \(line)")
            }
            self.status = status
            state = .fields
        case .fields where line.isEmpty:
            return try beginBody()
        case .trailers where line.isEmpty:
            return finish()
        case .fields, .trailers:
            guard let colon = line.firstIndex(of: ":") else { throw TrafficFailure("not a field: \(line)") }
            let value = line[line.index(after: colon)...].drop { $0 == " " }
            fields.append((String(line[..<colon]).lowercased(), String(value)))
        case .chunkSize:
            guard let size = Int(line, radix: 16) else { throw TrafficFailure("not the size of a chunk: \(line)") }
            state = size == 0 ? .trailers : .chunk(size)
        case .chunkEnd:
            guard line.isEmpty else { throw TrafficFailure("bytes behind a chunk: \(line)") }
            state = .chunkSize
        case .length, .chunk, .untilClose: break
        }
        return nil
    }

    private mutating func beginBody() throws(TrafficFailure) -> Event {
        let fields = fields
        self.fields = []
        func value(_ name: String) -> String? { fields.first { $0.name == name }?.value }
        if status == 101 {
            state = .untilClose
        } else if status < 200 {
            state = .statusLine
        } else if value("transfer-encoding") == "chunked" {
            state = .chunkSize
        } else if status == 204 || status == 304 {
            state = .length(0)
        } else if let length = value("content-length") {
            guard let length = Int(length) else { throw TrafficFailure("not a length: \(length)") }
            state = .length(length)
        } else {
            state = .untilClose
        }
        return .head(status: status, fields: fields)
    }

    private mutating func finish() -> Event {
        let trailers = fields
        fields = []
        state = .statusLine
        return .end(trailers: trailers)
    }
}
