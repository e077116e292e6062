// Verifies a webhook: raw body on stdin, X-Service-Signature as argument, WEBHOOK_SECRET.

import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.Base64;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

public class VerifyWebhook {
  /** rawBody is a {@code @RequestBody byte[]} in Spring and the request's input stream in servlets. */
  static boolean isGenuine(byte[] rawBody, String signature, String secret) throws Exception {
    if (signature == null) return false;
    Mac mac = Mac.getInstance("HmacSHA256");
    mac.init(new SecretKeySpec(secret.getBytes(StandardCharsets.UTF_8), "HmacSHA256"));
    byte[] expected = Base64.getEncoder().encode(mac.doFinal(rawBody));
    // Constant time.
    return MessageDigest.isEqual(expected, signature.getBytes(StandardCharsets.UTF_8));
  }

  public static void main(String[] args) throws Exception {
    byte[] body = System.in.readAllBytes();
    boolean genuine = isGenuine(body, args[0], System.getenv("WEBHOOK_SECRET"));
    System.out.println(genuine ? "genuine" : "forged");
    System.exit(genuine ? 0 : 1);
  }
}
