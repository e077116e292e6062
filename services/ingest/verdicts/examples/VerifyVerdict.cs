// Verifies the verdict token on stdin: KEYS_URL, TENANT, AUDIENCE, NONCE.
// Needs Microsoft.IdentityModel.JsonWebTokens.
using Microsoft.IdentityModel.JsonWebTokens;
using Microsoft.IdentityModel.Tokens;

static async Task<IDictionary<string, object>> VerifyVerdict(
    string token, JsonWebKeySet keys, string tenant, string audience, string nonce)
{
    var result = await new JsonWebTokenHandler().ValidateTokenAsync(token, new TokenValidationParameters
    {
        ValidAlgorithms = ["ES256"], IssuerSigningKeys = keys.GetSigningKeys(), ValidAudience = tenant,
        ValidateIssuer = false, RequireExpirationTime = true, ClockSkew = TimeSpan.FromMinutes(1),
    });
    if (!result.IsValid) throw result.Exception;
    var (purpose, answered) = ((string)result.Claims["purpose"], (string)result.Claims["nonce"]);
    if (purpose == audience && answered == nonce) return result.Claims;
    throw new SecurityTokenException("it answers another question");
}

string Env(string name) => Environment.GetEnvironmentVariable(name)!;

// Keep the keys. Fetch them anew after five minutes and for an unknown kid, once in ten seconds
// at most; where that fails, those that you keep count for an hour.
var keys = new JsonWebKeySet(await new HttpClient().GetStringAsync(Env("KEYS_URL")));
var token = (await Console.In.ReadToEndAsync()).Trim();
var verdict = await VerifyVerdict(token, keys, Env("TENANT"), Env("AUDIENCE"), Env("NONCE"));
Console.WriteLine(verdict["act"]);
