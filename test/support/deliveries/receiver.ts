/**
 * The webhook receiver of tests: keeps every request and answers as the test decides; and a raw TCP
 * server for answers that no HTTP library sends.
 */
import type { ServerResponse } from 'node:http'
import { createServer as createTcpServer, type Socket } from 'node:net'
import {
  type HttpListening,
  type Listening,
  listenOnLoopback,
  type ReceivedRequest as Request,
  startReceiver as startAny,
} from '../../../deploy/fleet/send/receiver.ts'

export type ReceivedRequest = Request & { atMs: number }

/** Answers one request; its n counts the requests of the same delivery id, from 1. */
export type Answer = (response: ServerResponse, request: ReceivedRequest, n: number) => void

export type Receiver = HttpListening & {
  /** With a path: usable as a webhook URL. */
  url: string
  requests: ReceivedRequest[]
  setAnswer: (answer: Answer) => void
}

const answerOk: Answer = (response) => response.writeHead(200).end('ok')

/** Starts a receiver that answers 200 until the test changes it. */
export async function startReceiver(answer: Answer = answerOk): Promise<Receiver> {
  let present = answer
  const requests: ReceivedRequest[] = []
  const seen = new Map<string, number>()
  const listening = await startAny((incoming, response) => {
    const request = { ...incoming, atMs: performance.now() }
    const id = String(request.headers['x-service-delivery'])
    const n = (seen.get(id) ?? 0) + 1
    seen.set(id, n)
    requests.push(request)
    present(response, request, n)
  })
  return {
    ...listening,
    url: listening.urlOf('hook'),
    requests,
    setAnswer: (next) => {
      present = next
    },
  }
}

/** Starts a TCP server that passes every connection to the test. */
export async function startRawReceiver(
  onSocket: (socket: Socket) => void,
): Promise<Listening & { url: string }> {
  const server = createTcpServer((socket) => {
    socket.on('error', () => undefined)
    onSocket(socket)
    // Unread bytes would hide the end of the connection.
    socket.resume()
  })
  const listening = await listenOnLoopback(server)
  return { ...listening, url: listening.urlOf('hook') }
}
