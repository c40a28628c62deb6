import HearthNetwork

/// Cross-origin responses: browsers of any origin may call, as with Google's service.
package enum CORS {
    package static func headers(for head: HTTPRequestHead) -> [HTTPHeader] {
        guard let origin = head.firstValue("origin") else { return [] }
        return [
            HTTPHeader("access-control-allow-origin", origin), HTTPHeader("vary", "origin"),
            HTTPHeader("access-control-allow-credentials", "true"),
            HTTPHeader("access-control-expose-headers", "date,etag,vary,content-length,x-http-status-code-override"),
        ]
    }

    package static func preflight(for head: HTTPRequestHead) -> [HTTPHeader] {
        var headers = headers(for: head)
        headers.append(HTTPHeader("access-control-allow-methods", "GET, POST, PUT, PATCH, DELETE, OPTIONS"))
        if let wanted = head.firstValue("access-control-request-headers") {
            headers.append(HTTPHeader("access-control-allow-headers", wanted))
        }
        headers.append(HTTPHeader("access-control-max-age", "3600"))
        return headers
    }
}
