/** The inputs of a fleet: settings, the admin API and the addresses of the local stack. */

export type FleetContext = {
  env: Record<string, string | undefined>
  /**
   * Calls the admin API. `path` follows `/admin/v1`.
   * @throws FleetError when the console refuses or does not answer
   */
  adminFetch: (method: string, path: string, body?: unknown) => Promise<unknown>
  /** The running local stack; null when there is none. */
  findStack: () => LocalStack | null
}

export type LocalStack = {
  ingest: string
  api: string
  console: string
  /** As the owner of the database. */
  postgres: string
  clickhouse: string
  clickhouse_shards?: string[]
  /** The private keys of the roots that its edges take for sandbox tenants. */
  attestation_keys_file?: string
  /** The folder of the demo's network data; none where the stack has other data. */
  network_data?: string
  /** Process ids; an external server has none. */
  pids: Partial<Record<string, number>>
  demo?: {
    tenant_id: string
    public_api_key: string
    hmac_secret: string
    webhook_secret: string
  }
}

/** A failure whose message needs no stack trace. */
export class FleetError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'FleetError'
  }
}
