struct StoreRecord {
    var key: [UInt8]
    var value: [UInt8]
}
