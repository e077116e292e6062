// Verifies the verdict token on stdin: KEYS_URL, TENANT, AUDIENCE, NONCE. Needs nimbus-jose-jwt.
import com.nimbusds.jose.JWSAlgorithm
import com.nimbusds.jose.jwk.source.JWKSourceBuilder
import com.nimbusds.jose.proc.JWSVerificationKeySelector
import com.nimbusds.jose.proc.SecurityContext
import com.nimbusds.jwt.JWTClaimsSet
import com.nimbusds.jwt.proc.DefaultJWTClaimsVerifier
import com.nimbusds.jwt.proc.DefaultJWTProcessor
import java.net.URI

// One for the process.
val keys = JWKSourceBuilder.create<SecurityContext>(URI(System.getenv("KEYS_URL")).toURL()).build()

fun verifyVerdict(token: String, tenant: String, audience: String, nonce: String): JWTClaimsSet {
  val asked = JWTClaimsSet.Builder().claim("purpose", audience).claim("nonce", nonce).build()
  val processor = DefaultJWTProcessor<SecurityContext>()
  processor.jwsKeySelector = JWSVerificationKeySelector(JWSAlgorithm.ES256, keys)
  processor.jwtClaimsSetVerifier =
    DefaultJWTClaimsVerifier(tenant, asked, setOf("exp", "iat", "sub", "act"))
  return processor.process(token, null)
}

fun main() {
  val env = System.getenv()
  val token = generateSequence(::readLine).joinToString("").trim()
  println(verifyVerdict(token, env["TENANT"]!!, env["AUDIENCE"]!!, env["NONCE"]!!))
}
