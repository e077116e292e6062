/** What a fleet needs of its caller: the settings, the admin API and the local stack's facts. */

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

type LocalStack = {
  ingest: string
  api: string
  demo?: {
    tenant_id: string
    public_api_key: string
    hmac_secret: string
    webhook_secret: string
  }
}

/** A failure that the message alone explains. */
export class FleetError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'FleetError'
  }
}
