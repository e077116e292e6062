import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

public class Send {
  public static void main(String[] arguments) throws Exception {
    var body = "{\"tenant_id\":\"TENANT\",\"device_id\":\"device-1\",\"session_id\":\"session-1\",\"sdk_meta\":{\"sdk_version\":\"1.0.0\",\"platform\":\"android\",\"batch_type\":\"start\"},\"scorer\":{\"rasp_score\":0,\"rasp_action\":\"ALLOW\",\"rasp_flags\":[]},\"signals\":{\"root\":{},\"emulator\":{},\"debugger\":{},\"tamper\":{},\"ecosystem\":{},\"network\":{}}}"
        .getBytes(StandardCharsets.UTF_8);
    var mac = Mac.getInstance("HmacSHA256");
    var secret = System.getenv("HMAC_SECRET").getBytes(StandardCharsets.UTF_8);
    mac.init(new SecretKeySpec(secret, "HmacSHA256"));
    var request = HttpRequest.newBuilder(URI.create(System.getenv("INGEST_URL") + "/v1/rasp/ingest"))
        .header("content-type", "application/json")
        .header("x-service-signature", Base64.getEncoder().encodeToString(mac.doFinal(body)))
        .POST(HttpRequest.BodyPublishers.ofByteArray(body))
        .build();
    var response = HttpClient.newHttpClient().send(request, BodyHandlers.ofString());
    System.out.println(response.statusCode() + " " + response.body());
  }
}
