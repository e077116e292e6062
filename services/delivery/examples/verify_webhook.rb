# Verifies a webhook: raw body on stdin, X-Service-Signature as argument, WEBHOOK_SECRET.

require 'openssl'

# raw_body is request.raw_post in Rails and request.body.read in Sinatra and Rack.
def genuine?(raw_body, signature, secret)
  expected = [OpenSSL::HMAC.digest('SHA256', secret, raw_body)].pack('m0')
  # Constant time.
  OpenSSL.secure_compare(expected, signature.to_s)
end

genuine = genuine?($stdin.binmode.read, ARGV[0], ENV.fetch('WEBHOOK_SECRET'))
puts genuine ? 'genuine' : 'forged'
exit genuine
