/** The hostile receivers. */
import { readFileSync } from 'node:fs'
import { createServer as createTcp, type Server, type Socket } from 'node:net'
import { createServer as createTls } from 'node:tls'
import { hasHandshake, hostileAnswers } from './answers.ts'

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
