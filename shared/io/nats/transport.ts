/**
 * The sockets of the NATS client. Its own transport has two defects that a hung server reveals. An
 * attempt to connect that ran out of time stays open; when the server closes it later, the client
 * leaves the good connection that it has meanwhile and opens another, and then both feed one
 * parser. And when the parser meets what it cannot read, the client prints the bytes to stdout and
 * goes on without a reader.
 */
import { type ConnectionOptions, Events, type NatsConnection } from 'nats'
import { NatsConnectionImpl } from 'nats/lib/nats-base-client/nats.js'
import { Parser } from 'nats/lib/nats-base-client/parser.js'
import type { ProtocolHandler } from 'nats/lib/nats-base-client/protocol.js'
import { setTransportFactory } from 'nats/lib/nats-base-client/transport.js'
import { NodeTransport, nodeResolveHost } from 'nats/lib/src/node_transport.js'

/** The `data` of the client's error status after bytes that are not of the protocol. */
export const unreadable = 'UNREADABLE'

/** The `connect` of the NATS client, with transports that end when they are given up. */
export function connect(options: ConnectionOptions): Promise<NatsConnection> {
  setTransportFactory({ factory: () => new EndingTransport(), dnsResolveFn: nodeResolveHost })
  return NatsConnectionImpl.connect(options)
}

class EndingTransport extends NodeTransport {
  #givenUp = false

  override async dial(host: Parameters<NodeTransport['dial']>[0]) {
    return this.#unlessGivenUp(await super.dial(host))
  }

  override async tlsFirst(host: Parameters<NodeTransport['tlsFirst']>[0]) {
    return this.#unlessGivenUp(await super.tlsFirst(host))
  }

  override async startTLS() {
    return this.#unlessGivenUp(await super.startTLS())
  }

  #unlessGivenUp<Socket extends { destroy: () => unknown }>(socket: Socket): Socket {
    if (!this.#givenUp) return socket
    socket.destroy()
    throw new Error('the attempt to connect was given up')
  }

  /** Ends an attempt to connect as well. The client's own leaves it open. */
  override close(error?: Error): Promise<void> {
    if (this.connected) return super.close(error)
    this.#givenUp = true
    this.socket?.destroy()
    return Promise.resolve()
  }

  /** The client's own waits until the peer has read what was sent, and one that hangs never does. */
  override disconnect(): void {
    void this.close()
  }

  /** The end of an attempt that was given up does not concern the connection that replaced it. */
  override async closed() {
    const error = await super.closed()
    return this.#givenUp ? new Promise<never>(() => undefined) : error
  }

  /** Ends with the transport: what it read before must not reach the parser of the next one. */
  override async *iterate() {
    for await (const bytes of super.iterate()) {
      if (this.done) return
      yield bytes
    }
  }
}

const { parse } = Parser.prototype

/**
 * Ends the connection instead of throwing: the client prints what is thrown here, and it quotes
 * what the server sent. The next connection begins with a new parser.
 */
Parser.prototype.parse = function parseOrEnd(this: Parser, bytes: Uint8Array): void {
  try {
    parse.call(this, bytes)
  } catch {
    const protocol = this.dispatcher as ProtocolHandler
    protocol.dispatchStatus({ type: Events.Error, data: unreadable })
    protocol.transport.disconnect()
  }
}
