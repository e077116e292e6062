# Receives the webhooks of TENANT: WEBHOOK_SECRET=whsec_... python3 receive.py
import base64, hashlib, hmac, json, os, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

key = base64.b64decode(os.environ['WEBHOOK_SECRET'].removeprefix('whsec_'))
seen = set()  # yours is a table with a unique key


def is_genuine(headers, body):
    id, at = headers.get('webhook-id', ''), headers.get('webhook-timestamp', '')
    if not at.isdigit() or abs(time.time() - int(at)) > 300:
        return False
    digest = hmac.new(key, f'{id}.{at}.'.encode() + body, hashlib.sha256).digest()
    expected = b'v1,' + base64.b64encode(digest)
    listed = headers.get('webhook-signature', '').split(' ')
    return any(hmac.compare_digest(text.encode(), expected) for text in listed)


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers.get('content-length', 0)))  # the raw bytes
        if self.path != 'WEBHOOK_PATH':
            return self.answer(404)
        if not is_genuine(self.headers, body):
            return self.answer(401)
        is_new = self.headers['webhook-id'] not in seen
        seen.add(self.headers['webhook-id'])
        self.answer(204)
        if is_new:
            print(json.loads(body)['alert_id'], flush=True)

    def answer(self, status):
        self.send_response(status)
        self.end_headers()


ThreadingHTTPServer(('127.0.0.1', WEBHOOK_PORT), Receiver).serve_forever()
