// Verifies a webhook: raw body on stdin, X-Service-Signature as argument, WEBHOOK_SECRET.

using System.Security.Cryptography;
using System.Text;

// In ASP.NET Core, copy Request.Body to a MemoryStream before any model binding.
static bool IsGenuine(byte[] rawBody, string? signature, string secret)
{
    var code = HMACSHA256.HashData(Encoding.UTF8.GetBytes(secret), rawBody);
    var expected = Encoding.UTF8.GetBytes(Convert.ToBase64String(code));
    // Constant time.
    return CryptographicOperations.FixedTimeEquals(expected, Encoding.UTF8.GetBytes(signature ?? ""));
}

using var stdin = new MemoryStream();
await Console.OpenStandardInput().CopyToAsync(stdin);
var secret = Environment.GetEnvironmentVariable("WEBHOOK_SECRET")!;
var genuine = IsGenuine(stdin.ToArray(), args[0], secret);
Console.WriteLine(genuine ? "genuine" : "forged");
return genuine ? 0 : 1;
