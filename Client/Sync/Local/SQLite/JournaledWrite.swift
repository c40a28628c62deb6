import HearthModel
import HearthWire

/// A call's write as the journal has it: the user, the time of the call, and the mutations.
///
/// The form: 0, or 1 with the size (4 bytes, little endian) and the bytes of the user's id; the time (8 bytes,
/// microseconds since 1970); a `WriteList`.
struct JournaledWrite {
    var user: ClientUser
    var time: Timestamp
    var mutations: [Mutation]

    /// The first part of the form.
    static func encode(_ user: ClientUser) -> [UInt8] {
        guard let uid = user.uid else { return [0] }
        var bytes: [UInt8] = [1]
        withUnsafeBytes(of: UInt32(uid.utf8.count).littleEndian) { bytes += $0 }
        return bytes + uid.utf8
    }

    /// The second part.
    static func encode(_ mutations: [Mutation], at time: Timestamp, _ serializer: MutationSerializer) -> [UInt8] {
        var bytes: [UInt8] = []
        withUnsafeBytes(of: time.microseconds.littleEndian) { bytes += $0 }
        return bytes + WriteList.encode(mutations.map { serializer.message($0) })
    }

    /// - Throws: when the contents have another form.
    init(_ bytes: [UInt8], _ serializer: MutationSerializer) throws(Status) {
        var rest = bytes[...]
        guard let mark = rest.popFirst(), mark <= 1 else { throw Self.unreadable }
        user = .unauthenticated
        if mark == 1 {
            let size = try Self.take(4, of: &rest).reversed().reduce(0) { $0 << 8 | Int($1) }
            user = ClientUser(uid: String(decoding: try Self.take(size, of: &rest), as: UTF8.self))
        }
        let microseconds = try Self.take(8, of: &rest).reversed().reduce(0) { $0 << 8 | UInt64($1) }
        time = Timestamp(microseconds: Int64(bitPattern: microseconds))
        let list = Array(rest)
        let messages = try list.withUnsafeBytes { bytes in
            Result { () throws(Status) in try WriteList.decode(bytes) }
        }.get()
        mutations = []
        for message in messages { mutations.append(try serializer.mutation(message)) }
        if mutations.isEmpty { throw Self.unreadable }
    }

    private static let unreadable = Status(.dataLoss, "it has an unknown form")

    private static func take(_ count: Int, of bytes: inout ArraySlice<UInt8>) throws(Status) -> ArraySlice<UInt8> {
        guard bytes.count >= count else { throw unreadable }
        defer { bytes = bytes.dropFirst(count) }
        return bytes.prefix(count)
    }
}
