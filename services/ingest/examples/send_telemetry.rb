# Signs the submission on stdin and sends it: HMAC_SECRET, INGEST_URL. `ruby send_telemetry.rb`

require 'net/http'
require 'openssl'

def sign_body(body, secret)
  [OpenSSL::HMAC.digest('SHA256', secret, body)].pack('m0')
end

# Sign the bytes that are sent. After 429, 503 or a network fault send the same bytes again.
body = $stdin.binmode.read
uri = URI("#{ENV.fetch('INGEST_URL')}/v1/rasp/ingest")
request = Net::HTTP::Post.new(uri)
request['Content-Type'] = 'application/json'
request['X-Service-Signature'] = sign_body(body, ENV.fetch('HMAC_SECRET'))
request.body = body
limits = { use_ssl: uri.scheme == 'https', open_timeout: 5, read_timeout: 15, max_retries: 0 }
answer = Net::HTTP.start(uri.host, uri.port, **limits) { |http| http.request(request) }
puts "#{answer.code} #{answer.body}"
exit answer.code == '200'
