internal import Foundation
internal import HearthModel

/// A bundle's bytes in chunks. The engine reads them on a dedicated thread.
final class BundleSource: Sendable {
    private enum Content {
        case data(Data, position: Int)
        case stream(InputStream, isOpen: Bool)
        case remote(RemoteBundle)
    }

    private let content: Locked<Content>

    init(_ data: Data) { content = Locked(.data(data, position: data.startIndex)) }

    init(_ stream: InputStream) { content = Locked(.stream(Carried(stream).value, isOpen: false)) }

    /// - Throws: `INVALID_ARGUMENT` for a URL whose scheme is not `file`, `http` or `https`.
    init(_ url: URL, _ firestore: Firestore) throws(Status) {
        switch url.scheme?.lowercased() {
        case "file":
            guard let stream = InputStream(fileAtPath: url.path) else {
                throw .invalidArgument("loadBundle(from:) cannot read \(url.absoluteString).")
            }
            content = Locked(.stream(Carried(stream).value, isOpen: false))
        case "http", "https":
            content = Locked(.remote(RemoteBundle(url, tls: firestore.settings.tls, tasks: firestore.tasks)))
        default:
            throw .invalidArgument(
                "loadBundle(from:) takes URLs of files, http and https, but got \(url.absoluteString).")
        }
    }

    /// At most the given number of bytes; none at the end.
    func read(_ countMax: Int) throws -> [UInt8] {
        try content.with { content in
            switch content {
            case .data(let data, let position):
                let piece = data[position...].prefix(countMax)
                content = .data(data, position: piece.endIndex)
                return [UInt8](piece)
            case .stream(let stream, let isOpen):
                if !isOpen {
                    stream.open()
                    content = .stream(stream, isOpen: true)
                }
                return try Self.read(stream, countMax)
            case .remote(let bundle):
                let data = try bundle.bytes()
                let piece = data.prefix(countMax)
                content = .data(data, position: piece.endIndex)
                return [UInt8](piece)
            }
        }
    }

    private static func read(_ stream: InputStream, _ countMax: Int) throws(Status) -> [UInt8] {
        var piece = [UInt8](repeating: 0, count: countMax)
        let count = stream.read(&piece, maxLength: countMax)
        if count < 0 {
            stream.close()
            throw Status(
                .dataLoss, "Unable to read from the stream: \(stream.streamError?.localizedDescription ?? "?")")
        }
        if count == 0 { stream.close() }
        return Array(piece.prefix(count))
    }

    /// The whole contents of a stream as a string.
    static func string(of stream: InputStream) throws(Status) -> String {
        stream.open()
        var bytes: [UInt8] = []
        while true {
            let piece = try read(stream, 1 << 16)
            if piece.isEmpty { break }
            bytes += piece
        }
        guard let string = String(validating: bytes, as: UTF8.self) else {
            throw .invalidArgument("The stream does not contain valid UTF-8.")
        }
        return string
    }
}
