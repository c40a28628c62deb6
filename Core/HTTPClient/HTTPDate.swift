import CCurl

/// Dates in header fields.
package enum HTTPDate {
    /// Seconds since 1970 of a date in one of the forms of RFC 9110, 5.6.7; nil for anything else.
    package static func seconds(_ string: String) -> Int64? {
        let seconds = curl_getdate(string, nil)
        return seconds < 0 ? nil : Int64(seconds)
    }
}
