// Verifies the verdict token on stdin: KEYS_URL, TENANT, AUDIENCE, NONCE. Needs nimbus-jose-jwt.
import com.nimbusds.jose.JWSAlgorithm;
import com.nimbusds.jose.jwk.source.JWKSourceBuilder;
import com.nimbusds.jose.proc.JWSVerificationKeySelector;
import com.nimbusds.jose.proc.SecurityContext;
import com.nimbusds.jwt.JWTClaimsSet;
import com.nimbusds.jwt.proc.DefaultJWTClaimsVerifier;
import com.nimbusds.jwt.proc.DefaultJWTProcessor;
import java.net.URI;
import java.util.Set;

public class VerifyVerdict {
  static DefaultJWTProcessor<SecurityContext> processor(String tenant, String audience, String nonce)
      throws Exception {
    var keys = JWKSourceBuilder.create(URI.create(System.getenv("KEYS_URL")).toURL()).build();
    var asked = new JWTClaimsSet.Builder().claim("purpose", audience).claim("nonce", nonce).build();
    var processor = new DefaultJWTProcessor<SecurityContext>();
    processor.setJWSKeySelector(new JWSVerificationKeySelector<>(JWSAlgorithm.ES256, keys));
    processor.setJWTClaimsSetVerifier(
        new DefaultJWTClaimsVerifier<>(tenant, asked, Set.of("exp", "iat", "sub", "act")));
    return processor;
  }

  public static void main(String[] args) throws Exception {
    var env = System.getenv();
    var token = new String(System.in.readAllBytes()).trim();
    var processor = processor(env.get("TENANT"), env.get("AUDIENCE"), env.get("NONCE"));
    System.out.println(processor.process(token, null));
  }
}
