// Acknowledgements never reach a stream that was put back, where a sequence is another message.
import { expect, test } from 'vitest'
import type { Nats } from '#shared/io/nats/connection.ts'
import { createAckGate } from '#shared/io/nats/consume/ack-gate.ts'

function createGate() {
  const sent: string[] = []
  const connection = { publish: (reply: string) => sent.push(reply) }
  return { sent, gate: createAckGate({ connection } as unknown as Nats) }
}
const respond = (reply: string, isLast = true) => ({ reply, payload: Buffer.from('+ACK'), isLast })

test('an acknowledgement waits while the connection is down, a heartbeat is dropped', () => {
  const { gate, sent } = createGate()
  gate.open(1)
  gate.respond(1, respond('first'))
  gate.hold()
  gate.respond(1, respond('second'))
  gate.respond(1, respond('heartbeat', false))
  expect(sent).toEqual(['first'])
  gate.open(1)
  expect(sent).toEqual(['first', 'second'])
})

test('an acknowledgement of an earlier incarnation is dropped, before and after it is known', () => {
  const { gate, sent } = createGate()
  gate.open(1)
  gate.hold()
  gate.respond(1, respond('before'))
  gate.open(2)
  gate.respond(1, respond('after'))
  gate.respond(2, respond('own'))
  expect(sent).toEqual(['own'])
})
