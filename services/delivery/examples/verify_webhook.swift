// Verifies a webhook: raw body on stdin, X-Service-Signature as argument, WEBHOOK_SECRET. On Linux
// `import Crypto` of swift-crypto instead of CryptoKit.

import CryptoKit
import Foundation

/// `rawBody` is `Data(buffer: request.body.data!)` in Vapor.
func isGenuine(_ rawBody: Data, signature: String?, secret: String) -> Bool {
    guard let signature, let code = Data(base64Encoded: signature) else { return false }
    let key = SymmetricKey(data: Data(secret.utf8))
    // Constant time. The round trip refuses other spellings of the same bytes.
    return HMAC<SHA256>.isValidAuthenticationCode(code, authenticating: rawBody, using: key)
        && code.base64EncodedString() == signature
}

let genuine = isGenuine(
    FileHandle.standardInput.readDataToEndOfFile(),
    signature: CommandLine.arguments[1],
    secret: ProcessInfo.processInfo.environment["WEBHOOK_SECRET"]!
)
print(genuine ? "genuine" : "forged")
exit(genuine ? 0 : 1)
