// Verifies the verdict token on stdin: KEYS_URL, TENANT, AUDIENCE, NONCE. Needs JWTKit 5.
import Foundation
import JWTKit

struct Verdict: JWTPayload {
  let aud: AudienceClaim
  let exp: ExpirationClaim
  let sub, purpose, nonce, act: String
  let scr: Int

  func verify(using _: some JWTAlgorithm) throws { try exp.verifyNotExpired() }
}

// A key of the set counts for its own `alg` alone: ES256.
func verifyVerdict(
  _ token: String, keys: JWTKeyCollection, tenant: String, audience: String, nonce: String
) async throws -> Verdict {
  let verdict = try await keys.verify(token, as: Verdict.self)
  try verdict.aud.verifyIntendedAudience(includes: tenant)
  if verdict.purpose == audience && verdict.nonce == nonce { return verdict }
  throw JWTError.claimVerificationFailure(failedClaim: verdict.aud, reason: "another question")
}

let env = ProcessInfo.processInfo.environment
// Keep the keys. Fetch them anew after five minutes and for an unknown kid, once in ten seconds
// at most; where that fails, those that you keep count for an hour.
let (data, _) = try await URLSession.shared.data(from: URL(string: env["KEYS_URL"]!)!)
let keys = try await JWTKeyCollection().add(jwksJSON: String(decoding: data, as: UTF8.self))
let token = String(decoding: FileHandle.standardInput.readDataToEndOfFile(), as: UTF8.self)
let verdict = try await verifyVerdict(
  token.trimmingCharacters(in: .whitespacesAndNewlines), keys: keys,
  tenant: env["TENANT"]!, audience: env["AUDIENCE"]!, nonce: env["NONCE"]!)
print(verdict.act, verdict.scr)
