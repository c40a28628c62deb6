/// Limits of the wire protocol's client.
enum WireLimits {
    /// UTF-16 units in one frame. The other clients of the protocol split at the same size.
    static let frameUnitsMax = 16_384
    /// Digits of the number that announces the frames of a message.
    static let countDigitsMax = 6
    /// Bytes of one sent message. Source: the size limit of one write from an SDK, "Realtime Database Limits" in
    /// the Firebase documentation.
    static let requestBytesMax = 16 << 20
    /// Bytes of one received message, joined. Source: the size limit of one read, "Realtime Database Limits" in the
    /// Firebase documentation.
    static let messageBytesMax = 256 << 20
}
