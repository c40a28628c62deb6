/// The parameters of permessage-deflate that both ends have agreed on. Source: RFC 7692, 7.1.
package struct WebSocketDeflate: Equatable, Sendable {
    /// The server's messages refer to earlier ones, for which both ends keep a window of 32 KB and more.
    package var serverTakesOverContext: Bool
    package var clientTakesOverContext: Bool
    /// The window bits of the server's compressor, 9 to 15.
    package var serverWindowBits: Int
    package var clientWindowBits: Int

    package static let windowBitsMax = 15
    /// zlib cannot write raw deflate with a window of 8 bits.
    static let windowBitsMin = 9

    package init(
        serverTakesOverContext: Bool = false, clientTakesOverContext: Bool = false,
        serverWindowBits: Int = WebSocketDeflate.windowBitsMax, clientWindowBits: Int = WebSocketDeflate.windowBitsMax
    ) {
        self.serverTakesOverContext = serverTakesOverContext
        self.clientTakesOverContext = clientTakesOverContext
        self.serverWindowBits = serverWindowBits
        self.clientWindowBits = clientWindowBits
    }

    static let name = "permessage-deflate"

    // MARK: Server

    /// The first acceptable offer of the client; nil: none is acceptable, and the connection is not compressed.
    ///
    /// - Parameter takesOverContext: whether windows are kept where the client allows it. If false, the answer requires
    ///   both ends not to keep them, which a server may do unasked (RFC 7692, 7.1.1).
    static func accepted(_ offers: [WebSocketExtension], takesOverContext: Bool) -> WebSocketDeflate? {
        for offer in offers where offer.name == name {
            if let agreed = accept(offer, takesOverContext) { return agreed }
        }
        return nil
    }

    private static func accept(_ offer: WebSocketExtension, _ takesOverContext: Bool) -> WebSocketDeflate? {
        var result = WebSocketDeflate(
            serverTakesOverContext: takesOverContext, clientTakesOverContext: takesOverContext)
        guard offer.hasDistinctParameters else { return nil }
        for (name, value) in offer.parameters {
            switch (name, value) {
            case ("server_no_context_takeover", nil): result.serverTakesOverContext = false
            case ("client_no_context_takeover", nil): result.clientTakesOverContext = false
            case ("server_max_window_bits", .some(let string)):
                guard let bits = windowBits(string), bits >= windowBitsMin else { return nil }
                result.serverWindowBits = bits
            // A hint that the client supports smaller windows; we decode any size.
            case ("client_max_window_bits", nil): break
            case ("client_max_window_bits", .some(let string)): guard windowBits(string) != nil else { return nil }
            default: return nil
            }
        }
        return result
    }

    /// The value of the response field.
    var answer: String {
        var string = WebSocketDeflate.name
        if !serverTakesOverContext { string += "; server_no_context_takeover" }
        if !clientTakesOverContext { string += "; client_no_context_takeover" }
        if serverWindowBits < WebSocketDeflate.windowBitsMax {
            string += "; server_max_window_bits=\(serverWindowBits)"
        }
        return string
    }

    // MARK: Client

    /// The offer of our client: no windows on either side, so that an idle connection is small on both.
    static let offer = "permessage-deflate; server_no_context_takeover; client_no_context_takeover"

    /// Parses the server's answer to `offer`; nil when it is invalid.
    static func confirmed(_ answer: WebSocketExtension) -> WebSocketDeflate? {
        guard answer.name == name, answer.hasDistinctParameters else { return nil }
        // We keep no window, whatever the server answers; the server must not keep one either, because the offer
        // requires it.
        var result = WebSocketDeflate()
        var serverForgets = false
        for (name, value) in answer.parameters {
            switch (name, value) {
            case ("server_no_context_takeover", nil): serverForgets = true
            case ("client_no_context_takeover", nil): break
            case ("server_max_window_bits", .some(let string)):
                guard let bits = windowBits(string) else { return nil }
                result.serverWindowBits = bits
            default: return nil
            }
        }
        return serverForgets ? result : nil
    }

    private static func windowBits(_ string: String) -> Int? {
        guard string.utf8.count <= 2, string.utf8.first != UInt8(ascii: "0"),
            string.utf8.allSatisfy({ $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9") }), let bits = Int(string),
            bits >= 8, bits <= windowBitsMax
        else { return nil }
        return bits
    }
}
