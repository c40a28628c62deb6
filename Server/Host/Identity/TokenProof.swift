/// The key that verified a token, and that its issuer may withdraw.
struct TokenProof: Sendable {
    let keys: KeySet
    let key: SigningKey
    let generation: UInt64

    var validity: KeySet.Validity { keys.validity(of: key, since: generation) }
}
