// Signs the submission on stdin and sends it: HMAC_SECRET, INGEST_URL. .NET 6 or later.

using System.Net.Http.Headers;
using System.Security.Cryptography;
using System.Text;

static string SignBody(byte[] body, string secret) =>
    Convert.ToBase64String(HMACSHA256.HashData(Encoding.UTF8.GetBytes(secret), body));

static string Setting(string name) => Environment.GetEnvironmentVariable(name)!;

using var stdin = new MemoryStream();
await Console.OpenStandardInput().CopyToAsync(stdin);
var body = stdin.ToArray();

// Sign the bytes that are sent. After 429, 503 or a network fault send the same bytes again.
using var client = new HttpClient { Timeout = TimeSpan.FromSeconds(15) };
var url = Setting("INGEST_URL") + "/v1/rasp/ingest";
using var request = new HttpRequestMessage(HttpMethod.Post, url) { Content = new ByteArrayContent(body) };
request.Content.Headers.ContentType = new MediaTypeHeaderValue("application/json");
request.Headers.Add("X-Service-Signature", SignBody(body, Setting("HMAC_SECRET")));
using var answer = await client.SendAsync(request);
Console.WriteLine($"{(int)answer.StatusCode} {await answer.Content.ReadAsStringAsync()}");
return answer.IsSuccessStatusCode ? 0 : 1;
