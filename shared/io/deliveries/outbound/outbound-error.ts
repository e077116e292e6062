/** An attempt without a response, with the step that failed. */

/** The step that failed, or what ended the attempt. `aborted`: this process stops. */
export type OutboundErrorKind =
  | 'dns'
  | 'refused_address'
  | 'connect'
  | 'tls'
  | 'timeout'
  | 'reset'
  | 'protocol'
  | 'aborted'

/** The message is for the operator and the tenant. */
export class OutboundError extends Error {
  readonly kind: OutboundErrorKind
  /** The remote address, if the attempt got that far. */
  readonly address: string | null

  constructor(kind: OutboundErrorKind, message: string, address: string | null = null) {
    super(message)
    this.name = 'OutboundError'
    this.kind = kind
    this.address = address
  }
}
