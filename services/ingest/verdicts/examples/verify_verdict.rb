# Verifies the verdict token on stdin: KEYS_URL, TENANT, AUDIENCE, NONCE. Needs the gem jwt.
require 'json'
require 'jwt'
require 'net/http'

def verify_verdict(token, keys, tenant, audience, nonce)
  options = { algorithms: ['ES256'], jwks: keys, aud: tenant, verify_aud: true, verify_iat: true, leeway: 60 }
  verdict, = JWT.decode(token, nil, true, options.merge(required_claims: %w[exp iat purpose nonce]))
  return verdict if verdict.values_at('purpose', 'nonce') == [audience, nonce]

  raise JWT::DecodeError, 'it answers another question'
end

# Keep the keys. Fetch them anew after five minutes and for an unknown kid, once in ten seconds
# at most; where that fails, those that you keep count for an hour.
keys = JSON.parse(Net::HTTP.get(URI(ENV.fetch('KEYS_URL'))))
puts verify_verdict($stdin.read.strip, keys, *ENV.values_at('TENANT', 'AUDIENCE', 'NONCE')).to_json
