import { execFileSync, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { describe, expect, it } from 'vitest'
import {
  choosePort,
  explainOutgoing,
  isListenedOn,
  isPortFree,
  readOutgoingPorts,
} from '../../../deploy/local/stack/ports/ports.ts'
import { answersOk } from '../../../deploy/local/stack/servers.ts'

/** The port that another process chooses when it prefers this one. */
function chooseElsewhere(preferred: number): number {
  const script = `import { choosePort } from './deploy/local/stack/ports/ports.ts'
    process.stdout.write(String(await choosePort({ preferred: ${preferred} })))`
  const args = ['--input-type=module', '--eval', script]
  return Number(execFileSync(process.execPath, args, { encoding: 'utf8' }))
}

describe.runIf(process.platform === 'linux')('a port that was chosen', () => {
  it('is chosen by no other process before its server listens', async () => {
    const port = await choosePort({})
    expect(await isPortFree(port)).toBe(true)
    const other = chooseElsewhere(port)
    expect(other).toBeGreaterThan(0)
    expect(other).not.toBe(port)
  })

  it('may be chosen again by its owner, and by others once the owner has ended', async () => {
    const port = await choosePort({})
    expect(await choosePort({ preferred: port })).toBe(port)
    const elsewhere = chooseElsewhere(0)
    expect(await choosePort({ preferred: elsewhere })).toBe(elsewhere)
  })
})

describe.runIf(process.platform === 'linux')('a port that a server will listen on', () => {
  it('is looked at', async () => {
    const server = createServer()
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const { port } = server.address() as AddressInfo
    expect(await isListenedOn(port)).toBe(true)
    await new Promise((resolve) => server.close(resolve))
    expect(await isListenedOn(port)).toBe(false)
    expect(await answersOk(`http://127.0.0.1:${port}/`)).toBe(false)
  })

  it('is none of those that outgoing connections get, and a message explains one that is', async () => {
    const [first, last] = readOutgoingPorts()
    for (let n = 0; n < 20; n++) {
      const port = await choosePort({ preferred: first })
      expect(port < first || port > last).toBe(true)
    }
    expect(explainOutgoing([first - 1, last + 1])).toBe('')
    expect(explainOutgoing([first - 1, last])).toContain(`the ports ${first} to ${last}`)
  })

  // A network of its own, in which a connection gets one of four ports.
  it.runIf(spawnSync('unshare', ['-rn', 'true']).status === 0)(
    'is not taken by those who wait for it, where there are few others',
    () => {
      const script = `
        import { createServer } from 'node:http'
        import { choosePort } from './deploy/local/stack/ports/ports.ts'
        import { natsGreets } from './deploy/local/nats/nats-server.ts'
        import { postgresAnswers } from './deploy/local/postgres/postgres-server.ts'
        import { answersOk } from './deploy/local/stack/servers.ts'
        const port = 33000
        for (let n = 0; n < 100; n++) {
          const wait = [
            answersOk('http://127.0.0.1:' + port),
            natsGreets(port),
            postgresAnswers('postgres://a:b@127.0.0.1:' + port + '/c'),
          ]
          if ((await Promise.all(wait)).some(Boolean)) throw new Error('nobody listens')
        }
        const server = createServer((_, response) => response.end())
        await new Promise((resolve, reject) => {
          server.once('error', reject).listen(port, '127.0.0.1', resolve)
        })
        const answers = await answersOk('http://127.0.0.1:' + port)
        process.stdout.write(answers + ' ' + (await choosePort({})))
        process.exit()`
      const ownNetwork =
        'ip link set lo up && echo "33000 33003" >/proc/sys/net/ipv4/ip_local_port_range && "$@"'
      const args = ['-rn', 'sh', '-c', ownNetwork, 'sh', process.execPath]
      const node = ['--input-type=module', '--eval', script]
      const { stdout, stderr } = spawnSync('unshare', [...args, ...node], { encoding: 'utf8' })
      expect([stdout, stderr]).toEqual([expect.stringMatching(/^true 2\d{4}$/), ''])
    },
  )
})
