// With a password set, the engine must still let its own first session in: the one that opens the
// HTTP port, which always comes as user `default` with an empty password. The engine asks this
// door, a second way to authenticate beside the password. It says yes exactly once, before the
// port exists. It stays after that, saying no, so that nothing else on this machine can take over
// its port and answer in its place.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/**
 * Listens on a free port of 127.0.0.1 until the process ends and resolves to that port. Answers
 * 200 to the first question and 403 to every other.
 */
export async function openBootDoor(): Promise<number> {
  let asked = false
  const door = createServer((_request, response) => {
    response.statusCode = asked ? 403 : 200
    asked = true
    response.end()
  })
  door.unref()
  await new Promise<void>((resolve, reject) => {
    door.once('error', reject)
    door.listen(0, '127.0.0.1', resolve)
  })
  return (door.address() as AddressInfo).port
}
