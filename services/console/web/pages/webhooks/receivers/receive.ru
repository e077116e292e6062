# Receives the webhooks of TENANT: WEBHOOK_SECRET=whsec_... rackup -o 127.0.0.1 -p WEBHOOK_PORT receive.ru
require 'json'
require 'openssl'
require 'rack'

KEY = ENV.fetch('WEBHOOK_SECRET').delete_prefix('whsec_').unpack1('m')
SEEN = {} # yours is a table with a unique key

def genuine?(env, body)
  id, at = env['HTTP_WEBHOOK_ID'].to_s, env['HTTP_WEBHOOK_TIMESTAMP'].to_s
  return false if !at.match?(/\A\d{1,12}\z/) || (Time.now.to_i - at.to_i).abs > 300

  digest = OpenSSL::HMAC.digest('SHA256', KEY, "#{id}.#{at}.".b + body)
  expected = "v1,#{[digest].pack('m0')}"
  listed = env['HTTP_WEBHOOK_SIGNATURE'].to_s.split
  listed.any? { |text| Rack::Utils.secure_compare(text, expected) }
end

run lambda { |env|
  return [404, {}, []] unless env['PATH_INFO'] == 'WEBHOOK_PATH'

  body = env['rack.input'].read.b # the raw bytes, before any parser
  return [401, {}, []] unless genuine?(env, body)

  id = env['HTTP_WEBHOOK_ID']
  puts JSON.parse(body)['alert_id'] unless SEEN.key?(id)
  SEEN[id] = true
  [204, {}, []]
}
