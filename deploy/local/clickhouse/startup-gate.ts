// The HTTP authentication server that admits the engine's own first session. That session opens
// the HTTP port and always signs in as `default` with an empty password, which a set password
// refuses. The gate allows exactly one request, before the port exists. Afterwards it keeps its
// port and refuses, so that no other program can listen there and admit a session.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/**
 * Listens on a free port of 127.0.0.1 until the process ends and resolves to that port. Answers
 * 200 to the first request and 403 to every other.
 */
export async function openStartupGate(): Promise<number> {
  let used = false
  const gate = createServer((_request, response) => {
    response.statusCode = used ? 403 : 200
    used = true
    response.end()
  })
  gate.unref()
  await new Promise<void>((resolve, reject) => {
    gate.once('error', reject)
    gate.listen(0, '127.0.0.1', resolve)
  })
  return (gate.address() as AddressInfo).port
}
