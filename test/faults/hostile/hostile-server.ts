/**
 * The hostile receivers in their own process, one port per kind, and two good ones. The parent gets
 * the ports and ends the process by closing the channel.
 */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer as createHttp, type RequestListener } from 'node:http'
import { createServer as createHttps } from 'node:https'
import { type AddressInfo, createServer as createTcp, type Server, type Socket } from 'node:net'
import { createServer as createTls } from 'node:tls'
import { fileURLToPath } from 'node:url'
import { hasHandshake, hostileAnswers } from './answers.ts'

/** Ports by the name of the response; `well` and `well, TLS` are the good ones. */
export type Ports = Record<string, number>

const pem = (name: string) =>
  readFileSync(new URL(`../../vectors/${name}.pem`, import.meta.url), 'utf8')

const identity = { key: pem('receiver-key'), cert: pem('receiver-cert') }

/** A server with one of the hostile responses; it does not listen yet. */
export function createHostileServer(name: string): Server {
  const listener = (socket: Socket) => {
    socket.on('error', () => undefined)
    hostileAnswers[name]!.onSocket(socket)
    // Unread bytes would hide the end of the connection.
    socket.resume()
  }
  const server = hasHandshake(name) ? createTls(identity, listener) : createTcp(listener)
  return server.on('tlsClientError', () => undefined)
}

async function serve(): Promise<Ports> {
  const answerWell: RequestListener = (request, response) => {
    request.resume().on('end', () => response.end('ok'))
  }
  const servers: Record<string, Server> = {
    well: createHttp(answerWell),
    'well, TLS': createHttps(identity, answerWell),
  }
  for (const name of Object.keys(hostileAnswers)) servers[name] = createHostileServer(name)
  const ports: Ports = {}
  for (const [name, server] of Object.entries(servers)) {
    server.listen(0, '127.0.0.1', 1_024)
    await once(server, 'listening')
    ports[name] = (server.address() as AddressInfo).port
  }
  return ports
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const ports = await serve()
  process.on('disconnect', () => process.exit(0))
  process.send?.(ports)
}
