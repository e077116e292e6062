// Signs the submission on stdin and sends it: HMAC_SECRET, INGEST_URL. `java SendTelemetry.java`

import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Base64;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

public class SendTelemetry {
  static String signBody(byte[] body, String secret) throws Exception {
    Mac mac = Mac.getInstance("HmacSHA256");
    mac.init(new SecretKeySpec(secret.getBytes(StandardCharsets.UTF_8), "HmacSHA256"));
    return Base64.getEncoder().encodeToString(mac.doFinal(body));
  }

  public static void main(String[] args) throws Exception {
    byte[] body = System.in.readAllBytes();
    // Sign the bytes that are sent. After 429, 503 or a network fault send the same bytes again.
    HttpRequest request =
        HttpRequest.newBuilder(URI.create(System.getenv("INGEST_URL") + "/v1/rasp/ingest"))
            .timeout(Duration.ofSeconds(15))
            .header("Content-Type", "application/json")
            .header("X-Service-Signature", signBody(body, System.getenv("HMAC_SECRET")))
            .POST(HttpRequest.BodyPublishers.ofByteArray(body))
            .build();
    HttpResponse<String> answer =
        HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString());
    System.out.println(answer.statusCode() + " " + answer.body());
    System.exit(answer.statusCode() == 200 ? 0 : 1);
  }
}
